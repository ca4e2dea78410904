"""Admin of the names of what tasks make and will make: for looking."""

from __future__ import annotations

from django.contrib import admin

from jedisite.admin.base import LargeTableAdmin, ReadOnlyAdmin
from jedisite.admin.list_filters import exact
from tasks_app import models


@admin.register(models.OutputTemplate)
class OutputTemplateAdmin(LargeTableAdmin):
    list_display = ["id", "task_id", "dataset", "file_name_template", "serial", "max_serial", "out_type"]
    list_filter = [exact("task_id", "task"), exact("dataset_id", "dataset")]
    search_fields = ["task_id__exact", "dataset_id__exact", "id__exact"]
    search_help_text = "Task number, else dataset number, else template number."
    ordering = ["-id"]
    ordering_within = {"task_id": ("-task_id", "-dataset", "-id"), "dataset_id": ("-dataset", "-id")}
    list_select_related = ["dataset"]


@admin.register(models.PlannedOutput)
class PlannedOutputAdmin(ReadOnlyAdmin):
    list_display = ["id", "task_id", "dataset", "file_name_template"]
    search_fields = ["dataset", "file_name_template"]
    ordering = ["-id"]
