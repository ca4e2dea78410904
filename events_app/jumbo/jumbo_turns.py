"""A task's turn with its jumbo jobs: consumers that need not begin end, those that wait get queues, missing jobs are made."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.db import transaction

from brokerage_app.grid.repository import resource_types
from events_app.jumbo.jumbo_facts import JumboFacts
from events_app.jumbo.jumbo_making import make_jumbo_jobs
from events_app.jumbo.jumbo_places import slot_at
from events_app.jumbo.waiting_consumers import ME, end_decided, give_queues
from events_app.rules.jumbo_tasks import (
    MOST_TASKS,
    NONE_MADE,
    JumboEvent,
    after,
    may_begin,
    new_jobs,
    places_of,
    why_none,
)
from jedisite.database.sql import hot_cursor
from jedisite.vocabulary.words import plural
from tasks_app.domain.jumbo_use import ENABLED, UseJumbo
from tasks_app.domain.killcodes import Kill, KilledJob
from tasks_app.domain.states import JobStatus
from tasks_app.generation.grid_view import GridView
from tasks_app.generation.groups import is_throttled
from tasks_app.generation.rules.jumbo_needs import jumbo_needs
from tasks_app.generation.turn_facts import TurnFacts, read_turn
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import Job, Task, TaskStatusLog
from tasks_app.outcomes.endings import KillOrder, kill_jobs

E: Final = JumboEvent


def take_turn(task_id: int, fence: int, facts: JumboFacts, view: GridView, under_way: int, now: datetime) -> int:
    """Do what is to be done for a claimed task, and free it. Returns how many jobs moved or were made.

    `under_way`: tasks of its work queue that have jumbo jobs. Raises LostClaimError.
    """
    moved = end_decided(task_id, facts.decided, now) if facts.decided else 0
    if facts.unneeded:
        moved += _kill(facts)
    task = Task.objects.select_related("job_params_template", "work_queue").get(pk=task_id)
    turn = read_turn(task, fence, now)
    waiting = [job for job in facts.waiting if job not in facts.decided]
    # Those of a task that is throttled wait for jumbo jobs alone.
    placed = give_queues(turn.with_inputs(), facts.idle, view) if waiting and not is_throttled(task, now) else 0
    made, why = _make(turn, facts, view, under_way)
    _end_turn(task, fence, facts, len(made), len(waiting) - placed, why)
    return moved + placed + len(made)


def why_none_of(task_id: int) -> str:
    """Why a task got no jumbo job when one was to be made last; "" when it got one, or wants none. One query."""
    said = TaskStatusLog.objects.filter(task_id=task_id, by=ME).order_by("-at", "-id").values_list("reason", flat=True)
    return (said.first() or "").partition(NONE_MADE)[2]


def _kill(facts: JumboFacts) -> int:
    """End jumbo jobs that have not begun."""
    rows = Job.objects.filter(pk__in=facts.unneeded).values_list("pk", "status", "prod_source_label")
    off = facts.use is UseJumbo.DISABLED
    why = "jumbo jobs of its task are switched off" if off else "all files of its task are done"
    orders = [
        KillOrder(job, facts.task_id, KilledJob(JobStatus(status), label or "", True), Kill.TASK_DONE, why)
        for job, status, label in rows
    ]
    with transaction.atomic(), hot_cursor() as cursor:
        return kill_jobs(cursor, orders, by=ME).ended


def _make(turn: TurnFacts, facts: JumboFacts, view: GridView, under_way: int) -> tuple[list[int], str]:
    """Make the jumbo jobs that are missing, at queues that take them. Returns them, and why there are none, where some are
    missing."""
    number = new_jobs(facts.wanted, sum(facts.active.values()))
    if facts.use not in ENABLED or turn.scouting or not number or not facts.ready_events:
        return [], ""
    if not may_begin(facts.use, under_way):
        return [], f"{MOST_TASKS} tasks of its work queue have jumbo jobs, and others wait"
    needs = jumbo_needs(turn.needs, facts.ready_events)
    decided, resting = view.decide(needs, turn.task, turn.now), facts.resting(turn.now)
    names = {choice.site: view.site(choice.site).queue for choice in decided.verdict.chosen}
    queues = [site for site, queue in names.items() if queue not in resting]
    active = {site: facts.active.get(queue, 0) for site, queue in names.items()}
    chosen = places_of(queues, active, number=number, per_queue=facts.per_queue)
    if not chosen:
        return [], why_none(decided.verdict.sentence(), list(names.values()), resting, facts.per_queue)
    kinds = resource_types()
    slots = [slot_at(view.site(site), needs, kinds) for site in chosen]
    with transaction.atomic():
        if not claims.still_holds(turn.task.id, turn.fence):
            raise claims.LostClaimError(f"the claim on task {turn.task.id} is gone")
        with hot_cursor() as cursor:
            made = make_jumbo_jobs(
                cursor, turn.task.id, slots, by=ME, reason="it takes ranges of all jobsets of its task"
            )
    for site in chosen if made else ():
        view.made(site, 1, turn.task, cores=needs.cores_at(view.site(site)))
    return made, "" if made else "it has no consumer yet, of which they are copies"


def _end_turn(task: Task, fence: int, facts: JumboFacts, made: int, still_waiting: int, why: str) -> None:
    """Free the task, with the state of its jumbo jobs as it is now. `why` it got none stands in its history while it is so."""
    use, left = facts.use, facts.left
    if facts.one_has_ended:
        use = after(use, E.END, left=left)
    elif not facts.active:
        use = after(use, E.NONE_LEFT, left=left)
    if still_waiting:
        use = after(use, E.NO_PLACE, left=left)
    if made:
        use = after(use, E.SUBMIT, left=left)
    if use is None or (use is facts.use and why == why_none_of(task.id)):
        claims.release_task(task.id, fence, wait=None)
        return
    said = f"jumbo jobs: {use.words}"
    if made:
        said += f"; {plural(made, 'was', 'were')} made" if made > 1 else "; one was made"
    if why:
        said += f"{NONE_MADE}{why}"
    columns: dict[str, Any] = {"use_jumbo": use}
    task_moves.note_task(task.id, fence, by=ME, reason=said, **columns)
