"""Per cent done of tasks, how often their jobs fail, and when they will end."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.db.models import Sum

from tasks_app.inputs.missing_files import missing_of, total
from tasks_app.models import Dataset
from tasks_app.models.dataset import INPUT_TYPES


def progress_of(task_id: int) -> int:
    masters = Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES, master_id=None)
    sums = masters.aggregate(files=Sum("files_to_be_used"), done=Sum("files_finished"))
    files = (sums["files"] or 0) + total(missing_of(masters).values()).files
    return int(100 * (sums["done"] or 0) / files) if files else 0


def book_progress() -> None:
    """Per cent done of the running tasks, written only where it has changed and the row is free.

    Files that could not be brought from tape will not be done: as at the end, the others are not all. Lost ones count at the end,
    when it is known whether others were made in their place.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH now AS (
                SELECT d.jeditaskid AS id,
                       trunc(100 * sum(d.nfilesfinished) / greatest(sum(d.nfilestobeused + CASE WHEN d.nfilesmissing > 0 THEN
                           (SELECT count(*) FROM jedi_dataset_contents c WHERE c.jeditaskid = d.jeditaskid
                               AND c.datasetid = d.datasetid AND c.status = 'missing') ELSE 0 END), 1))::int AS progress
                  FROM jedi_datasets d JOIN jedi_tasks t USING (jeditaskid)
                 WHERE t.status IN ('ready', 'running', 'scouting') AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')
                 GROUP BY 1),
            free AS (
                SELECT t.jeditaskid, now.progress FROM jedi_tasks t JOIN now ON now.id = t.jeditaskid
                 WHERE t.progress IS DISTINCT FROM now.progress AND now.progress BETWEEN 0 AND 100
                   FOR UPDATE OF t SKIP LOCKED)
            UPDATE jedi_tasks t SET progress = free.progress FROM free WHERE t.jeditaskid = free.jeditaskid
            """
        )


_ENDED_JOBS = """SELECT jobstatus, endtime FROM jobs WHERE jeditaskid = {task} AND jobstatus IN ('finished', 'failed')
                 UNION ALL
                 SELECT jobstatus, endtime FROM jobs_archive WHERE jeditaskid = {task} AND jobstatus IN ('finished', 'failed')"""
_FAILED_PERCENT = """(100 * count(*) FILTER (WHERE j.jobstatus = 'failed') / nullif(count(*), 0))::smallint"""


def failure_rate_of(task_id: int) -> int | None:
    """Failed jobs among the ended ones, in per cent, archived jobs included; None before a job has ended."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_FAILED_PERCENT} FROM ({_ENDED_JOBS.format(task='%(task)s')}) j", {"task": task_id})  # noqa: S608
        rate: int | None = cursor.fetchone()[0]
    return rate


RATE_OVER: Final = timedelta(hours=6)
"""The files of so long a time tell how fast a task goes on."""
FEWEST_JOBS: Final = 5
"""Fewer finished jobs in that time tell nothing."""
_FORECAST = f"""
WITH at_work AS (
    SELECT jeditaskid, greatest(starttime, %(since)s) AS since FROM jedi_tasks WHERE status IN ('ready', 'running', 'scouting')),
jobs_of AS (
    SELECT t.jeditaskid, {_FAILED_PERCENT} AS rate, count(*) FILTER (WHERE j.jobstatus = 'finished') AS finished,
           count(*) FILTER (WHERE j.jobstatus = 'finished' AND j.endtime > t.since) AS lately
      FROM at_work t CROSS JOIN LATERAL ({_ENDED_JOBS.format(task="t.jeditaskid")}) j GROUP BY 1),
files_of AS (
    SELECT d.jeditaskid, sum(d.nfilesfinished) AS done, sum(greatest(d.nfiles - d.nfilesfinished - d.nfilesfailed, 0)) AS open
      FROM jedi_datasets d JOIN at_work USING (jeditaskid)
     WHERE d.masterid IS NULL AND d.type IN ('input', 'pseudo_input') GROUP BY 1),
seen AS (
    SELECT t.jeditaskid, j.rate,
           CASE WHEN j.lately >= {FEWEST_JOBS} AND f.done > 0 AND f.open > 0
                THEN %(now)s + (%(now)s - t.since) * (f.open / (f.done / j.finished::float8 * j.lately))::float8 END AS ends
      FROM at_work t JOIN jobs_of j USING (jeditaskid) JOIN files_of f USING (jeditaskid)),
free AS (
    SELECT t.jeditaskid, seen.rate, seen.ends FROM jedi_tasks t JOIN seen USING (jeditaskid)
     WHERE t.failurerate IS DISTINCT FROM seen.rate OR t.ttcpredicted IS NOT NULL OR seen.ends IS NOT NULL
       FOR UPDATE OF t SKIP LOCKED)
UPDATE jedi_tasks t
   SET failurerate = free.rate, ttcpredicted = free.ends, ttcpredictiondate = CASE WHEN free.ends IS NOT NULL THEN %(now)s END
  FROM free WHERE t.jeditaskid = free.jeditaskid AND t.status IN ('ready', 'running', 'scouting')
"""  # noqa: S608 - constants of ours


def book_forecasts(now: datetime) -> int:
    """How often jobs of the tasks at work fail, and when these tasks will end at the rate of their last hours. How many tasks."""
    with connection.cursor() as cursor:
        cursor.execute(_FORECAST, {"now": now, "since": now - RATE_OVER})
        return cursor.rowcount
