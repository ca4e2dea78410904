"""Packages of a line are held, resumed and given a priority of their own, although lines share their tasks.

A held package keeps its files: the job generator leaves its group out. Jobs that no pilot has are taken back, and others follow
when it is resumed; that uses up no attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jedisite.database.sql import hot_cursor, numbers
from jedisite.identity.callers import Caller, Right
from tasks_app.domain.killcodes import Kill, error_code
from tasks_app.domain.states import JOB_QUEUED, JobStatus
from tasks_app.lifecycle import queued_jobs, task_moves
from tasks_app.models import Job, Workflow, WorkflowPackage
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book
from tasks_app.outcomes.recovery import lock
from tasks_app.workflows.package_facts import PackageFact, package_facts
from tasks_app.workflows.rules.package_states import ENDED
from tasks_app.workflows.workflow_acts import CannotActError

_FREE: Final = """
SELECT pandaid, jeditaskid FROM jobs WHERE pandaid = ANY(%s::bigint[]) AND jobstatus = ANY(%s) ORDER BY pandaid FOR UPDATE"""


def to_hold(chosen: Sequence[PackageFact]) -> list[PackageFact]:
    """Those that can be held. Raises CannotActError when there are none."""
    found = [fact for fact in chosen if fact.status not in ENDED and not fact.is_held]
    if not found:
        raise CannotActError("Every package of them has ended, or is on hold already.")
    return found


def hold(workflow: Workflow, packages: Sequence[PackageFact], caller: Caller, reason: str) -> list[int]:
    """Hold packages. Returns the jobs that are taken back; those that a pilot has go on. In the caller's transaction."""
    tasks, paths = _tasks(packages), {fact.path for fact in packages}
    with hot_cursor() as cursor:
        # No job of these tasks is made meanwhile.
        lock(cursor, tasks)
        WorkflowPackage.objects.filter(workflow=workflow, path__in=paths).update(is_held=True)
        now = [fact for fact in package_facts(workflow) if fact.path in paths]
        rows = _free(cursor, [fact.job_id for fact in now if fact.job_id])
        said = f"its package is on hold: {reason}" if reason else "its package is on hold"
        code = error_code(Kill.SERVER_RETRY)
        by = caller.name[:128]
        taken = [
            Outcome(job, task, JobStatus.CLOSED, "taskbuffer", code, said[:500], by=by, spares_attempt=True)
            for job, task in rows
        ]
        if taken:
            book(cursor, taken)
    return [job for job, _ in rows]


def _free(cursor: Any, jobs: Sequence[int]) -> list[tuple[int, int]]:
    """Those of these jobs that no pilot has, locked, with their tasks."""
    cursor.execute(_FREE, [numbers(jobs), sorted(JOB_QUEUED)])
    rows: list[tuple[int, int]] = cursor.fetchall()
    return rows


def to_resume(chosen: Sequence[PackageFact]) -> list[PackageFact]:
    """Those that are on hold. Raises CannotActError when there are none."""
    found = [fact for fact in chosen if fact.is_held]
    if not found:
        raise CannotActError("No package of them is on hold by itself: a whole workflow or a stage is resumed as such.")
    return found


def resume(workflow: Workflow, packages: Sequence[PackageFact]) -> None:
    """Packages get jobs again. In the caller's transaction."""
    paths = [fact.path for fact in packages]
    WorkflowPackage.objects.filter(workflow=workflow, path__in=paths).update(is_held=False)
    task_moves.wake_tasks(_tasks(packages), "job_generator")


def to_give_priority(chosen: Sequence[PackageFact], caller: Caller) -> list[PackageFact]:
    """Those that have not ended. Raises CannotActError when there are none, and without the right to steer production."""
    if not caller.may(Right.STEER):
        raise CannotActError("A priority needs the right to steer production.")
    found = [fact for fact in chosen if fact.status not in ENDED]
    if not found:
        raise CannotActError("Every package of them has ended.")
    return found


def give_priority(workflow: Workflow, packages: Sequence[PackageFact], priority: int) -> None:
    """Jobs of packages get a priority of their own, queued ones at once. In the caller's transaction."""
    paths = [fact.path for fact in packages]
    WorkflowPackage.objects.filter(workflow=workflow, path__in=paths).update(priority=priority)
    queued_jobs.set_priority_of_jobs([fact.job_id for fact in packages if fact.job_id is not None], priority)


def free_jobs(packages: Sequence[PackageFact]) -> list[int]:
    """Their jobs that no pilot has."""
    jobs = [fact.job_id for fact in packages if fact.job_id is not None]
    return list(Job.objects.filter(pk__in=jobs, status__in=JOB_QUEUED).order_by("pk").values_list("pk", flat=True))


def _tasks(packages: Sequence[PackageFact]) -> list[int]:
    return sorted({fact.task_id for fact in packages if fact.task_id is not None})
