"""Ends the open jobs of a task: queued ones at once, the others through their pilots."""

from __future__ import annotations

from jedisite.sql import hot_cursor
from tasks_app.accounting.outcomes import Outcome, book
from tasks_app.states import JOB_AT_PILOT, JOB_QUEUED, JobStatus

_QUEUED = sorted(JOB_QUEUED)
_AT_PILOT = sorted(JOB_AT_PILOT)


def end_jobs(task_id: int, *, by: str, reason: str, running_too: bool = True) -> str:
    """Cancel the queued jobs of a task now, and tell the pilots of the others to stop. Returns what was done."""
    with hot_cursor() as cursor:
        # All jobs are locked before any dataset is, as everybody does who ends jobs: else two of them could lock each other out.
        cursor.execute(
            "SELECT pandaid, jobstatus FROM jobs WHERE jeditaskid = %s AND jobstatus = ANY(%s) ORDER BY pandaid FOR UPDATE",
            [task_id, _QUEUED + _AT_PILOT],
        )
        found = cursor.fetchall()
        queued = [job for job, status in found if status in JOB_QUEUED]
        told = [job for job, status in found if status in JOB_AT_PILOT] if running_too else []
        cursor.execute("UPDATE jobs SET commandtopilot = 'tobekilled' WHERE pandaid = ANY(%s)", [told])
        book(cursor, [Outcome(i, task_id, JobStatus.CANCELLED, diag=reason, by=by) for i in queued])
    return f"{len(queued)} queued jobs were cancelled, {len(told)} running ones were told to stop"


def open_jobs(task_id: int) -> int:
    """How many jobs of a task have not ended."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT count(*) FROM jobs WHERE jeditaskid = %s
                  AND jobstatus NOT IN ('finished', 'failed', 'cancelled', 'closed')""",
            [task_id],
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0
