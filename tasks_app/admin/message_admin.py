"""Admin of messages, mails, rows of production systems, and schedules: for looking, and to take up again what was parked."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from jedisite import audit
from jedisite.admin.base import LargeTableAdmin, actor_of, caller_behind
from jedisite.admin.list_filters import exact
from jedisite.identity.callers import Right
from jedisite.vocabulary.words import plural
from tasks_app import models
from tasks_app.messaging import inbox

MOST_ROWS = 1000


@admin.register(models.OutMessage)
class OutMessageAdmin(LargeTableAdmin):
    long_columns = ("payload",)
    list_display = ["id", "position", "topic", "kind", "task_id", "job_id", "created", "sent", "attempts", "error"]
    list_filter = [exact("task_id", "task"), exact("owner", "owner")]
    search_fields = ["id__exact", "task_id__exact"]
    search_help_text = "Message number, else task number."
    ordering = ["-id"]
    ordering_within = {"task_id": ("-task_id", "-id"), "owner": ("-owner", "-position")}


@admin.register(models.InMessage)
class InMessageAdmin(LargeTableAdmin):
    long_columns = ("payload",)
    list_display = [
        "id",
        "message_id",
        "kind",
        "sender",
        "received",
        "attempts",
        "processed",
        "parked",
        "answer",
        "error",
    ]
    list_filter = [exact("message_id", "id of the sender")]
    search_fields = ["id__exact", "message_id__exact"]
    search_help_text = "Message number, or the id given by its sender."
    ordering = ["-id"]
    actions = ["take_up_again"]

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return caller_behind(request).may(Right.OPERATE)

    @admin.action(description="Retry parked messages", permissions=["operate"])
    def take_up_again(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        ids = list(queryset.values_list("pk", flat=True)[:MOST_ROWS])
        with transaction.atomic():
            taken = inbox.try_again(ids)
            audit.record(actor_of(request), "retry", "message", ",".join(map(str, ids))[:100], details={"taken": taken})
        messages.success(
            request, f"Retried: {taken} of {plural(len(ids), 'message')}; only parked messages can be retried."
        )


@admin.register(models.Notification)
class NotificationAdmin(LargeTableAdmin):
    list_display = [
        "id",
        "task_id",
        "workflow_id",
        "status",
        "created",
        "sent",
        "recipient",
        "not_sent",
        "attempts",
        "error",
    ]
    list_filter = [exact("task_id", "task")]
    search_fields = ["task_id__exact", "id__exact"]
    search_help_text = "Task number, else mail number."
    ordering = ["-id"]
    ordering_within = {"task_id": ("-task_id", "-id")}


@admin.register(models.PeriodicTask)
class PeriodicTaskAdmin(LargeTableAdmin):
    list_display = ["task_id", "when", "jobs", "next_due", "last", "made", "skipped", "missed", "until", "ended"]
    search_fields = ["task_id__exact"]
    search_help_text = "Task number."
    ordering = ["-task_id"]

    @admin.display(description="when")
    def when(self, row: models.PeriodicTask) -> str:
        return row.schedule().words()


@admin.register(models.ProductionTask)
class ProductionTaskAdmin(LargeTableAdmin):
    long_columns = ("params",)
    list_display = ["id", "status", "error", "db_role", "name", "user", "submit_time", "imported", "changed"]
    search_fields = ["id__exact"]
    search_help_text = "Task number."
    ordering = ["-id"]


@admin.register(models.ProductionCommand)
class ProductionCommandAdmin(LargeTableAdmin):
    list_display = ["id", "task_id", "name", "status", "answer", "comment", "parameters", "owner", "db_role"]
    list_filter = [exact("task_id", "task")]
    search_fields = ["id__exact", "task_id__exact"]
    search_help_text = "Number of the command, else task number."
    ordering = ["-id"]
    ordering_within = {"task_id": ("-task_id", "-id")}


@admin.register(models.FeedReader)
class FeedReaderAdmin(LargeTableAdmin):
    list_display = ["name", "position"]
    search_fields = ["name__exact"]
    search_help_text = "Name of the agent."
    ordering = ["name"]
