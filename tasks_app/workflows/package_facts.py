"""What the packages of workflows do now, read from the files and jobs of their tasks: four queries, however many there are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from jedisite.database.sql import hot_cursor, numbers
from tasks_app.domain.states import FileStatus, JobStatus, TaskStatus
from tasks_app.models import Workflow, WorkflowPackage
from tasks_app.workflows.rules.package_states import PackageStatus

_AT_WORK: Final = frozenset(
    {JobStatus.RUNNING, JobStatus.HOLDING, JobStatus.TRANSFERRING, JobStatus.MERGING, JobStatus.FINISHED}
)
_CANCELED_TASKS: Final = frozenset({TaskStatus.TOABORT, TaskStatus.ABORTING, TaskStatus.ABORTED})
_BROKEN_TASKS: Final = frozenset({TaskStatus.TOBROKEN, TaskStatus.BROKEN, TaskStatus.FAILED})
_EVER_READ: Final = "c.type IN ('input', 'pseudo_input') AND c.boundaryid IS NOT NULL"
_READ: Final = f"{_EVER_READ} AND c.status <> 'removed'"
# ruff: noqa: S608 - every piece is a constant of ours
_GROUPS: Final = f"""
SELECT g.*, j.jobstatus, j.computingsite, j.modificationhost, j.creationtime, j.starttime FROM (
    SELECT c.jeditaskid, c.boundaryid, bool_and(c.status = '{FileStatus.FINISHED}') AS finished,
           bool_or(c.status = '{FileStatus.READY}' AND c.keeptrack = 1
                   AND (c.attemptnr >= c.maxattempt OR c.failedattempt >= c.maxfailure)) AS spent,
           bool_and(c.status = '{FileStatus.READY}') AS ready,
           max(c.pandaid) FILTER (WHERE c.status IN ('{FileStatus.PICKED}', '{FileStatus.RUNNING}')) AS job
      FROM jedi_dataset_contents c WHERE c.jeditaskid = ANY(%(tasks)s::bigint[]) AND {_READ} GROUP BY 1, 2) g
  LEFT JOIN jobs j ON j.pandaid = g.job
"""
# A job reads files of one group only.
_FAILURES: Final = f"""
WITH failed AS (
    SELECT jeditaskid, pandaid, coalesce(nullif(exeerrordiag, ''), nullif(piloterrordiag, ''), nullif(ddmerrordiag, ''),
           nullif(jobdispatchererrordiag, ''), nullif(taskbuffererrordiag, ''), jobstatus) AS reason
      FROM jobs WHERE jeditaskid = ANY(%(tasks)s::bigint[]) AND jobstatus = 'failed'
    UNION ALL
    SELECT jeditaskid, pandaid, coalesce(nullif(exeerrordiag, ''), nullif(piloterrordiag, ''), nullif(ddmerrordiag, ''),
           nullif(jobdispatchererrordiag, ''), nullif(taskbuffererrordiag, ''), jobstatus)
      FROM jobs_archive WHERE jeditaskid = ANY(%(tasks)s::bigint[]) AND jobstatus = 'failed')
SELECT f.jeditaskid, b.boundaryid, f.reason, count(*) FROM failed f
 CROSS JOIN LATERAL (
       SELECT c.boundaryid FROM job_files jf JOIN jedi_dataset_contents c ON c.fileid = jf.fileid
        WHERE jf.pandaid = f.pandaid AND c.jeditaskid = f.jeditaskid AND {_EVER_READ} LIMIT 1) b
 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class PackageFact:
    """One package: its state, the job that has it now, where that runs and since when it is there, and how often the package
    failed for which reason.

    `site` is the queue, and `node` the machine as its pilot names it. `is_ready`: its files are there and wait for a job.
    `is_held`: by itself or with its line; no job is made for it then, also after the one that it may have.
    `priority`: of its jobs, when it is not that of the task.
    """

    path: str
    software: str
    status: PackageStatus
    task_id: int | None = None
    job_id: int | None = None
    site: str = ""
    node: str = ""
    boundary: int | None = None
    is_ready: bool = False
    failures: Mapping[str, int] = field(default_factory=dict)
    since: datetime | None = None
    started: datetime | None = None
    is_held: bool = False
    priority: int | None = None


def package_facts(workflow: Workflow) -> list[PackageFact]:
    """All packages of a workflow, in order."""
    return facts_by_workflow([workflow.pk])[workflow.pk]


def facts_by_workflow(numbers_of: Collection[int]) -> dict[int, list[PackageFact]]:
    """All packages of each of these workflows, in order."""
    rows = list(WorkflowPackage.objects.filter(workflow_id__in=numbers_of).order_by("pk"))
    tasks = sorted({row.task_id for row in rows if row.task_id is not None})
    groups: dict[tuple[int, int], tuple[Any, ...]] = {}
    failures: dict[tuple[int, int], dict[str, int]] = {}
    states: dict[int, str] = {}
    if tasks:
        with hot_cursor() as cursor:
            cursor.execute(_GROUPS, {"tasks": numbers(tasks)})
            groups = {(task, boundary): tuple(more) for task, boundary, *more in cursor.fetchall()}
            cursor.execute(_FAILURES, {"tasks": numbers(tasks)})
            for task, boundary, reason, times in cursor.fetchall():
                failures.setdefault((task, boundary), {})[reason] = times
            cursor.execute(
                "SELECT jeditaskid, status FROM jedi_tasks WHERE jeditaskid = ANY(%s::bigint[])", [numbers(tasks)]
            )
            states = dict(cursor.fetchall())
    found: dict[int, list[PackageFact]] = {number: [] for number in numbers_of}
    for row in rows:
        found[row.workflow_id].append(_fact(row, groups, failures, states))
    return found


def _fact(
    row: WorkflowPackage,
    groups: Mapping[tuple[int, int], tuple[Any, ...]],
    failures: Mapping[tuple[int, int], Mapping[str, int]],
    states: Mapping[int, str],
) -> PackageFact:
    key = (row.task_id or 0, row.boundary if row.boundary is not None else -1)
    none = (False, False, False, None, None, None, None, None, None)
    finished, spent, ready, job, job_status, site, node, since, started = groups.get(key, none)
    status = _status(row, bool(finished), bool(spent), job_status, job, states.get(row.task_id or 0, ""))
    return PackageFact(
        row.path,
        row.software,
        status,
        row.task_id,
        job,
        site or "",
        node or "",
        row.boundary,
        bool(ready) and status in (PackageStatus.UNSCHEDULED, PackageStatus.HELD),
        failures.get(key, {}),
        since,
        started,
        row.is_held,
        row.priority,
    )


def _status(
    row: WorkflowPackage, finished: bool, spent: bool, job_status: str | None, job: int | None, task: str
) -> PackageStatus:
    if row.is_canceled:  # also when its job ended well all the same: nobody reads what it wrote
        return PackageStatus.CANCELED
    if finished:
        return PackageStatus.SUCCESSFUL
    if task in _CANCELED_TASKS:
        return PackageStatus.CANCELED
    if job is not None:
        return PackageStatus.LAUNCHED if job_status in _AT_WORK else PackageStatus.SCHEDULED
    if spent or task in _BROKEN_TASKS:
        return PackageStatus.FAILED
    return PackageStatus.HELD if row.is_held else PackageStatus.UNSCHEDULED
