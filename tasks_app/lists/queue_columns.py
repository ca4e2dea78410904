"""Columns of the list of computing queues. What is computed is asked for all queues of a page at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Count, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from brokerage_app.models import Queue, QueueEndpoint, QueueStatusLog, StorageEndpoint, VerdictCount
from jedisite.web.columns import Batch, Column, Columns, Row
from tasks_app.models import AttentionItem
from tasks_app.usage import site_use

VERDICT_DAYS = timedelta(days=2)
NEWEST = 10_000


def _names(rows: Sequence[Row]) -> list[str]:
    return [str(row["name"]) for row in rows]


def _of_status(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Since when, by whom and until when each has its status. One query."""
    found = QueueStatusLog.objects.filter(queue__in=_names(rows), ended_at=None)
    return {log.queue: {"status_since": log.at, "status_by": log.by, "status_until": log.until} for log in found}


def _of_jobs(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Open jobs by the counts. One query."""
    return {
        name: {
            "running": jobs.running,
            "cores": jobs.cores,
            "queued": jobs.queued,
            "transferring": jobs.transferring,
            "jobs_counted": jobs.counted,
        }
        for name, jobs in site_use.open_jobs_of(_names(rows)).items()
    }


def _of_pilots(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Workers that are asked for and that run. One query."""
    found = site_use.pilots_of(_names(rows), timezone.now())
    return {name: {"pilots_requested": asked, "pilots_running": running} for name, (asked, running) in found.items()}


def _of_ends(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Jobs that ended in the last hour, and in the same hour a week ago. One query."""
    found = site_use.ends(timezone.now())
    return {
        name: {
            "finished_1h": ends.finished,
            "failed_1h": ends.failed,
            "failure_percent": _rounded(ends.percent),
            "failure_percent_last_week": _rounded(ends.percent_then),
        }
        for name, ends in ((name, found.get(name, site_use.Ends())) for name in _names(rows))
    }


def _of_speed(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Queue times and CPU efficiency, by the newest jobs of all queues. One query."""
    return {
        name: {"queue_time_s": waited, "cpu_efficiency": _rounded(efficiency)}
        for name, (waited, efficiency) in site_use.speeds(NEWEST).items()
    }


def _of_verdicts(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """How often brokers chose each in the last days, how often not, and the code that they gave most. One query."""
    counted = VerdictCount.objects.filter(site__in=_names(rows), kind="job", day__gt=timezone.now() - VERDICT_DAYS)
    codes: dict[str, dict[str, int]] = defaultdict(dict)
    for row in counted.values("site", "code").annotate(n=Sum("decisions")).order_by():
        codes[row["site"]][row["code"]] = row["n"]
    found: dict[str, dict[str, Any]] = {}
    for name, by_code in codes.items():
        skipped = {code: n for code, n in by_code.items() if code}
        most = max(skipped, key=lambda code: (skipped[code], code)) if skipped else ""
        found[name] = {"chosen": by_code.get("", 0), "skipped": sum(skipped.values()), "skipped_mostly": most}
    return found


def _of_storage_and_alerts(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Free space of the endpoint that each writes to first, or, without a list of them, of the one named; and open items of
    the attention list. One query."""
    written = QueueEndpoint.objects.filter(queue=OuterRef("pk"), scope="default", order_write__isnull=False)
    first = Subquery(written.order_by("order_write", "endpoint").values("endpoint")[:1])
    free = StorageEndpoint.objects.filter(pk=OuterRef("output")).values("space_free_gb")
    items = AttentionItem.objects.filter(gone_at=None, owner=OuterRef("pk")).order_by().values("owner")
    found = Queue.objects.filter(pk__in=_names(rows)).annotate(
        output=Coalesce(first, "storage_id"),
        free=Subquery(free),
        alerts=Coalesce(Subquery(items.annotate(n=Count("id")).values("n")), 0),
    )
    return {
        name: {"storage_free_gb": free, "alerts": alerts}
        for name, free, alerts in found.values_list("name", "free", "alerts")
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


QUEUES = Columns(
    Queue,
    (
        Column("name", "Queue", "name"),
        Column("site_name", "Site", shown=False),
        Column("cloud", "Region"),
        Column("status", "Status", "status"),
        Column("status_reason", "Reason", "sentence", shown=False),
        Batch(
            (
                Column("status_since", "Since", "ago", help="when the status was set", shown=False),
                Column("status_by", "Source", help="who set the status: a person, an import, an agent", shown=False),
                Column("status_until", "Until", "time", shown=False, help="when the status ends by itself"),
            ),
            _of_status,
        ),
        Batch(
            (
                Column("cores", "Cores", "number", help="cores of jobs at pilots, against the pledge"),
                Column("running", "Running", "number", help="jobs at pilots", shown=False),
                Column("queued", "Queued", "number", help="jobs that wait for a pilot"),
                Column(
                    "transferring",
                    "Transferring",
                    "number",
                    shown=False,
                    help="jobs whose outputs are being transferred",
                ),
                Column("jobs_counted", "Jobs counted", "ago", shown=False, help="when the open jobs were counted"),
            ),
            _of_jobs,
        ),
        Column("pledged_cores", "Pledged", "number", shown=False, help="cores; -1: opportunistic queue"),
        Batch(
            (
                Column(
                    "pilots_requested",
                    "Pilots requested",
                    "number",
                    help="workers that are not running yet",
                    shown=False,
                ),
                Column("pilots_running", "Pilots", "number", help="running workers, of all running or requested"),
            ),
            _of_pilots,
        ),
        Batch(
            (
                Column(
                    "finished_1h",
                    "Finished, failed /h",
                    "number",
                    help="jobs of the last hour, counted every five minutes",
                ),
                Column("failed_1h", "Failed /h", "number", shown=False),
                Column(
                    "failure_percent", "Failure %", "percent", help="failed jobs among those that ended in that hour"
                ),
                Column(
                    "failure_percent_last_week",
                    "A week ago",
                    "percent",
                    shown=False,
                    help="failure % in the same hour a week ago",
                ),
            ),
            _of_ends,
        ),
        Batch(
            (
                Column("queue_time_s", "Queue time", "seconds", help="median over the newest jobs of the grid"),
                Column(
                    "cpu_efficiency",
                    "CPU eff.",
                    "percent",
                    shown=False,
                    help="CPU time / (walltime × cores) of the same jobs",
                ),
            ),
            _of_speed,
        ),
        Batch(
            (
                Column("storage_free_gb", "Free", "number", help="free space of the output storage; in GB in files"),
                Column("alerts", "Alerts", "number", help="open attention items"),
            ),
            _of_storage_and_alerts,
        ),
        Batch(
            (
                Column("chosen", "Chosen", "number", help="broker decisions for the queue, two days", shown=False),
                Column(
                    "skipped",
                    "Chosen : skipped",
                    "number",
                    help="broker decisions of two days; files have the number skipped",
                ),
                Column(
                    "skipped_mostly", "Main reason", "code", shown=False, help="the most frequent reason for skipping"
                ),
            ),
            _of_verdicts,
        ),
        Column("type", "Takes", shown=False),
        Column("core_count", "Cores per slot", "number", shown=False, help="0: any number"),
        Column("max_memory_mb", "Memory per slot", "mb", shown=False),
        Column("max_walltime_s", "Time limit", "seconds", shown=False),
        Column("work_dir_mb", "Scratch", "mb", shown=False),
        Column("core_power", "HS23 per core", "score", shown=False),
        Column("grid_type", "Kind", shown=False),
        Column("storage", "Storage", source="storage_id", shown=False),
        Column("last_update", "Described", "ago", shown=False, help="when its description last changed"),
    ),
)
