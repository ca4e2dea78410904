"""Kills of single subjobs, groups of a task's files, by people: their jobs end, and no others follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction

from jedisite import audit
from jedisite.database.sql import hot_cursor
from jedisite.identity.callers import Caller
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import TASK_FINAL
from tasks_app.lifecycle import group_files, task_moves
from tasks_app.models import Task
from tasks_app.outcomes.recovery import lock
from tasks_app.upkeep.killing import code_for, kill_by_hand


class CannotKillError(ValueError):
    """The task has ended, or none of the subjobs is at work; the sentence says which."""


class KilledSubjobs(NamedTuple):
    """How many files wait no longer, and how many jobs were killed, or told to stop."""

    given_up: int
    jobs: int


@transaction.atomic
def kill_subjobs(task_id: int, numbers: Sequence[int], caller: Caller, *, reason: str = "") -> KilledSubjobs:
    """Kill the subjobs of these numbers. Raises CannotKillError, and then changes nothing."""
    with hot_cursor() as cursor:
        lock(cursor, [task_id])
    task = Task.objects.get(pk=task_id)
    if task.status in TASK_FINAL:
        raise CannotKillError(f"task {task_id} is {task.status}: its subjobs have ended")
    given_up, jobs = group_files.give_up(task_id, numbers)
    killed = sum(kill_by_hand(jobs, caller, code_for(caller), why=reason))
    group_files.count(given_up)
    if not given_up and not killed:
        raise CannotKillError(f"no subjob of task {task_id} among those named is at work")
    by = caller.name[:128]
    said = f"{plural(len(set(numbers)), 'subjob was', 'subjobs were')} killed by {by}" + (
        f": {reason}" if reason else ""
    )
    task_moves.note_on_task(task_id, by=by, reason=said)
    task_moves.wake_task(task_id, "job_generator", "post_processor")
    audit.record(by, "kill subjobs", "task", task_id, reason=reason, details={"numbers": sorted(set(numbers))})
    return KilledSubjobs(sum(given_up.values()), killed)
