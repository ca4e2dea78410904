"""Admin of event ranges. The table has no index on its row number alone: a page is found by task and row."""

from __future__ import annotations

from django.contrib import admin

from events_app.models import Event
from jedisite.admin.base import LargeTableAdmin
from jedisite.admin.list_filters import exact


@admin.register(Event)
class EventAdmin(LargeTableAdmin):
    list_display = [
        "id",
        "task_id",
        "job_id",
        "file_id",
        "status",
        "min_event",
        "max_event",
        "processed_up_to",
        "attempt",
        "error_code",
    ]
    list_filter = [exact("task_id", "task"), exact("job_id", "job"), exact("file_id", "file")]
    search_fields = ["task_id__exact", "job_id__exact", "file_id__exact"]
    search_help_text = "Task number, else job number, else file number."
    ordering = ["-task_id", "-id"]
    key_fields = ("task_id", "id")
