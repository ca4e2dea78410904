"""Admin of where work may run: storage, classes of resources, work queues; and what the brokers decided."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models.functions import Now
from django.http import HttpRequest

from brokerage_app.grid import installed_policy, storage_folders
from brokerage_app.grid.cric import folder
from brokerage_app.models import (
    GlobalShare,
    GridSnapshot,
    ResourceType,
    StorageEndpoint,
    ThrottleRecord,
    VerdictCount,
    VerdictHour,
    VerdictMinute,
    VerdictRecord,
    WorkQueue,
)
from brokerage_app.policy.criteria_parser import ParseError, parse
from brokerage_app.policy.shares import Share, faults
from brokerage_app.policy.workqueues import ACTIVE, INACTIVE, IS_PARTITION
from jedisite.admin.base import AuditedAdmin, LargeTableAdmin
from jedisite.admin.forms import BoundsForm
from jedisite.admin.list_filters import days, exact
from jedisite.vocabulary.patterns import fault_of
from jedisite.vocabulary.words import plural, sentence


class StorageEndpointForm(forms.ModelForm):
    def clean_path(self) -> str:
        """As `import_sites` takes it, but that its folder is not made."""
        given: str = self.cleaned_data["path"]
        if "path" not in self.changed_data:
            return given
        try:
            path: str = folder(given)
        except ValueError as exc:
            raise forms.ValidationError(sentence(f"the path {exc}")) from exc
        name = self.instance.pk or self.cleaned_data.get("name", "")
        if path and (says := storage_folders.fault_of(name, path, storage_folders.folders())):
            raise forms.ValidationError(sentence(f"the path {says}"))
        return path


@admin.register(StorageEndpoint)
class StorageEndpointAdmin(AuditedAdmin):
    form = StorageEndpointForm
    list_display = [
        "name",
        "site_name",
        "type",
        "is_tape",
        "space_free_gb",
        "space_total_gb",
        "blacklisted_read",
        "blacklisted_write",
    ]
    list_filter = ["is_tape", "blacklisted_read", "blacklisted_write", "type", days("updated")]
    search_fields = ["name", "site_name"]
    ordering = ["name"]
    readonly_fields = ["updated", "closed_until", "closed_why", "closed_reads"]
    help_texts = {
        "name": "name used by file records; it cannot be changed later",
        "type": "DATADISK, SCRATCHDISK, DATATAPE, ...",
        "is_tape": "files must be staged to disk before they can be read",
        "space_free_gb": "GB; empty: unknown",
        "space_total_gb": "GB; empty: unknown",
        "space_expired_gb": "GB of data that may be deleted when space is needed",
        "space_min_free_gb": "GB that must stay free",
        "space_unavailable_gb": "free GB that cannot be used",
        "over_quota": "no more outputs are written to it",
        "blacklisted_read": "no job reads from it until this is unticked",
        "blacklisted_write": "no output goes to it until this is unticked",
    }

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Who gives numbers of space by hand gives those of now: pages say of when they are."""
        super().save_model(request, obj, form, change)
        if change and any(name.startswith("space_") for name in form.changed_data):
            StorageEndpoint.objects.filter(pk=obj.pk).update(updated=Now())


class ResourceTypeForm(BoundsForm):
    bounds = (("min_cores", "max_cores"), ("min_ram_per_core_mb", "max_ram_per_core_mb"))
    never_negative = ("min_cores", "max_cores", "min_ram_per_core_mb", "max_ram_per_core_mb")


@admin.register(ResourceType)
class ResourceTypeAdmin(AuditedAdmin):
    form = ResourceTypeForm
    list_display = ["name", "position", "min_cores", "max_cores", "min_ram_per_core_mb", "max_ram_per_core_mb"]
    list_filter = ["min_cores"]
    search_fields = ["name"]
    ordering = ["position", "name"]
    help_texts = {
        "name": "SCORE, MCORE, SCORE_HIMEM, ...",
        "position": "rows are tried in this order; a job belongs to the first that matches",
        "min_cores": "empty: no limit",
        "max_cores": "empty: no limit",
        "min_ram_per_core_mb": "MB; empty: no limit",
        "max_ram_per_core_mb": "MB; empty: no limit",
    }


class WorkQueueForm(BoundsForm):
    never_negative = ("share", "order")

    def clean_stretchable(self) -> int | None:
        value: int | None = self.cleaned_data["stretchable"]
        if value not in (None, 0, 1):
            raise forms.ValidationError(f"1 or 0 or empty; this is {value}.")
        return value

    def clean_status(self) -> str | None:
        value: str | None = self.cleaned_data["status"]
        if value and value not in (ACTIVE, INACTIVE):
            raise forms.ValidationError(f"{ACTIVE} or {INACTIVE} or empty; this is {value}.")
        return value

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        partition, criteria = values.get("partition_id"), values.get("criteria")
        if partition == IS_PARTITION and criteria:
            self.add_error("criteria", "A partition has no criteria: give them to its sub queues.")
        elif criteria:
            try:
                parse(criteria, values.get("variables"))
            except ParseError as exc:
                self.add_error("criteria", f"{exc}.")
        if partition not in (None, IS_PARTITION):
            self._check_partition(partition, values)
        if partition != IS_PARTITION and self.instance.pk:
            subs = WorkQueue.objects.filter(partition_id=self.instance.pk).count()
            if subs:
                self.add_error(
                    "partition_id", f"This is the partition of {plural(subs, 'queue')}, so it must stay one (-1)."
                )
        return values

    def _check_partition(self, partition: int, values: dict[str, Any]) -> None:
        found = WorkQueue.objects.filter(pk=partition, partition_id=IS_PARTITION).first()
        if found is None:
            self.add_error("partition_id", f"No partition has the id {partition}.")
        elif (found.vo, found.type) != (values.get("vo"), values.get("type")):
            self.add_error("partition_id", f"{found.name} is a partition of type {found.type} of vo {found.vo}.")


@admin.register(WorkQueue)
class WorkQueueAdmin(AuditedAdmin):
    form = WorkQueueForm
    list_display = ["name", "type", "vo", "order", "share", "partition_id", "stretchable", "status"]
    list_filter = ["type", "vo", "status", "function"]
    search_fields = ["name", "type", "criteria"]
    ordering = ["order", "id"]
    help_texts = {
        "vo": "virtual organisation",
        "order": "queues are tried in this order; a task belongs to the first whose criteria it meets",
        "share": "part of the CPUs, relative to the other queues; empty: not throttled",
        "partition_id": "-1: this row is a partition; a number: the partition (its id) that the queue belongs to",
        "stretchable": "1: is served first when other queues leave their share unused",
        "status": "active, or inactive: no task gets it; empty: active",
        "criteria": "which tasks belong here, for example: processingType IN (:p1,:p2)",
        "variables": "values for the criteria, for example: p1:evgen,p2:simul",
    }


class GlobalShareForm(BoundsForm):
    never_negative = ("value",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Who may only look at shares gets a form without fields.
        for name in set(GlobalShare.PATTERNS) & set(self.fields):
            self.fields[name].strip = False  # type: ignore[attr-defined] # one blank is the group of tasks without one

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        for name in GlobalShare.PATTERNS:
            if unusable := fault_of(values.get(name) or ""):
                self.add_error(name, sentence(unusable))
        name = values.get("name") or self.instance.pk
        if name and values.get("parent"):
            rows = {row.name: row for row in installed_policy.share_rows()}
            rows[name] = Share(name, 0, values["parent"].pk)
            fault = faults(list(rows.values())).get(name)
            if fault:
                self.add_error("parent", fault)
        return values


@admin.register(GlobalShare)
class GlobalShareAdmin(AuditedAdmin):
    form = GlobalShareForm
    list_display = [
        "name",
        "parent",
        "value",
        "vo",
        "prod_source_label",
        "processing_type",
        "working_group",
        "throttled",
    ]
    list_filter = ["vo", "throttled"]
    list_select_related = ["parent"]
    search_fields = ["name", "prod_source_label", "processing_type", "working_group"]
    ordering = ["queue_id", "name"]
    fieldsets = [
        (None, {"fields": ["name", "parent", "value", "vo", "queue_id", "throttled"]}),
        ("Tasks that belong here", {"fields": list(GlobalShare.PATTERNS)}),
    ]
    help_texts = {
        "name": "name used by tasks and jobs; it cannot be changed later",
        "parent": "parent share; empty: first level. Only shares without children have tasks",
        "value": "weight among the children of its parent",
        "vo": "virtual organisation whose tasks it takes; empty: all",
        "queue_id": "a task is matched with siblings in this order",
        "throttled": "N: jobs are made without limits; Y or empty: within the limits of the throttle",
        **dict.fromkeys(
            GlobalShare.PATTERNS, "regular expression for the beginning of the task's value; empty takes every task"
        ),
        "working_group": "regular expression for the beginning of the task's value; a task without a group counts as one blank",
        "rtype": "regular expression for the resource type of the first site that the task is bound to",
    }


@admin.register(ThrottleRecord)
class ThrottleAdmin(LargeTableAdmin):
    long_columns = ("lines",)
    list_display = [
        "id",
        "vo",
        "label",
        "queue",
        "resource_type",
        "passed",
        "max_jobs",
        "min_priority",
        "code",
        "since",
        "at",
    ]
    list_filter = ["passed", "code", "label"]
    search_fields = ["queue"]
    ordering = ["id"]


@admin.register(VerdictRecord)
class VerdictAdmin(LargeTableAdmin):
    long_columns = ("chosen", "skipped", "reasons", "needs", "facts")
    list_display = ["id", "task_id", "at", "repeats", "kind", "broker", "share", "code", "sentence"]
    list_filter = [exact("task_id", "task")]
    search_fields = ["task_id__exact", "id__exact"]
    search_help_text = "Task number, or verdict number."
    ordering = ["-id"]


@admin.register(VerdictCount)
class VerdictCountAdmin(LargeTableAdmin):
    list_display = ["id", "day", "site", "share", "kind", "code", "decisions"]
    list_filter = [exact("site", "site")]
    search_fields = ["site__exact", "id__exact"]
    search_help_text = "Site name, or row number."
    ordering = ["-id"]


@admin.register(VerdictHour)
class VerdictHourAdmin(LargeTableAdmin):
    list_display = ["id", "hour", "site", "share", "kind", "code", "decisions"]
    list_filter = [days("hour")]
    search_fields = ["id__exact"]
    search_help_text = "Row number."
    ordering = ["-id"]


@admin.register(VerdictMinute)
class VerdictMinuteAdmin(LargeTableAdmin):
    list_display = ["id", "minute", "share", "kind", "code", "decisions"]
    list_filter = [days("minute")]
    search_fields = ["id__exact"]
    search_help_text = "Row number."
    ordering = ["-id"]


@admin.register(GridSnapshot)
class GridSnapshotAdmin(LargeTableAdmin):
    exclude = ["body"]
    list_display = ["id", "at", "sites"]
    list_filter = [days("at")]
    search_fields = ["id__exact"]
    search_help_text = "Snapshot number."
    ordering = ["-id"]
