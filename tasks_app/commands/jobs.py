"""What commands do to the jobs of a task that are not handed out yet."""

from __future__ import annotations

from django.db import connection


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


def set_priority(task_id: int, priority: int) -> int:
    """Queued jobs of a task get another priority. Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jobs SET currentpriority = %(priority)s WHERE pandaid IN (
                   SELECT pandaid FROM jobs WHERE jeditaskid = %(task)s AND jobstatus = ANY(%(queued)s)
                    ORDER BY pandaid FOR UPDATE)""",
            {
                "task": task_id,
                "priority": priority,
                "queued": ["pending", "waiting", "defined", "assigned", "activated", "throttled"],
            },
        )
        count: int = cursor.rowcount
        return count
