"""Admin of what is known of failed jobs. Fingerprints are classified on their own pages, with a reason."""

from __future__ import annotations

from django.contrib import admin

from jedisite.admin.base import LargeTableAdmin
from jedisite.admin.list_filters import days, exact
from tasks_app import models


@admin.register(models.ErrorFingerprint)
class ErrorFingerprintAdmin(LargeTableAdmin):
    list_display = [
        "id",
        "component",
        "code",
        "category",
        "text",
        "first_seen",
        "last_seen",
        "ticket",
        "known_until",
        "cause",
    ]
    list_filter = [exact("component", "component"), "category"]
    search_fields = ["id__exact", "text"]
    search_help_text = "Fingerprint number, else a part of its text."
    ordering = ["-id"]


@admin.register(models.JobFailure)
class JobFailureAdmin(LargeTableAdmin):
    list_display = [
        "id",
        "ended",
        "fingerprint",
        "task_id",
        "site",
        "node",
        "user",
        "activity",
        "walltime_s",
        "wasted_core_s",
    ]
    list_filter = [exact("task_id", "task"), exact("site", "site"), days("ended")]
    list_select_related = ["fingerprint"]
    search_fields = ["id__exact", "task_id__exact"]
    search_help_text = "Job number, else task number."
    ordering = ["-id"]
    ordering_within = {"task_id": ("-task_id", "-ended"), "site": ("-site", "-ended")}


@admin.register(models.JobEndDue)
class JobEndDueAdmin(LargeTableAdmin):
    list_display = ["id"]
    search_fields = ["id__exact"]
    search_help_text = "Job number."
    ordering = ["-id"]


@admin.register(models.JobEnds)
class JobEndsAdmin(LargeTableAdmin):
    list_display = ["id", "hour", "dimension", "key", "finished", "failed"]
    search_fields = ["id__exact"]
    search_help_text = "Row number."
    ordering = ["-id"]


@admin.register(models.JobNode)
class JobNodeAdmin(LargeTableAdmin):
    list_display = ["id", "node", "site", "last_seen"]
    search_fields = ["id__exact", "node__exact"]
    search_help_text = "Row number, else the name of a worker node."
    ordering = ["-id"]
