"""Admin of tasks and all that belongs to them: for looking. States change only through commands, moves and agents."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from jedisite.admin.base import LargeTableAdmin, ReadOnlyAdmin, caller_behind
from jedisite.admin.list_filters import choice, choice_within, days, exact, months
from jedisite.identity.callers import Right
from tasks_app import models
from tasks_app.admin.command_actions import ACTIONS
from tasks_app.domain.states import FILE_STATES, JOB_FINAL, JOB_OPEN, DatasetStatus, JobStatus

FILE_TYPES = ("input", "pseudo_input", "output", "log", "lib", "trn_output", "trn_log")
RELATED = (
    ("datasets", "dataset", "task_id"),
    ("files", "file", "task_id"),
    ("jobs", "job", "task_id"),
    ("log", "taskstatuslog", "task_id"),
    ("commands", "command", "task_id"),
)


@admin.register(models.Task)
class TaskAdmin(LargeTableAdmin):
    long_columns = ("split_rule",)
    list_display = ["id", "name", "status", "user", "task_type", "current_priority", "progress", "related"]
    list_filter = [
        "status",
        exact("user", "user"),
        exact("task_type", "task type"),
        exact("working_group", "working group"),
        exact("parent_id", "parent task"),
        "work_queue",
        days("creation_date"),
        days("state_change_time"),
        days("end_time"),
    ]
    list_select_related = ["work_queue"]
    search_fields = ["id__exact", "user__exact", "name"]
    search_help_text = "Task number or user, else a part of the task name."
    ordering = ["-id"]
    actions = ACTIONS

    def has_command_permission(self, request: HttpRequest) -> bool:
        caller = caller_behind(request)
        return caller.may(Right.SUBMIT) or caller.may(Right.COMMAND_ANY)

    def view_on_site(self, task: models.Task) -> str:
        return reverse("dashboard:task", args=[task.id])

    @admin.display(description="related")
    def related(self, task: models.Task) -> SafeString:
        links = [
            (reverse(f"admin:tasks_app_{model}_changelist"), parameter, task.id, words)
            for words, model, parameter in RELATED
        ]
        return format_html_join(" · ", '<a class="text-link" href="{}?{}={}">{}</a>', links)


class OneToOneAdmin(LargeTableAdmin):
    """A side table with one row for each task."""

    list_display = ["task_id", "task"]
    list_select_related = ["task"]
    search_fields = ["task_id__exact"]
    search_help_text = "Task number."
    ordering = ["-task_id"]


@admin.register(models.TaskParams)
class TaskParamsAdmin(OneToOneAdmin):
    long_columns = ("params",)


@admin.register(models.JobParamsTemplate)
class JobParamsTemplateAdmin(OneToOneAdmin):
    long_columns = ("template",)


@admin.register(models.Dataset)
class DatasetAdmin(LargeTableAdmin):
    list_display = ["id", "task_id", "name", "type", "status", "files", "files_used", "files_finished", "files_failed"]
    list_filter = [
        exact("task_id", "task"),
        exact("name", "name"),
        exact("container_name", "container"),
        choice_within(("task_id", "name", "container_name"), "type", "type", FILE_TYPES),
        choice_within(("task_id", "name", "container_name"), "status", "status", DatasetStatus),
    ]
    search_fields = ["id__exact", "task_id__exact", "name__exact", "container_name__exact"]
    search_help_text = "Dataset number, else task number; or the full name of a dataset or container."
    ordering = ["-id"]
    ordering_within = {"task_id": ("-task_id", "-type", "-id"), "name": ("-name", "-type", "-task_id", "-id")}
    list_select_related = ["task"]


@admin.register(models.File)
class FileAdmin(LargeTableAdmin):
    list_display = ["id", "task_id", "dataset_id", "lfn", "type", "status", "attempt", "size", "events", "job_id"]
    list_filter = [
        exact("task_id", "task"),
        exact("dataset_id", "dataset", ("task_id",)),
        exact("lfn", "whole name"),
        choice_within(("task_id", "lfn"), "type", "type", FILE_TYPES),
        choice_within(("task_id", "lfn"), "status", "status", FILE_STATES),
    ]
    search_fields = ["id__exact", "task_id__exact", "lfn__exact"]
    search_help_text = "File number, else task number; or the full file name."
    # The primary key in the database: partitions are ranges of the task id.
    ordering = ["-task_id", "-dataset_id", "-id"]


@admin.register(models.FileRetry)
class FileRetryAdmin(LargeTableAdmin):
    list_display = ["id", "task_id", "dataset_id"]
    list_filter = [exact("task_id", "task"), exact("dataset_id", "dataset", ("task_id",))]
    search_fields = ["id__exact", "task_id__exact"]
    search_help_text = "File number, else task number."
    ordering = ["-task_id", "-dataset_id", "-id"]


JOB_COLUMNS = [
    "id",
    "task_id",
    "status",
    "site",
    "user",
    "attempt",
    "current_priority",
    "state_change_time",
    "end_time",
]


@admin.register(models.Job)
class JobAdmin(LargeTableAdmin):
    list_display = [*JOB_COLUMNS, "heartbeat_at"]
    list_filter = [
        choice("status", "status", JobStatus),
        exact("task_id", "task"),
        exact("site", "site (open jobs)"),
    ]
    search_fields = ["id__exact", "task_id__exact"]
    search_help_text = "Job number, else task number."
    ordering = ["-id"]
    ordering_within = {"task_id": ("-task_id", "-status", "-id"), "site": ("-site", "-status", "-id")}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found = super().get_queryset(request)
        # The index by site holds open jobs only.
        return found.filter(status__in=sorted(JOB_OPEN)) if request.GET.get("site") else found


@admin.register(models.JobArchive)
class JobArchiveAdmin(LargeTableAdmin):
    list_display = JOB_COLUMNS
    list_filter = [
        months("modification_time"),
        exact("task_id", "task"),
        choice_within(("task_id",), "status", "status", sorted(JOB_FINAL)),
    ]
    search_fields = ["id__exact", "task_id__exact"]
    search_help_text = "Job number, else task number."
    ordering = ["-id"]
    ordering_within = {"task_id": ("-task_id", "-status", "-id")}


@admin.register(models.JobFile)
class JobFileAdmin(LargeTableAdmin):
    list_display = ["id", "job_id", "file_id", "lfn", "type", "status", "size", "events"]
    list_filter = [
        exact("job_id", "job"),
        exact("file_id", "file"),
        choice_within(("job_id", "file_id"), "type", "type", FILE_TYPES),
    ]
    search_fields = ["job_id__exact", "file_id__exact", "id__exact"]
    search_help_text = "Job number, else number of a task's file, else row number."
    ordering = ["-id"]
    ordering_within = {"job_id": ("-job_id", "-id"), "file_id": ("-file_id", "-id")}


class JobSideAdmin(LargeTableAdmin):
    """A side table with at most one row for each job."""

    list_display: Any = ["id"]
    search_fields = ["id__exact"]
    search_help_text = "Job number."
    ordering = ["-id"]


@admin.register(models.JobParams)
class JobParamsAdmin(JobSideAdmin):
    long_columns = ("params",)


@admin.register(models.JobMetadata)
class JobMetadataAdmin(JobSideAdmin):
    long_columns = ("metadata",)


@admin.register(models.JobOutputReport)
class JobOutputReportAdmin(JobSideAdmin):
    long_columns = ("data",)
    list_display = ["id", "task_id", "attempt", "status", "created"]


@admin.register(models.TaskStatusLog)
class TaskStatusLogAdmin(LargeTableAdmin):
    list_display = ["id", "task_id", "at", "old_status", "status", "by", "reason"]
    list_filter = [exact("task_id", "task"), months("at")]
    search_fields = ["task_id__exact", "id__exact"]
    search_help_text = "Task number, else row number."
    ordering = ["-id"]
    ordering_within = {"task_id": ("-task_id", "-id")}


@admin.register(models.JobStatusLog)
class JobStatusLogAdmin(LargeTableAdmin):
    list_display = ["id", "job_id", "at", "status", "site", "by", "reason"]
    list_filter = [exact("job_id", "job"), months("at")]
    search_fields = ["job_id__exact", "id__exact"]
    search_help_text = "Job number, else row number."
    ordering = ["-id"]
    ordering_within = {"job_id": ("-job_id", "-id")}


@admin.register(models.JobRetryHistory)
class JobRetryHistoryAdmin(LargeTableAdmin):
    list_display = ["id", "task_id", "old_job_id", "new_job_id", "relation_type", "at"]
    list_filter = [
        exact("task_id", "task"),
        exact("old_job_id", "old job"),
        exact("new_job_id", "new job"),
        months("at"),
    ]
    search_fields = ["old_job_id__exact", "new_job_id__exact", "task_id__exact"]
    search_help_text = "Number of the old job, else of the new job, else of the task."
    ordering = ["-id"]
    ordering_within = {
        "old_job_id": ("-old_job_id", "-id"),
        "new_job_id": ("-new_job_id", "-id"),
        "task_id": ("-task_id", "-id"),
    }


@admin.register(models.RetryNote)
class RetryNoteAdmin(LargeTableAdmin):
    list_display = ["id", "job_id", "task_id", "at", "code", "applied", "detail"]
    list_filter = [exact("job_id", "job"), exact("task_id", "task"), months("at")]
    search_fields = ["job_id__exact", "task_id__exact", "id__exact"]
    search_help_text = "Job number, else task number, else row number."
    ordering = ["-id"]
    ordering_within = {"job_id": ("-job_id", "-id"), "task_id": ("-task_id", "-id")}


@admin.register(models.ScoutReport)
class ScoutReportAdmin(LargeTableAdmin):
    long_columns = ("presets", "measured")
    list_display = ["id", "task_id", "at", "scouts", "outcome", "sample", "finished_jobs", "detail"]
    list_filter = [exact("task_id", "task")]
    search_fields = ["task_id__exact", "id__exact"]
    search_help_text = "Task number, else row number."
    ordering = ["-id"]
    ordering_within = {"task_id": ("-task_id", "-id")}


@admin.register(models.UsualDuration)
class UsualDurationAdmin(ReadOnlyAdmin):
    list_display = [
        "status",
        "task_type",
        "label",
        "processing_type",
        "stays",
        "median_s",
        "low_s",
        "high_s",
        "updated",
    ]
    list_filter = ["status", "task_type"]
    search_fields = ["processing_type"]
    ordering = ["-id"]


@admin.register(models.TaskChangeDue)
class TaskChangeDueAdmin(ReadOnlyAdmin):
    list_display = ["id", "task_id", "reason", "at"]
    list_filter = [days("at")]
    search_fields = ["task_id", "reason"]
    ordering = ["-id"]


@admin.register(models.Command)
class CommandAdmin(LargeTableAdmin):
    list_display = ["id", "task_id", "name", "status", "owner", "created", "comment", "answer"]
    list_filter = [exact("task_id", "task"), "status", "name", exact("owner", "owner"), days("created"), days("ended")]
    search_fields = ["task_id__exact", "owner"]
    search_help_text = "Task number, else a part of the name of the command's giver."
    ordering = ["-id"]
    list_select_related = ["task"]


@admin.register(models.SubmissionKey)
class SubmissionKeyAdmin(LargeTableAdmin):
    long_columns = ("reply",)
    list_display = ["id", "caller", "key", "task_id", "created"]
    list_filter = [exact("caller", "caller"), days("created")]
    search_fields = ["id__exact", "caller__exact"]
    search_help_text = "Row number, or submitter."
    ordering = ["-created", "-id"]
    ordering_within = {"caller": ("-caller", "-key", "-id")}


@admin.register(models.UserSecret)
class UserSecretAdmin(ReadOnlyAdmin):
    """Who keeps secrets here, and under which names. The values are shown to nobody."""

    fields = ["user", "name", "changed"]
    long_columns = ("value",)
    list_display = ["user", "name", "changed"]
    list_filter = [days("changed")]
    search_fields = ["user", "name"]
    ordering = ["user", "name"]


@admin.register(models.EmptyQueue)
class EmptyQueueAdmin(ReadOnlyAdmin):
    list_display = ["queue", "since"]
    search_fields = ["queue"]
    ordering = ["queue"]


@admin.register(models.Preassignment)
class PreassignmentAdmin(ReadOnlyAdmin):
    list_display = ["task_id", "queue", "resource_type", "since"]
    search_fields = ["task_id__exact", "queue"]
    ordering = ["task_id"]


@admin.register(models.ProcessLock)
class ProcessLockAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "vo",
        "prod_source_label",
        "work_queue_id",
        "resource_type",
        "component",
        "locked_by",
        "locked_time",
    ]
    list_filter = ["vo", "prod_source_label", "component", days("locked_time")]
    search_fields = ["vo", "prod_source_label", "locked_by"]
    ordering = ["vo", "prod_source_label", "work_queue_id", "cloud", "resource_type", "component"]


@admin.register(models.CatalogueDataset)
class CatalogueDatasetAdmin(LargeTableAdmin):
    list_display = ["id", "name", "scope", "owner", "open", "made_by_task", "created"]
    list_filter = [exact("name", "whole name")]
    search_fields = ["id__exact", "name__exact"]
    search_help_text = "Dataset number or full name."
    ordering = ["-id"]


@admin.register(models.CatalogueFile)
class CatalogueFileAdmin(LargeTableAdmin):
    list_display = ["id", "dataset", "lfn", "scope", "size", "events", "endpoint"]
    list_filter = [exact("dataset_id", "dataset"), exact("lfn", "whole name")]
    search_fields = ["lfn__exact", "id__exact", "dataset_id__exact"]
    search_help_text = "Full file name or file number, else dataset number."
    ordering = ["-id"]
    ordering_within = {"dataset_id": ("-dataset", "-lfn", "-id")}
    list_select_related = ["dataset"]


@admin.register(models.TasksSeen)
class TasksSeenAdmin(ReadOnlyAdmin):
    list_display = ["user", "at"]
    search_fields = ["user"]
    ordering = ["user"]


@admin.register(models.SavedView)
class SavedViewAdmin(ReadOnlyAdmin):
    list_display = ["name", "page", "owner", "shared", "pinned", "is_usual", "created"]
    list_filter = ["page", "shared"]
    search_fields = ["name", "owner"]
    ordering = ["page", "owner", "name"]
