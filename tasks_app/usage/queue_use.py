"""What each work queue has: its part of the CPUs, open tasks, jobs, how many are made an hour, what holds it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from brokerage_app.grid import installed_policy
from brokerage_app.models import ThrottleRecord
from brokerage_app.policy.division import distribute
from brokerage_app.policy.workqueues import QueueRow
from tasks_app.domain.states import JOB_AT_PILOT, JOB_QUEUED, TASK_FINAL
from tasks_app.generation.groups import OUTDATED

WHOLE: Final = 100.0
NEWEST: Final = 5000
"""The newest jobs of all, among which those of a queue are counted to know how many are made an hour."""
HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Jobs:
    """Open jobs of a queue by the counts, some seconds old."""

    running: int = 0
    cores: int = 0
    queued: int = 0


@dataclass(frozen=True, slots=True)
class Tasks:
    """Open tasks of a queue, and the one that was created first."""

    open: int = 0
    oldest: int | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueueUse:
    """A work queue. `percent` of the CPUs that its VO and label have now, None outside the sharing; `made_per_h` jobs.

    has   the percents of the cores in use of the queues that take part in the sharing; None where none is in use
    """

    queue: QueueRow
    partition: str | None
    percent: float | None
    has: float | None
    tasks: Tasks
    jobs: Jobs
    made_per_h: float
    throttle: Sequence[ThrottleRecord]

    @property
    def state(self) -> str:
        """One word: inactive, partition, held back (for some or all of its jobs), or ok."""
        if not self.queue.is_active:
            return "inactive"
        if any(not record.passed for record in self.throttle):
            return "throttled"
        return "urgent only" if any(record.min_priority is not None for record in self.throttle) else "ok"


_JOBS = """
SELECT workqueue_id, coalesce(sum(njobs) FILTER (WHERE jobstatus = ANY(%(running)s)), 0)::int,
       coalesce(sum(ncores) FILTER (WHERE jobstatus = ANY(%(running)s)), 0)::int,
       coalesce(sum(njobs) FILTER (WHERE jobstatus = ANY(%(queued)s)), 0)::int
  FROM job_counts GROUP BY 1
"""
_TASKS = """
SELECT workqueue_id, count(*)::int, (array_agg(jeditaskid ORDER BY creationdate, jeditaskid))[1], min(creationdate)
  FROM jedi_tasks WHERE status <> ALL(%(final)s) AND workqueue_id IS NOT NULL GROUP BY 1
"""
_MADE = """
SELECT workqueue_id, count(*) FILTER (WHERE creationtime > %(since)s)::int, min(min(creationtime)) OVER ()
  FROM (SELECT workqueue_id, creationtime FROM jobs ORDER BY pandaid DESC LIMIT %(newest)s) j GROUP BY 1
"""
_AT_SITES = """
SELECT computingsite, coalesce(sum(njobs) FILTER (WHERE jobstatus = ANY(%(running)s)), 0)::int,
       coalesce(sum(ncores) FILTER (WHERE jobstatus = ANY(%(running)s)), 0)::int,
       coalesce(sum(njobs) FILTER (WHERE jobstatus = ANY(%(queued)s)), 0)::int
  FROM job_counts WHERE workqueue_id = %(queue)s GROUP BY 1 HAVING sum(njobs) > 0 ORDER BY 3 DESC, 4 DESC, 1
"""


def queue_uses(now: datetime) -> list[QueueUse]:
    """All work queues in their order, inactive ones last. Five queries."""
    rows = installed_policy.queue_rows()
    tasks = {queue: Tasks(*numbers) for queue, *numbers in _rows(_TASKS, {"final": sorted(TASK_FINAL)})}
    jobs = {queue: Jobs(*numbers) for queue, *numbers in _rows(_JOBS, _states())}
    made = _made(now)
    throttle: dict[str, list[ThrottleRecord]] = {}
    for record in throttle_records(now):
        throttle.setdefault(record.queue, []).append(record)
    percents: dict[int, float] = {}
    for level in {(row.vo, row.type) for row in rows}:
        percents |= distribute(WHOLE, [row for row in rows if (row.vo, row.type) == level], tasks)
    names = {row.id: row.name for row in rows if row.is_partition}
    has = _has(rows, percents, jobs)
    ordered = sorted(rows, key=lambda row: (not row.is_active, row.order is None, row.order or 0, row.id))
    return [
        QueueUse(
            row,
            names.get(row.partition_id or 0),
            percents.get(row.id),
            has.get(row.id),
            tasks.get(row.id, Tasks()),
            jobs.get(row.id, Jobs()),
            made.get(row.id, 0.0),
            throttle.get(f"queue:{row.partition_id if (row.partition_id or 0) in names else row.id}", []),
        )
        for row in ordered
    ]


def _has(rows: Sequence[QueueRow], percents: Mapping[int, float], jobs: Mapping[int, Jobs]) -> dict[int, float]:
    """Percents of the cores in use, by the id of the queue; of a partition those of its sub queues."""
    cores: dict[int, int] = {}
    level: dict[tuple[str, str], int] = {}
    for row in rows:
        own = jobs[row.id].cores if row.id in jobs and row.id in percents else 0
        for one in {row.id, row.partition_id or row.id} & percents.keys():
            cores[one] = cores.get(one, 0) + own
        level[row.vo, row.type] = level.get((row.vo, row.type), 0) + own
    return {r.id: WHOLE * cores[r.id] / level[r.vo, r.type] for r in rows if r.id in cores and level[r.vo, r.type]}


def throttle_records(now: datetime) -> list[ThrottleRecord]:
    """The decisions of the throttle that hold, those that stop something first. One query."""
    found = ThrottleRecord.objects.filter(at__gt=now - OUTDATED)
    return sorted(found, key=lambda r: (r.passed, r.min_priority is None, r.queue, r.label, r.resource_type))


def at_sites(queue_id: int) -> list[tuple[str, Jobs]]:
    """Jobs of a queue by computing queue, those with most running cores first. One query."""
    return [(site, Jobs(*numbers)) for site, *numbers in _rows(_AT_SITES, {**_states(), "queue": queue_id})]


def _made(now: datetime) -> dict[int, float]:
    """Jobs made an hour, by the newest jobs: of the last hour, or of the shorter time in which so many were made."""
    since = now - timedelta(seconds=HOUR_S)
    found = _rows(_MADE, {"since": since, "newest": NEWEST})
    oldest = found[0][2] if found else None
    if oldest is None:
        return {}
    seconds = min((now - oldest).total_seconds(), HOUR_S) if oldest > since else HOUR_S
    return {queue: n * HOUR_S / max(seconds, 60.0) for queue, n, _ in found if queue is not None}


def _states() -> dict[str, list[str]]:
    return {"running": sorted(JOB_AT_PILOT), "queued": sorted(JOB_QUEUED)}


def _rows(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()
