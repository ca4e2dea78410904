"""Columns of the list of jobs. What is computed comes from the job's own columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from jedisite.web.columns import Batch, Column, Columns, Row
from tasks_app.domain.job_errors import ALL_FIELDS, error_of
from tasks_app.domain.states import JOB_FINAL
from tasks_app.domain.units import tells_efficiency
from tasks_app.models import Job, JobRetryHistory

_TIMES = ("status", "creation_time", "start_time", "end_time", "modification_time")
_ERRORS = ("status", *ALL_FIELDS)


def walltime_s(row: Row, now: datetime) -> float | None:
    """Seconds since the payload started, until it ended or now; None before."""
    if row["start_time"] is None:
        return None
    end = row["end_time"] or (now if row["status"] not in JOB_FINAL else row["modification_time"])
    return max(float((end - row["start_time"]).total_seconds()), 0.0)


def queued_s(row: Row, now: datetime) -> float | None:
    """Seconds from the making of the job to its start, or now while it waits; None when it ended without a start."""
    start = row["start_time"] or (now if row["status"] not in JOB_FINAL else None)
    return None if start is None else max(float((start - row["creation_time"]).total_seconds()), 0.0)


def efficiency_percent(row: Row, now: datetime) -> float | None:
    """CPU time over walltime and cores, in percent; None where the job was too short for that to be measured."""
    core_s = (walltime_s(row, now) or 0.0) * (row["actual_cores"] or row["core_count"] or 1)
    cpu_s = row["cpu_time_s"]
    return round(100 * cpu_s / core_s, 1) if tells_efficiency(cpu_s, core_s) else None


def _of_times(rows: Sequence[Row]) -> Mapping[Any, Row]:
    now = timezone.now()
    return {
        row["id"]: {
            "walltime_s": walltime_s(row, now),
            "queued_s": queued_s(row, now),
            "efficiency_percent": efficiency_percent(row, now),
        }
        for row in rows
    }


def _of_errors(rows: Sequence[Row]) -> Mapping[Any, Row]:
    found = {}
    for row in rows:
        error = error_of(row)
        if error is not None:
            found[row["id"]] = {"error": error.key, "error_says": error.sentence, "error_detail": error.detail}
    return found


def _of_history(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Which job followed each one with the same work, and which one it followed; of several, the last. Two queries."""
    ids = [row["id"] for row in rows]
    links = JobRetryHistory.objects.exclude(relation_type="merge").order_by("id")
    found: dict[int, dict[str, Any]] = {job_id: {} for job_id in ids}
    for old, new in links.filter(old_job_id__in=ids).values_list("old_job_id", "new_job_id"):
        found[old]["followed_by"] = new
    for old, new in links.filter(new_job_id__in=ids).values_list("old_job_id", "new_job_id"):
        found[new]["follows"] = old
    return found


JOBS = Columns(
    Job,
    (
        Column("id", "Job", "id"),
        Column("task_id", "Task", "id"),
        Column("status", "Status", "status"),
        Column("sub_status", "Detail", shown=False, help="details of the status, from the pilot or the kill"),
        Batch(
            (
                Column("error", "Error", "code", help="component and code"),
                Column("error_says", "What happened", "sentence", shown=False),
                Column("error_detail", "Message", "sentence", shown=False, help="of the component that failed"),
            ),
            _of_errors,
            needs=_ERRORS,
        ),
        Column("site", "Queue"),
        Column("worker_node", "Worker node"),
        Column("core_count", "Cores", "number", shown=False),
        Column("min_ram_mb", "Memory requested", "mb", shown=False),
        Column("max_rss_kb", "Memory used", "kb", help="maximum"),
        Batch(
            (
                Column(
                    "efficiency_percent",
                    "CPU %",
                    "percent",
                    help="CPU time / (walltime × cores); none for short jobs",
                ),
                Column("walltime_s", "Walltime", "seconds"),
                Column("queued_s", "Waited", "seconds", shown=False, help="from creation to start"),
            ),
            _of_times,
            needs=(*_TIMES, "cpu_time_s", "actual_cores", "core_count"),
        ),
        Column("attempt", "Attempt", "number"),
        Column("current_priority", "Priority", "number", shown=False, help="higher is served first"),
        Batch(
            (
                Column("follows", "Previous attempt", "id", shown=False, help="the job that had this work before"),
                Column("followed_by", "Next attempt", "id", shown=False, help="the job that got this work afterwards"),
            ),
            _of_history,
        ),
        Column("modification_time", "Changed", "ago"),
        Column("state_change_time", "In this status", "ago", shown=False, help="time since the status was set"),
        Column("creation_time", "Created", "ago", shown=False),
        Column("start_time", "Started", "ago", shown=False),
        Column("end_time", "Ended", "ago", shown=False),
        Column("heartbeat_at", "Heartbeat", "ago", shown=False),
        Column("events", "Events", "number", shown=False),
        Column("input_files", "Input files", "number", shown=False),
        Column("input_bytes", "Input", "bytes", shown=False),
        Column("output_bytes", "Output", "bytes", shown=False),
        Column("user", "User", shown=False),
        Column("gshare", "Share", shown=False),
        Column("resource_type", "Resource", shown=False),
        Column("processing_type", "Processing", shown=False),
        Column("prod_source_label", "Label", shown=False),
        Column("working_group", "Group", shown=False),
        Column("vo", "VO", shown=False),
        Column("nucleus", "Nucleus", shown=False),
        Column("name", "Name", "name", shown=False),
        Column("cpu_time_s", "CPU time", "seconds", shown=False),
        Column("avg_rss_kb", "Memory, average", "kb", shown=False),
        Column("max_walltime_s", "Walltime allowed", "seconds", shown=False),
        Column("max_disk_mb", "Scratch requested", "mb", shown=False),
        Column("computing_element", "Computing element", shown=False),
        Column("pilot_id", "Pilot", "code", shown=False),
        Column("batch_id", "Batch id", "code", shown=False),
        Column("worker_id", "Worker", shown=False),
    ),
)
