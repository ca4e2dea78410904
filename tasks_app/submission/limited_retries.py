"""Hard limits of retries: what the configuration allows a task, and which limit it has reached: at the door, and once more before
it is retried."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection
from django.db.models import Max

from brokerage_app.grid.configured import configuration
from jedisite.database.sql import numbers
from tasks_app.domain.retry_limits import Refusal, RetryFacts, RetryLimits, refusal
from tasks_app.domain.units import JOB_SCORE_HOURS, TELLS_EFFICIENCY
from tasks_app.models import File, Task
from tasks_app.models.dataset import INPUT_TYPES

_TELLS = TELLS_EFFICIENCY.format(
    cpu="j.cpuconsumptiontime",
    core_s="extract(epoch FROM j.endtime - j.starttime) * greatest(coalesce(j.actualcorecount, j.corecount), 1)",
)
_JOBS = f"""
SELECT jeditaskid, avg((jobstatus = 'failed')::int), percentile_cont(0.5) WITHIN GROUP (ORDER BY efficiency),
       sum(hours) FILTER (WHERE jobstatus = 'failed')::float8, sum(hours)::float8
  FROM (SELECT j.jeditaskid, j.jobstatus, {JOB_SCORE_HOURS} AS hours,
               CASE WHEN j.jobstatus = 'finished' AND {_TELLS} THEN 100.0 * j.cpuconsumptiontime
                   / nullif(extract(epoch FROM j.endtime - j.starttime)
                            * greatest(coalesce(j.actualcorecount, j.corecount), 1), 0) END AS efficiency
          FROM jobs j LEFT JOIN queues q ON q.name = j.computingsite
         WHERE j.jeditaskid = ANY(%s::bigint[]) AND j.jobstatus IN ('finished', 'failed')) each
 GROUP BY jeditaskid
"""  # noqa: S608 - a condition of ours


def limits_of(vo: str | None, label: str | None) -> RetryLimits:
    """The hard limits of retries for a label and VO, of the configuration (component retry_task)."""
    found = configuration()

    def read(key: str) -> Any:
        return found.get("retry_task", key, label or "", vo=vo or "")

    return RetryLimits(
        task_attempts=read("TASK_MAX_ATTEMPT"),
        failed_score_hours=read("MAX_FAILED_HEP_SCORE_HOURS"),
        failed_score_rate=read("MAX_FAILED_HEP_SCORE_RATE"),
        job_failure_rate=read("MAX_JOB_FAILURE_RATE"),
        file_attempts=read("JOB_MAX_ATTEMPT"),
        min_cpu_efficiency=read("MIN_CPU_EFFICIENCY"),
    )


def reached(tasks: Iterable[Task]) -> dict[int, Refusal]:
    """Of those of these tasks that have reached a limit the first one. Two queries where limits are on, whatever the number."""
    tasks = list(tasks)
    limits = {kind: limits_of(*kind) for kind in {(task.vo, task.prod_source_label) for task in tasks}}
    limited = [task for task in tasks if not limits[task.vo, task.prod_source_label].are_off]
    facts, found = _facts(limited), {}
    for task in limited:
        if beyond := refusal(facts[task.id], limits[task.vo, task.prod_source_label]):
            found[task.id] = beyond
    return found


def refused(task_id: int, beyond: Refusal) -> str:
    return f"task {task_id} is not tried again: {beyond.sentence}"


def _facts(tasks: Iterable[Task]) -> dict[int, RetryFacts]:
    """What the limits on retries are held against."""
    by_id = {task.id: task for task in tasks}
    if not by_id:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_JOBS, [numbers(by_id)])
        jobs = {row[0]: row[1:] for row in cursor.fetchall()}
    files = File.objects.filter(task_id__in=list(by_id), type__in=INPUT_TYPES)
    attempts = dict(files.order_by().values_list("task_id").annotate(Max("max_attempt")))
    found = {}
    for task_id, task in by_id.items():
        failure_rate, efficiency, failed_hours, hours = jobs.get(task_id, (None,) * 4)
        found[task_id] = RetryFacts(
            task.attempt or 0,
            failed_score_hours=failed_hours,
            failed_score_rate=failed_hours / hours if failed_hours is not None and hours else None,
            job_failure_rate=None if failure_rate is None else float(failure_rate),
            file_attempts=attempts.get(task_id),
            cpu_efficiency=None if efficiency is None else float(efficiency),
        )
    return found
