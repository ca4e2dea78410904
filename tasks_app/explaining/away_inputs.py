"""Jobs that pilots could get, and do not: an input of each lies in a folder that is away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from django.db import connection

from brokerage_app.grid.closed_storage import away_folders
from jedisite.database.sql import texts
from tasks_app.domain.states import JobStatus
from tasks_app.explaining.rules.wait_facts import PilotFact
from tasks_app.transfers.storages import beginnings

# Of each site the storage at which most of the jobs read counts.
_HELD = """
SELECT computingsite, number, sum(jobs) OVER (PARTITION BY computingsite)
  FROM (SELECT computingsite, number, count(*) AS jobs
          FROM (SELECT DISTINCT ON (j.pandaid) j.pandaid, j.computingsite, a.number FROM jobs j
                  JOIN job_files f ON f.pandaid = j.pandaid AND f.type IN ('input', 'lib', 'zipinput')
                  JOIN unnest(%(begins)s::text[]) WITH ORDINALITY a (begins, number) ON starts_with(f.surl, a.begins)
                 WHERE j.{column} = %(id)s AND j.jobstatus = 'activated' ORDER BY j.pandaid, a.number) of_job
         GROUP BY 1, 2) of_storage
 ORDER BY jobs, number DESC
"""


def of_job(job_id: int) -> str:
    """Why an input of a queued job cannot be read now; "" when all can. One statement, two while some folder is away."""
    return next((words for words, _ in _held("pandaid", job_id).values()), "")


def at_sites(task_id: int, found: list[tuple[str, PilotFact]]) -> list[tuple[str, PilotFact]]:
    """The sites of a task's jobs by state, those shut at which none of its queued jobs can be read for. Statements as above, none
    without queued jobs."""
    if not any(status == JobStatus.ACTIVATED for status, _ in found):
        return found
    held = _held("jeditaskid", task_id)
    return [
        (status, replace(one, shut=one.shut or words) if status == JobStatus.ACTIVATED and jobs >= one.waiting else one)
        for status, one in found
        for words, jobs in [held.get(one.site, ("", 0))]
    ]


def _held(column: str, number: int) -> dict[str, tuple[str, int]]:
    """By site: what is said of the storage, and how many activated jobs wait for one."""
    away = [(begins, one.words) for one in away_folders() for begins in beginnings(Path(one.path))]
    if not away:
        return {}
    with connection.cursor() as cursor:
        values: dict[str, Any] = {"begins": texts(begins for begins, _ in away), "id": number}
        cursor.execute(_HELD.format(column=column), values)
        return {
            site: (f"inputs cannot be read: {away[place - 1][1]}", int(jobs)) for site, place, jobs in cursor.fetchall()
        }
