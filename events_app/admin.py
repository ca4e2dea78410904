"""Admin of event ranges. The table has no index on its row number alone: a page is found by task and row."""

from __future__ import annotations

from django.contrib import admin

from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.range_standing import word_of
from jedisite.admin.base import LargeTableAdmin
from jedisite.admin.list_filters import exact, worded_within


@admin.register(Event)
class EventAdmin(LargeTableAdmin):
    list_display = [
        "id",
        "task_id",
        "job_id",
        "file_id",
        "state",
        "min_event",
        "max_event",
        "events_per_range",
        "attempt",
        "error_code",
    ]
    list_filter = [
        exact("task_id", "task"),
        exact("job_id", "job"),
        exact("file_id", "file"),
        worded_within(("job_id", "file_id"), "status", "state", {str(int(one)): one.word for one in EventStatus}),
    ]
    search_fields = ["task_id__exact", "job_id__exact", "file_id__exact"]
    search_help_text = "Task number, else job number, else file number."
    ordering = ["-task_id", "-id"]
    key_fields = ("task_id", "id")

    @admin.display(description="state")
    def state(self, row: Event) -> str:
        return word_of(row.status, row.attempt)
