"""Columns of the list of failed jobs."""

from __future__ import annotations

from jedisite.columns import Column, Columns
from tasks_app.models import JobFailure

FAILURES = Columns(
    JobFailure,
    (
        Column("id", "Job", "id"),
        Column("ended", "Failed", "ago", help="when it became failed, by our clock"),
        Column(
            "text",
            "What was said",
            "sentence",
            source="fingerprint__text",
            help="with what differs from job to job masked",
        ),
        Column("component", "Part", source="fingerprint__component", help="the part that failed the job"),
        Column("code", "Code", source="fingerprint__code"),
        Column("category", "Category", source="fingerprint__category"),
        Column("fingerprint_id", "Fingerprint", "number_plain", shown=False, help="number of the kind of error"),
        Column("task_id", "Task", "number_plain"),
        Column("attempt", "Attempt", "number", shown=False),
        Column("site", "Site"),
        Column("node", "Worker node"),
        Column("user", "User"),
        Column("activity", "Activity"),
        Column("pilot_version", "Pilot", shown=False),
        Column("walltime_s", "Walltime", "seconds"),
        Column("wasted_core_s", "Wasted core time", "seconds", help="walltime times cores"),
    ),
)
