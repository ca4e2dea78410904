"""Columns of the list of workers."""

from __future__ import annotations

from jedisite.web.columns import Column, Columns
from tasks_app.models import Worker

WORKERS = Columns(
    Worker,
    (
        Column("worker_id", "Worker", "number_plain"),
        Column("id", "Row", "id", shown=False),
        Column("harvester", "Instance"),
        Column("site", "Queue"),
        Column("status", "Status", "status"),
        Column("pilot_status", "Pilot"),
        Column("batch_id", "Batch id", "code"),
        Column("node", "Worker node"),
        Column("cores", "Cores", "number"),
        Column("message", "Message", "sentence"),
        Column("last_update", "Changed", "ago"),
        Column("submitted", "Submitted", "ago", shown=False),
        Column("started", "Started", "ago", shown=False),
        Column("ended", "Ended", "ago", shown=False),
        Column("job_type", "Kind of jobs", shown=False),
        Column("resource_type", "Resource", shown=False),
        Column("min_ram_mb", "Memory requested", "mb", shown=False),
        Column("error_code", "Error code", "number_plain", shown=False),
        Column("native_status", "Status in the batch system", shown=False),
        Column("native_exit_code", "Exit code", "number_plain", shown=False),
        Column("queue_name", "Batch queue", shown=False),
        Column("computing_element", "Computing element", shown=False),
        Column("submission_host", "Submitted by", shown=False),
        Column("harvester_host", "Host of the instance", shown=False),
        Column("pilot_started", "Pilot started", "ago", shown=False),
        Column("pilot_ended", "Pilot ended", "ago", shown=False),
    ),
)
