"""Watch dog: claims on tasks whose holder is gone are freed. Their fence rises, so a holder that wakes up writes nothing."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection

from jedisite.agents import Pass, is_dead, kick

LEASE = timedelta(minutes=5)
"""A claim that was not renewed for this time is stale wherever its holder is."""


def run(lease: timedelta = LEASE) -> Pass:
    """Free claims that are too old, and those of processes of this host that are gone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT lockedby FROM jedi_tasks WHERE lockedby IS NOT NULL")
        dead = [holder for (holder,) in cursor.fetchall() if is_dead(holder)]
        cursor.execute(
            """WITH stale AS (SELECT jeditaskid FROM jedi_tasks WHERE lockedby IS NOT NULL
                                 AND (lockedby = ANY(%s) OR lockedtime < clock_timestamp() - %s * interval '1 second')
                                 FOR UPDATE SKIP LOCKED)
               UPDATE jedi_tasks t SET lockedby = NULL, lockedtime = NULL, fence = fence + 1, next_check_at = clock_timestamp()
                 FROM stale WHERE t.jeditaskid = stale.jeditaskid RETURNING t.jeditaskid, t.status""",
            [dead, lease.total_seconds()],
        )
        freed = cursor.fetchall()
    if freed:
        kick("refiner", "feeder", "job_generator", "post_processor", "commando", "pending")
    return Pass(len(freed), ", ".join(f"{task} ({status})" for task, status in freed[:20]))
