"""The job generator: takes tasks in turns, asks the broker where their jobs may run, splits their input and stores jobs."""

from __future__ import annotations

from django.utils import timezone

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import TASK_GENERATING
from tasks_app.generation import prepro
from tasks_app.generation.generation_pass import read_pass
from tasks_app.generation.queue_order import order_of
from tasks_app.generation.task_turns import HAS_WORK, ME, take_turn
from tasks_app.generation.throttle import decide
from tasks_app.generation.turns_by_configuration import turns_of
from tasks_app.lifecycle import claims
from tasks_app.models import Task

TASKS = 20
JOBS_A_TASK = 20_000


@agent("job_generator", every="2s", title="Splits input into jobs and assigns them to sites")
def run(tasks: int = TASKS, jobs_a_task: int = JOBS_A_TASK) -> Pass:
    """One pass over tasks with input left: work queues take turns, those furthest below their share first, in each users, each
    with the most urgent first, and tasks of very high priority in between."""
    there = claims.states_in_use(TASK_GENERATING | prepro.WAITING)
    if not there:
        return Pass()
    throttle = decide(timezone.now(), HAS_WORK)
    allowed, values = throttle.condition()
    condition = f"{HAS_WORK} AND {allowed}"
    claimed = claims.claim_tasks(
        owner(),
        sorted(TASK_GENERATING),
        tasks,
        condition=condition,
        values=values,
        agent=ME,
        turns=turns_of(throttle.queues, order_of(throttle, HAS_WORK)),
    )
    first = prepro.claim(tasks, throttle.off) if there & prepro.WAITING else []
    if not claimed and not first:
        return Pass()
    around = read_pass(throttle, condition, values)
    made = prepro.generate(first, around.view, timezone.now(), around.read_at)
    eager, more = False, False

    def turn(task_id: int, fence: int) -> None:
        nonlocal made, eager, more
        task = Task.objects.select_related("job_params_template").get(pk=task_id)
        result = take_turn(task, fence, around, jobs_a_task)
        waits = throttle.waits(task)
        made += result.jobs
        eager = eager or not waits
        more = more or (not waits and result.goes_on)

    claims.for_each(claimed, turn, by=ME)
    return Pass(
        made, f"{plural(made, 'job')} of {plural(len(claimed), 'task')}", more or (eager and len(claimed) == tasks)
    )
