"""Admin of workflows: for looking. What is done to them is done by commands, which the audit trail has."""

from __future__ import annotations

from django.contrib import admin

from jedisite.admin.base import LargeTableAdmin
from jedisite.admin.list_filters import exact
from tasks_app import models


@admin.register(models.Workflow)
class WorkflowAdmin(LargeTableAdmin):
    list_display = ["name", "owner", "submitted", "container"]
    list_filter = [exact("owner", "owner")]
    search_fields = ["id__exact"]
    search_help_text = "Number of a workflow."
    ordering = ["-id"]
    ordering_within = {"owner": ("owner", "-id")}


@admin.register(models.WorkflowPackage)
class WorkflowPackageAdmin(LargeTableAdmin):
    list_display = ["path", "workflow_id", "software", "task_id", "boundary", "is_canceled"]
    list_filter = [exact("workflow_id", "workflow"), exact("task_id", "task")]
    search_fields = ["workflow_id__exact", "task_id__exact"]
    search_help_text = "Number of a workflow or of a task."
    ordering = ["-id"]
