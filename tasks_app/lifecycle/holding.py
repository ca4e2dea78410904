"""Holds queued jobs back and lets them go: activated and throttled are the two sides of it."""

from __future__ import annotations

from typing import Any

import psycopg

from jedisite.database.sql import hot_cursor


def shift_jobs(old: str, new: str, which: str, values: dict[str, Any], *, by: str, reason: str, limit: int) -> int:
    """Move up to `limit` jobs from one queued state to another, oldest first. Returns how many.

    `which` is SQL of ours on the row `j`, with `values`. Jobs that somebody else has locked are left out.
    """
    with hot_cursor() as cursor:
        return _shift(cursor, old, new, which, {**values, "by": by, "reason": reason, "limit": limit})


def _shift(cursor: psycopg.Cursor[Any], old: str, new: str, which: str, values: dict[str, Any]) -> int:
    cursor.execute(
        f"""WITH locked AS (SELECT j.pandaid FROM jobs j WHERE j.jobstatus = '{old}' AND {which}
                             ORDER BY j.pandaid LIMIT %(limit)s FOR UPDATE OF j SKIP LOCKED),
                 moved AS (UPDATE jobs SET jobstatus = '{new}', statechangetime = clock_timestamp(),
                                  modificationtime = clock_timestamp()
                            WHERE pandaid IN (SELECT pandaid FROM locked) RETURNING pandaid, computingsite)
            INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor, reason)
            SELECT pandaid, '{new}', clock_timestamp(), computingsite, %(by)s, %(reason)s FROM moved""",  # noqa: S608 - ours
        values,
    )
    return cursor.rowcount
