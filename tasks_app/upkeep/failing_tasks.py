"""Running tasks with too many failed jobs, by the limits of their label and share or work queue, and the tasks that do the same.

Off unless a failure rate is set (MAX_JOB_FAILURE_RATE_TO_PAUSE_<label>, for a share or work queue of it, or by lost work). Tasks
with noAutoPause are never paused, neither for themselves nor for a sibling.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import connection

from tasks_app.configured import site_limits
from tasks_app.domain.states import JOB_OPEN, TaskStatus
from tasks_app.domain.throttling import FailureView, PauseLimits, auto_pause
from tasks_app.domain.units import JOB_SCORE_HOURS
from tasks_app.generation.groups import known_queues
from tasks_app.models import Command, Task
from tasks_app.params.splitrule import SplitRule

_OPEN = ", ".join(f"'{status}'" for status in sorted(JOB_OPEN))
_VIEWS = f"""
SELECT t.jeditaskid, j.jobs, j.finished, j.failed, j.open + ceil(f.unused * j.jobs / greatest(f.used, 1)::numeric)::bigint,
       j.used_hours, j.lost_hours
  FROM jedi_tasks t
 CROSS JOIN LATERAL (
       SELECT count(*) AS jobs, count(*) FILTER (WHERE jobstatus = 'finished') AS finished,
              count(*) FILTER (WHERE jobstatus = 'failed') AS failed, count(*) FILTER (WHERE jobstatus IN ({_OPEN})) AS open,
              coalesce(sum(hours) FILTER (WHERE jobstatus IN ('finished', 'failed')), 0) AS used_hours,
              coalesce(sum(hours) FILTER (WHERE jobstatus = 'failed'), 0) AS lost_hours
         FROM (SELECT j.jobstatus, {JOB_SCORE_HOURS} AS hours
                 FROM jobs j LEFT JOIN queues q ON q.name = j.computingsite WHERE j.jeditaskid = t.jeditaskid) each) j
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(d.nfilestobeused - d.nfilesused), 0) AS unused, coalesce(sum(d.nfilesused), 0) AS used
         FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL
          AND d.type IN ('input', 'pseudo_input') AND d.status NOT IN ('removed', 'broken')) f
 WHERE t.status = 'running' AND coalesce(t.prodsourcelabel, '') = %s AND coalesce(t.gshare, '') = %s
   AND coalesce(t.workqueue_id, 0) = %s AND coalesce(t.vo, '') = %s AND j.jobs >= %s ORDER BY t.jeditaskid
"""  # noqa: S608 - constants


def limits_for(label: str, share: str = "", vo: str = "") -> PauseLimits:
    """The limits of tasks of a label and a share, or a work queue; without a rate nothing is paused."""

    def percent(name: str) -> float | None:
        rate = site_limits.number(name, label, share, vo=vo) if share else site_limits.number(name, label, vo=vo)
        return rate * 100 if rate else None

    return PauseLimits(
        min_jobs=int(site_limits.number("MIN_JOBS_TO_PAUSE", label, vo=vo) or 0),
        min_remaining=int(site_limits.number("MIN_REMAINING_JOBS_TO_PAUSE", label, vo=vo) or 0),
        max_failed_percent=percent("MAX_JOB_FAILURE_RATE_TO_PAUSE"),
        max_lost_percent=percent("MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE"),
    )


def to_pause() -> dict[int, str]:
    """Why to pause each task that fails too much, and its siblings after it; those that a command waits for are left out."""
    running = Task.objects.filter(status=TaskStatus.RUNNING)
    kinds = running.values_list("prod_source_label", "gshare", "work_queue_id", "vo").distinct()
    queues = known_queues()
    failing: dict[int, str] = {}
    for label, share, queue, vo in sorted({(a or "", b or "", c or 0, d or "") for a, b, c, d in kinds}):
        given = limits_for(label, share or queues.all_names.get(f"queue:{queues.unit(queue)}", ""), vo)
        if given.max_failed_percent is None and given.max_lost_percent is None:
            continue
        for task_id, view in _views(label, share, queue, vo, given.min_jobs):
            if step := auto_pause(view, given):
                failing[task_id] = step.reason.detail
    wanted = _with_siblings(failing)
    told = set(Command.objects.filter(task_id__in=wanted, status="waiting").values_list("task_id", flat=True))
    return {task_id: why for task_id, why in wanted.items() if task_id not in told}


def _views(label: str, share: str, queue: int, vo: str, min_jobs: int) -> list[tuple[int, FailureView]]:
    with connection.cursor() as cursor:
        cursor.execute(_VIEWS, [label, share, queue, vo, min_jobs])
        rows = cursor.fetchall()
    rules = dict(Task.objects.filter(pk__in=[row[0] for row in rows]).values_list("id", "split_rule"))
    return [
        (
            task_id,
            FailureView(
                TaskStatus.RUNNING,
                jobs,
                finished,
                failed,
                int(remaining),
                float(used),
                float(lost),
                no_auto_pause=SplitRule.parse(rules.get(task_id)).flag("NP"),
            ),
        )
        for task_id, jobs, finished, failed, remaining, used, lost in rows
    ]


def _with_siblings(failing: Mapping[int, str]) -> dict[int, str]:
    """Why to pause each of these tasks and, after it, the running tasks of its request type."""
    types = dict(Task.objects.filter(pk__in=failing, request_type__gt="").values_list("id", "request_type"))
    siblings: dict[str, list[int]] = {}
    alike = Task.objects.filter(request_type__in=set(types.values()), status=TaskStatus.RUNNING).order_by("id")
    for sibling, kind, rule in alike.values_list("id", "request_type", "split_rule"):
        if not SplitRule.parse(rule).flag("NP"):
            siblings.setdefault(str(kind), []).append(sibling)
    wanted: dict[int, str] = {}
    for task_id, why in failing.items():
        wanted.setdefault(task_id, f"too many of its jobs fail: {why}")
        for sibling in siblings.get(types.get(task_id) or "", ()):
            wanted.setdefault(
                sibling, f"it runs the same work as task {task_id}, which has too many failed jobs: {why}"
            )
    return wanted
