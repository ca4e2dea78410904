"""Jobs that a test made in their end state: they are noted for the books, as the trigger notes jobs that come into it."""

from __future__ import annotations

from datetime import datetime

from django.db.models.functions import Coalesce

from tasks_app.models import Job, JobEndDue


def note_failed(since: datetime) -> None:
    """Jobs that failed since then wait to be booked."""
    failed = Job.objects.alias(ended=Coalesce("state_change_time", "modification_time"))
    ids = failed.filter(status="failed", ended__gte=since).values_list("id", flat=True)
    JobEndDue.objects.bulk_create((JobEndDue(id=job) for job in ids), ignore_conflicts=True)
