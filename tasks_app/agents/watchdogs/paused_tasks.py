"""Watchdog: jobs that were being made while their task was paused are held back or ended too."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import hot_cursor, the_time
from tasks_app.configured import timeout_limits
from tasks_app.domain.killcodes import Kill, KilledJob
from tasks_app.domain.states import JobStatus
from tasks_app.lifecycle.job_moves import move_free_jobs
from tasks_app.outcomes.endings import KillOrder, kill_jobs

ME = "paused_tasks"
LIMIT = 5000
_PAUSED = """EXISTS (SELECT 1 FROM jedi_tasks t WHERE t.jeditaskid = j.jeditaskid AND t.status = 'paused'
                        AND t.statechangetime <= %(before)s)"""
_BEFORE_ACTIVATION = ["assigned", "defined", "pending", "waiting"]


@agent("paused_tasks", every="60s", title="Holds back or ends waiting jobs of paused tasks")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Hold back activated jobs of tasks that have been paused for a while, and end those that are not activated yet."""
    before = the_time(now) - timeout_limits.limit("task.paused_jobs")
    reason = "the task is paused"
    with transaction.atomic():
        held = move_free_jobs("activated", "throttled", _PAUSED, {"before": before}, by=ME, reason=reason, limit=limit)
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute(
            f"""SELECT j.pandaid, j.jeditaskid, j.jobstatus, coalesce(j.prodsourcelabel, '') FROM jobs j
                 WHERE j.jobstatus = ANY(%(statuses)s::text[]) AND {_PAUSED}
                 ORDER BY j.pandaid LIMIT %(limit)s FOR UPDATE OF j SKIP LOCKED""",  # noqa: S608 - constants
            {"statuses": _BEFORE_ACTIVATION, "before": before, "limit": limit},
        )
        orders = [
            KillOrder(job, task, KilledJob(JobStatus(status), label), Kill.REASSIGN, reason)
            for job, task, status, label in cursor.fetchall()
        ]
        ended = kill_jobs(cursor, orders, by=ME).ended
    return Pass(held + ended, more=max(held, len(orders)) >= limit)
