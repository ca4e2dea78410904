"""Admin of data that moves: for looking."""

from __future__ import annotations

from django.contrib import admin

from jedisite.admin.base import LargeTableAdmin
from jedisite.admin.list_filters import exact
from tasks_app import models


@admin.register(models.FileReplica)
class FileReplicaAdmin(LargeTableAdmin):
    list_display = ["id", "scope", "lfn", "endpoint", "status", "reason", "at"]
    list_filter = ["status"]
    search_fields = ["id__exact"]
    search_help_text = "Replica number."
    ordering = ["-id"]


@admin.register(models.TransferRule)
class TransferRuleAdmin(LargeTableAdmin):
    list_display = [
        "id",
        "kind",
        "status",
        "destination",
        "dataset",
        "task_id",
        "job_id",
        "files",
        "files_done",
        "error",
    ]
    list_filter = [exact("task_id", "task"), exact("job_id", "job")]
    search_fields = ["id__exact", "task_id__exact", "job_id__exact"]
    search_help_text = "Rule number, task number or job number."
    ordering = ["-id"]
    ordering_within = {"task_id": ("-task_id", "-id"), "job_id": ("-job_id",)}


@admin.register(models.TransferRequest)
class TransferRequestAdmin(LargeTableAdmin):
    list_display = ["id", "rule", "status", "scope", "lfn", "source", "destination", "attempt", "bytes_copied", "error"]
    list_filter = [exact("rule_id", "rule")]
    search_fields = ["id__exact", "rule_id__exact"]
    search_help_text = "Request number or rule number."
    ordering = ["-id"]
    list_select_related = ["rule"]
