"""Columns of the list of failed jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jedisite.web.columns import Batch, Column, Columns, Row
from tasks_app.domain.job_errors import NO_ERROR
from tasks_app.models import JobFailure


def _errors(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Component and code in one, as filters take them."""
    both = {row["id"]: (row["fingerprint__component"], row["fingerprint__code"]) for row in rows}
    return {job: {"error": f"{component}:{code}" if component else NO_ERROR} for job, (component, code) in both.items()}


FAILURES = Columns(
    JobFailure,
    (
        Column("id", "Job", "id"),
        Column("ended", "Failed", "ago", help="when the failure was recorded"),
        Column(
            "text",
            "Message",
            "sentence",
            source="fingerprint__text",
            help="parts that differ from job to job are masked",
        ),
        Batch(
            (Column("error", "Error", "code", help="component that reported the error, and its code"),),
            _errors,
            needs=("fingerprint__component", "fingerprint__code"),
        ),
        Column("category", "Category", source="fingerprint__category"),
        Column("fingerprint_id", "Fingerprint", "number_plain", shown=False, help="number of this kind of error"),
        Column("task_id", "Task", "number_plain"),
        Column("attempt", "Attempt", "number", shown=False),
        Column("site", "Site"),
        Column("node", "Worker node"),
        Column("user", "User"),
        Column("activity", "Activity"),
        Column("pilot_version", "Pilot", shown=False),
        Column("walltime_s", "Walltime", "seconds", shown=False),
        Column("wasted_core_s", "Wasted core time", "seconds", help="walltime times cores"),
    ),
)
