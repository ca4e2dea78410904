"""Jobs that were being made while their task was paused."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from jedisite.database.sql import hot_cursor
from tasks_app.domain.killcodes import Kill, KilledJob
from tasks_app.domain.states import JobStatus
from tasks_app.lifecycle.job_moves import move_free_jobs
from tasks_app.outcomes.endings import KillOrder, kill_jobs

_REASON = "the task is paused"
_PAUSED = """EXISTS (SELECT 1 FROM jedi_tasks t WHERE t.jeditaskid = j.jeditaskid AND t.status = 'paused'
                        AND t.statechangetime <= %(before)s)"""
_BEFORE_ACTIVATION = ["assigned", "defined", "pending", "waiting"]


@transaction.atomic
def hold_back(before: datetime, limit: int, *, by: str) -> int:
    """Hold back activated jobs of tasks that were paused before a time. Returns how many."""
    return move_free_jobs("activated", "throttled", _PAUSED, {"before": before}, by=by, reason=_REASON, limit=limit)


@transaction.atomic
def end_unready(before: datetime, limit: int, *, by: str) -> tuple[int, bool]:
    """End jobs of such tasks that are not activated yet. Returns how many, and whether there may be more."""
    with hot_cursor() as cursor:
        cursor.execute(
            f"""SELECT j.pandaid, j.jeditaskid, j.jobstatus, coalesce(j.prodsourcelabel, '') FROM jobs j
                 WHERE j.jobstatus = ANY(%(statuses)s::text[]) AND {_PAUSED}
                 ORDER BY j.pandaid LIMIT %(limit)s FOR UPDATE OF j SKIP LOCKED""",  # noqa: S608 - constants
            {"statuses": _BEFORE_ACTIVATION, "before": before, "limit": limit},
        )
        orders = [
            KillOrder(job, task, KilledJob(JobStatus(status), label), Kill.REASSIGN, _REASON)
            for job, task, status, label in cursor.fetchall()
        ]
        return kill_jobs(cursor, orders, by=by).ended, len(orders) >= limit
