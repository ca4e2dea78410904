"""Jobs that ended long ago move to the archive."""

from __future__ import annotations

from django.conf import settings
from django.db import connection, transaction

from tasks_app.models import Job

_COLUMNS = ", ".join(field.column for field in Job._meta.concrete_fields if field.column)
_MOVE = f"""
WITH old AS (
    SELECT j.pandaid FROM jobs j LEFT JOIN jedi_tasks t USING (jeditaskid)
     WHERE j.jobstatus IN ('finished', 'failed', 'cancelled', 'closed')
       AND j.modificationtime < clock_timestamp() - %s * interval '1 day'
       AND (t.jeditaskid IS NULL OR t.status IN ('done', 'finished', 'failed', 'aborted', 'broken')
            OR EXISTS (SELECT 1 FROM periodic_tasks p WHERE p.jeditaskid = j.jeditaskid))
     ORDER BY j.pandaid LIMIT %s FOR UPDATE OF j SKIP LOCKED),
gone AS (DELETE FROM jobs WHERE pandaid IN (SELECT pandaid FROM old) RETURNING {_COLUMNS})
INSERT INTO jobs_archive ({_COLUMNS}) SELECT {_COLUMNS} FROM gone
"""  # noqa: S608 - our own column names


@transaction.atomic
def archive_jobs(limit: int) -> int:
    """Move jobs of tasks that have ended too, or that run on a schedule and may never end. Returns how many were moved."""
    with connection.cursor() as cursor:
        cursor.execute(_MOVE, [settings.JEDI_ARCHIVE_AFTER_DAYS, limit])
        return int(cursor.rowcount)
