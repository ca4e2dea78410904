"""Priority and share of jobs that are not handed out yet. Their states change in `job_moves` only."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import connection

from jedisite.database.sql import numbers
from tasks_app.domain.states import JOB_QUEUED


def set_priority(task_ids: Sequence[int], priority: int) -> int:
    """Queued jobs of tasks get another priority. Returns how many."""
    return _set(task_ids, "currentpriority", priority)


def set_priority_of_jobs(jobs: Collection[int], priority: int) -> int:
    """Those of these jobs that are queued get another priority. Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jobs SET currentpriority = %(value)s WHERE pandaid IN (
                   SELECT pandaid FROM jobs WHERE pandaid = ANY(%(jobs)s::bigint[]) AND jobstatus = ANY(%(queued)s)
                    ORDER BY pandaid FOR UPDATE)""",
            {"jobs": numbers(jobs), "value": priority, "queued": sorted(JOB_QUEUED)},
        )
        count: int = cursor.rowcount
        return count


def set_share(task_ids: Sequence[int], share: str) -> int:
    """Queued jobs of tasks go into another global share. Returns how many."""
    return _set(task_ids, "gshare", share)


def _set(task_ids: Sequence[int], column: str, value: int | str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""UPDATE jobs SET {column} = %(value)s WHERE pandaid IN (
                    SELECT pandaid FROM jobs WHERE jeditaskid = ANY(%(tasks)s::bigint[]) AND jobstatus = ANY(%(queued)s)
                     ORDER BY pandaid FOR UPDATE)""",  # noqa: S608 - a name of ours
            {"tasks": numbers(task_ids), "value": value, "queued": sorted(JOB_QUEUED)},
        )
        count: int = cursor.rowcount
        return count
