"""The job generator: takes tasks in turns, asks the broker where their jobs may run, splits their input and stores jobs."""

from __future__ import annotations

from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.grid.configured import configuration
from brokerage_app.verdicts import records
from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from jedisite.vocabulary.words import plural
from tasks_app.counts import statistics
from tasks_app.domain.states import TASK_GENERATING
from tasks_app.generation import prepro
from tasks_app.generation.grid_view import World
from tasks_app.generation.queue_places import Places
from tasks_app.generation.task_turns import FULL_WAIT, HAS_WORK, ME, Surroundings, take_turn
from tasks_app.generation.throttle import look
from tasks_app.lifecycle import claims
from tasks_app.models import Task

TASKS = 20
JOBS_A_TASK = 20_000

JUST_COUNTED_S = 1.0
"""Counts of jobs that the throttle has just taken are used again."""


@agent("job_generator", every="2s", title="Splits input into jobs and assigns them to sites")
def run(tasks: int = TASKS, jobs_a_task: int = JOBS_A_TASK) -> Pass:
    """One pass over tasks with input left: work queues take turns, in each users, each with the most urgent first."""
    throttle = look(timezone.now(), HAS_WORK)
    allowed, values = throttle.condition()
    condition = f"{HAS_WORK} AND {allowed}"
    claimed = claims.claim_tasks(
        owner(), sorted(TASK_GENERATING), tasks, condition=condition, values=values, agent=ME, begun="FALSE"
    )
    first = prepro.claim(tasks, throttle.off)
    if not claimed and not first:
        return Pass()
    # Taken before anything is read: whatever changes from here on is a reason to look again.
    read_at = the_time()
    configured.forget()
    grid = statistics.current_grid(timezone.now(), JUST_COUNTED_S if throttle.queues.names else 0.0)
    places = Places(condition, values, FULL_WAIT)
    around = Surroundings(World(grid, configuration(), places), records.Snapshots(grid), throttle, read_at)
    made = prepro.generate(first, grid, timezone.now(), read_at)
    eager, more = False, False

    def work(task_id: int, fence: int) -> None:
        nonlocal made, eager, more
        task = Task.objects.select_related("job_params_template").get(pk=task_id)
        turn = take_turn(task, fence, around, jobs_a_task)
        waits = throttle.waits(task)
        eager = eager or not waits
        if turn is not None:
            made += turn.jobs
            more = more or (not waits and turn.jobs > 0 and turn.input_left and bool(turn.verdict.chosen))

    claims.for_each(claimed, work, by=ME)
    return Pass(
        made, f"{plural(made, 'job')} of {plural(len(claimed), 'task')}", more or (eager and len(claimed) == tasks)
    )
