"""Where the time of a task or a job goes, read from the status log of jobs. One statement each."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.db import connection

from tasks_app.domain.states import JOB_FINAL, TASK_FINAL, JobStatus
from tasks_app.explaining.rules.time_shares import PART_OF, Life, Measured, Part, TimeSplit, split
from tasks_app.models import Task
from tasks_app.models.job import JobColumns

JOBS: Final = 500
"""The newest jobs of a task that stand for all."""
PEER_TASKS: Final = 20
PEER_JOBS: Final = 25
"""Of each of the other tasks."""
LATEST_TASKS: Final = 2000
"""Among so many newest tasks others of the kind are looked for."""

_NEWEST: Final = """
SELECT pandaid, status FROM (
    SELECT j.pandaid, status FROM unnest(%(states)s::text[]) AS status, LATERAL (
        SELECT pandaid FROM jobs WHERE jeditaskid = {task} AND jobstatus = status ORDER BY pandaid DESC LIMIT {most}) j
    UNION ALL
    SELECT j.pandaid, status FROM unnest(%(final)s::text[]) AS status, LATERAL (
        SELECT pandaid FROM jobs_archive WHERE jeditaskid = {task} AND jobstatus = status ORDER BY pandaid DESC LIMIT {most}) j
) both_tables ORDER BY pandaid DESC LIMIT {most}
"""
"""By state, so that the index of a task's jobs has them: a task may have a million."""

# A stay lasts to the next row of its job, the last one to now; a final state is no stay. Notes stand in the state of their job.
_SPLIT: Final = """
WITH {chosen},
stays AS (
    SELECT c.is_own, c.pandaid, c.status AS is_now, l.jobstatus AS stay, l.modificationtime AS at,
           extract(epoch FROM coalesce(lead(l.modificationtime) OVER (PARTITION BY c.pandaid ORDER BY l.id), %(now)s)
                              - l.modificationtime)::float8 AS s
      FROM chosen c JOIN jobs_statuslog l ON l.pandaid = c.pandaid
), with_jobs AS (
    SELECT sum(extract(epoch FROM upper(span) - lower(span)))::float8 AS s FROM (
        SELECT unnest(range_agg(span)) AS span FROM (
            SELECT tstzrange(min(at), max(CASE WHEN stay = ANY(%(final)s) THEN at ELSE greatest(at, %(now)s) END), '[]') AS span
              FROM stays WHERE is_own GROUP BY pandaid) lives) spans
), by_part AS (
    SELECT is_own, CASE WHEN is_now = ANY(%(unsuccessful)s) THEN 'failed' ELSE stay END AS stay, sum(greatest(s, 0)) AS s
      FROM stays WHERE stay <> ALL(%(final)s) GROUP BY 1, 2
)
SELECT is_own, stay, s, (SELECT count(DISTINCT pandaid) FROM stays t WHERE t.is_own = by_part.is_own),
       (SELECT s FROM with_jobs) FROM by_part
"""

_TASK_AND_PEERS: Final = """
chosen AS MATERIALIZED (
    SELECT true AS is_own, pandaid, status FROM ({own}) own
    UNION ALL
    SELECT false, pandaid, status FROM (
        SELECT jeditaskid FROM (SELECT jeditaskid, tasktype, prodsourcelabel, processingtype FROM jedi_tasks
                                 WHERE jeditaskid <> %(task)s ORDER BY jeditaskid DESC LIMIT %(latest)s) latest
         WHERE tasktype IS NOT DISTINCT FROM %(type)s AND prodsourcelabel IS NOT DISTINCT FROM %(label)s
           AND processingtype IS NOT DISTINCT FROM %(processing)s LIMIT %(tasks)s) peers, LATERAL ({theirs}) j)
""".format(  # noqa: S608 - statements of ours
    own=_NEWEST.format(task="%(task)s", most=JOBS), theirs=_NEWEST.format(task="peers.jeditaskid", most=PEER_JOBS)
)

_JOB_AND_PEERS: Final = """
chosen AS MATERIALIZED (
    SELECT true AS is_own, %(job)s::bigint AS pandaid, %(status)s AS status
    UNION ALL SELECT false, pandaid, status FROM ({theirs}) theirs WHERE pandaid <> %(job)s)
""".format(theirs=_NEWEST.format(task="%(task)s", most=JOBS))  # noqa: S608 - a statement of ours

_UNSUCCESSFUL: Final = sorted(JOB_FINAL - {JobStatus.FINISHED})


def of_task(task: Task, now: datetime) -> TimeSplit | None:
    """Where the time of the newest jobs of a task goes, against those of the newest tasks of its kind; None without jobs."""
    kind = {"type": task.task_type, "label": task.prod_source_label, "processing": task.processing_type}
    found, with_jobs = _read(_TASK_AND_PEERS, now, task=task.id, latest=LATEST_TASKS, tasks=PEER_TASKS, **kind)
    end = (task.end_time if task.status in TASK_FINAL else None) or now
    alone = Life((end - task.creation_date).total_seconds(), with_jobs) if found[True].jobs < JOBS else None
    return split(found[True], found[False], "Its jobs", "in other tasks of this kind", alone)


def of_job(job: JobColumns, now: datetime) -> TimeSplit | None:
    """Where the time of a job goes, against the newest jobs of its task; None when the log has nothing of it.

    Its own time is told by what it did, also when it failed.
    """
    found, _ = _read(_JOB_AND_PEERS, now, job=job.id, status=JobStatus.FINISHED, task=job.task_id)
    return split(found[True], found[False], "It", "other jobs of its task")


def _read(chosen: str, now: datetime, **parameters: Any) -> tuple[dict[bool, Measured], float]:
    """What was measured of those asked about (True) and of their peers (False), and for how many seconds there were any."""
    states = {"states": sorted(JobStatus), "final": sorted(JOB_FINAL), "unsuccessful": _UNSUCCESSFUL}
    with connection.cursor() as cursor:
        cursor.execute(_SPLIT.format(chosen=chosen), {**parameters, **states, "now": now})
        rows = cursor.fetchall()
    found = {}
    for is_own in (True, False):
        seconds: dict[Part, float] = {}
        for stay, s in ((row[1], row[2]) for row in rows if row[0] is is_own):
            part = Part.FAILED if stay == "failed" else PART_OF.get(stay)
            if part is not None:
                seconds[part] = seconds.get(part, 0.0) + s
        found[is_own] = Measured(max((row[3] for row in rows if row[0] is is_own), default=0), seconds)
    return found, float(rows[0][4] or 0.0) if rows else 0.0
