"""Admin of harvester instances, their workers, and what is told between us. People may give an instance another owner."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from jedisite.admin.base import AuditedAdmin, LargeTableAdmin
from jedisite.admin.list_filters import days, exact
from tasks_app import models


@admin.register(models.Harvester)
class HarvesterAdmin(AuditedAdmin):
    list_display = ["id", "owner", "host", "version", "started", "last_update"]
    list_filter = [days("last_update")]
    search_fields = ["id", "owner", "host"]
    ordering = ["id"]
    readonly_fields = ["host", "version", "commit", "started", "last_update", "highest_worker"]
    help_texts = {
        "id": "it cannot be changed later",
        "owner": "account that reports for this instance; calls of others are refused",
    }

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """What the instance tells of itself is there once it has done so."""
        return super().get_fields(request, obj) if obj else ["id", "owner"]


@admin.register(models.Worker)
class WorkerAdmin(LargeTableAdmin):
    list_display = [
        "id",
        "harvester",
        "worker_id",
        "batch_id",
        "status",
        "site",
        "pilot_status",
        "last_update",
        "message",
    ]
    list_filter = [exact("harvester", "instance"), exact("site", "queue")]
    search_fields = ["id__exact"]
    search_help_text = "Row number."
    ordering = ["-id"]
    ordering_within = {"harvester": ("-harvester", "-id"), "site": ("-site", "-id")}


@admin.register(models.WorkerJob)
class WorkerJobAdmin(LargeTableAdmin):
    list_display = ["id", "harvester", "worker_id", "job_id", "at"]
    list_filter = [exact("job_id", "job")]
    search_fields = ["job_id__exact", "id__exact"]
    search_help_text = "Job number, else row number."
    ordering = ["-id"]


@admin.register(models.HarvesterCommand)
class HarvesterCommandAdmin(LargeTableAdmin):
    list_display = ["id", "harvester", "command", "params", "status", "by", "created", "changed"]
    search_fields = ["id__exact"]
    search_help_text = "Command number."
    ordering = ["-id"]


@admin.register(models.HarvesterDialog)
class HarvesterDialogAdmin(LargeTableAdmin):
    list_display = ["id", "harvester", "number", "at", "level", "module", "subject", "message"]
    search_fields = ["id__exact"]
    search_help_text = "Row number."
    ordering = ["-id"]


@admin.register(models.HarvesterMetrics)
class HarvesterMetricsAdmin(LargeTableAdmin):
    long_columns = ("metrics",)
    list_display = ["id", "harvester", "host", "at"]
    search_fields = ["id__exact"]
    search_help_text = "Row number."
    ordering = ["-id"]
