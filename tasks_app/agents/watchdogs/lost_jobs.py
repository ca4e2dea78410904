"""Watch dog: jobs whose pilot has fallen silent are failed, so that their files are tried again."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction

from jedisite.agents import Pass
from jedisite.sql import hot_cursor
from tasks_app.accounting.outcomes import Outcome, book
from tasks_app.states import JobStatus

ME = "lost_jobs"
LOST_HEARTBEAT = 100
"""jobdispatcher error: no heartbeat came in time."""
LIMIT = 1000


def run(limit: int = LIMIT) -> Pass:
    """Fail jobs without a sign of life: handed out and not started, or started and silent. By the database's clock."""
    sent = timedelta(seconds=settings.JEDI_SENT_TIMEOUT_S)
    running = timedelta(seconds=settings.JEDI_HEARTBEAT_TIMEOUT_S)
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute(
            """SELECT pandaid, jeditaskid, jobstatus, heartbeat_at FROM jobs
                WHERE jobstatus IN ('sent', 'starting', 'running')
                  AND heartbeat_at < clock_timestamp() - CASE jobstatus WHEN 'sent' THEN %s ELSE %s END
                ORDER BY pandaid LIMIT %s FOR UPDATE SKIP LOCKED""",
            [sent, running, limit],
        )
        rows = cursor.fetchall()
        outcomes = [
            Outcome(
                job,
                task,
                JobStatus.FAILED,
                "jobdispatcher",
                LOST_HEARTBEAT,
                f"no heartbeat of the {status} job since {heard:%Y-%m-%d %H:%M:%S} UTC",
                by=ME,
            )
            for job, task, status, heard in rows
        ]
        book(cursor, outcomes)
    return Pass(len(rows), more=len(rows) == limit)
