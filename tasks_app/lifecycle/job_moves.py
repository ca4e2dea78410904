"""What commands do to the jobs of a task that are not handed out yet."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from jedisite.database.sql import numbers


def shift(task_id: int, old: str, new: str, by: str) -> int:
    """Move all jobs of a task from one queued state to another. Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            """WITH locked AS (SELECT pandaid FROM jobs WHERE jeditaskid = %(task)s AND jobstatus = %(old)s
                                ORDER BY pandaid FOR UPDATE),
                    moved AS (UPDATE jobs SET jobstatus = %(new)s, statechangetime = clock_timestamp(),
                                     modificationtime = clock_timestamp()
                               WHERE pandaid IN (SELECT pandaid FROM locked) RETURNING pandaid, computingsite)
               INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor)
               SELECT pandaid, %(new)s, clock_timestamp(), computingsite, %(by)s FROM moved""",
            {"task": task_id, "old": old, "new": new, "by": by},
        )
        count: int = cursor.rowcount
        return count


_QUEUED = ("pending", "waiting", "defined", "assigned", "activated", "throttled")


def set_priority(task_ids: Sequence[int], priority: int) -> int:
    """Queued jobs of tasks get another priority. Returns how many."""
    return _set(task_ids, "currentpriority", priority)


def set_share(task_ids: Sequence[int], share: str) -> int:
    """Queued jobs of tasks go into another global share. Returns how many."""
    return _set(task_ids, "gshare", share)


def _set(task_ids: Sequence[int], column: str, value: int | str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""UPDATE jobs SET {column} = %(value)s WHERE pandaid IN (
                    SELECT pandaid FROM jobs WHERE jeditaskid = ANY(%(tasks)s::bigint[]) AND jobstatus = ANY(%(queued)s)
                     ORDER BY pandaid FOR UPDATE)""",  # noqa: S608 - a name of ours
            {"tasks": numbers(task_ids), "value": value, "queued": list(_QUEUED)},
        )
        count: int = cursor.rowcount
        return count
