"""Admin of the classes of queues, users and tasks in analysis: a watchdog writes them, people look at them."""

from __future__ import annotations

from django.contrib import admin

from brokerage_app.models import AnalysisUser, SiteClassRecord, TaskClassRecord
from jedisite.admin.base import ReadOnlyAdmin


@admin.register(SiteClassRecord)
class SiteClassAdmin(ReadOnlyAdmin):
    list_display = ["queue", "site_class", "mean_s", "upper_s", "long_queued", "long_mean_s", "active", "updated"]
    list_filter = ["site_class", "active"]
    search_fields = ["queue"]
    ordering = ["queue"]


@admin.register(AnalysisUser)
class AnalysisUserAdmin(ReadOnlyAdmin):
    list_display = ["user", "slots_hi", "slots_mid", "disk_gb", "updated"]
    search_fields = ["user"]
    ordering = ["user"]


@admin.register(TaskClassRecord)
class TaskClassAdmin(ReadOnlyAdmin):
    list_display = ["task_id", "task_class", "updated"]
    list_filter = ["task_class"]
    search_fields = ["task_id__exact"]
    search_help_text = "Task number."
    ordering = ["-task_id"]
