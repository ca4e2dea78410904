"""Admin of queues: their description, and their status with a reason, an end and a history."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils import timezone
from unfold.widgets import UnfoldAdminSplitDateTimeWidget

from brokerage_app.grid import queue_deleting, queue_status
from brokerage_app.grid.queue_status import QueueStatusError
from brokerage_app.models import Queue, QueueStatusLog
from jedisite.admin.base import actor_of
from jedisite.admin.forms import BoundsForm
from jedisite.admin.list_filters import days
from jedisite.admin.tools import ToolAdmin

SHOWN = 20
"""Rows of a queue's history on its page."""
STATUS_FIELDS = frozenset({"status", "status_until"})


class QueueForm(BoundsForm):
    """A change of the status needs a new reason; it may have an end, after which the lasting status comes back."""

    status_until = forms.SplitDateTimeField(
        required=False,
        widget=UnfoldAdminSplitDateTimeWidget,
        help_text="UTC; empty: the status lasts until a person or an import changes it",
    )
    bounds = (("min_memory_mb", "max_memory_mb"), ("min_walltime_s", "max_walltime_s"))
    never_negative = (
        "core_count",
        "min_memory_mb",
        "max_memory_mb",
        "min_walltime_s",
        "max_walltime_s",
        "work_dir_mb",
        "core_power",
        "transferring_limit",
        "max_disk_io_kbps",
        "transfer_days_high",
        "transfer_days_low",
        "space_gb",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            holds = QueueStatusLog.objects.filter(queue=self.instance.pk, ended_at=None).first()
            self.initial["status_until"] = holds.until if holds else None

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        if self.instance.pk and STATUS_FIELDS & set(self.changed_data) and "status" in values:
            reason = values.get("status_reason") or ""
            if "status_reason" not in self.changed_data:
                self.add_error(
                    "status_reason",
                    "Please give a reason for the new status: the reason is still that of the last change.",
                )
                return values
            try:
                queue_status.check(values["status"], reason.strip(), values.get("status_until"), timezone.now())
            except QueueStatusError as exc:
                field = {"until": "status_until", "reason": "status_reason"}.get(exc.field, exc.field)
                self.add_error(field, str(exc))
        return values

    def clean_params(self) -> Any:
        value = self.cleaned_data["params"]
        if not isinstance(value, dict):
            raise forms.ValidationError(f"A map of switches, for example {{}}; this is {type(value).__name__}.")
        return value

    def clean_releases(self) -> Any:
        value = self.cleaned_data["releases"]
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise forms.ValidationError('A list of names, for example ["AUTO"].')
        return value


@admin.register(Queue)
class QueueAdmin(ToolAdmin):
    form = QueueForm
    tool_template = "admin_parts/queue_status.html"
    delete_confirmation_template = "admin_parts/queue_delete.html"
    delete_selected_confirmation_template = "admin_parts/queues_delete.html"
    list_display = [
        "name",
        "site_name",
        "status",
        "status_reason",
        "core_count",
        "max_memory_mb",
        "max_walltime_s",
        "storage",
    ]
    list_filter = ["status", "type", "capability", "cloud", days("last_update")]
    list_select_related = ["storage"]
    search_fields = ["name", "site_name"]
    ordering = ["name"]
    readonly_fields = ["last_update"]
    fieldsets = [
        (
            None,
            {"fields": ["name", "site_name", "type", "cloud", "grid_type", "storage"]},
        ),
        ("Status", {"fields": ["status", "status_reason", "status_until"]}),
        ("One slot", {"fields": ["core_count", "core_power", "work_dir_mb", "capability"]}),
        ("Limits", {"fields": ["min_memory_mb", "max_memory_mb", "min_walltime_s", "max_walltime_s"]}),
        (
            "Data",
            {
                "fields": [
                    "max_input_mb",
                    "direct_access_lan",
                    "direct_access_wan",
                    "max_disk_io_kbps",
                    "space_gb",
                    "transferring_limit",
                    "transfer_days_high",
                    "transfer_days_low",
                ]
            },
        ),
        ("Accepted jobs", {"fields": ["releases", "policy", "connectivity", "job_seed", "workflow", "pledged_cores"]}),
        ("Description", {"fields": ["catchall", "params", "data", "last_update"]}),
    ]
    help_texts = {
        "name": "name used by pilots; it cannot be changed later because jobs refer to it",
        "cloud": "group of sites to which the queue belongs",
        "policy": "zero shares, for example priority<600:0,type=evgen:0",
        "status": "online: takes jobs; standby: takes production jobs and work bound to it, and keeps slots in reserve; test: "
        "takes only jobs with the label test; brokeroff: finishes its jobs, new ones only if bound to it; paused, offline: "
        "pilots get no jobs, and running jobs end as usual",
        "status_reason": "why the queue has this status; a new status needs a new reason",
        "min_memory_mb": "MB; jobs that need less go elsewhere",
        "min_walltime_s": "seconds; shorter jobs go elsewhere",
        "max_walltime_s": "seconds that a job may run; empty: no limit",
        "capability": "score: one core per job; mcore: several; ucore: either, slots are cut to the size of each job",
        "releases": 'a list: ["ANY"] takes all software; ["AUTO"] or empty: the software tags of the queue; any other '
        "value: no software is found",
        "catchall": "further switches, separated by commas, as the information system gives them",
    }

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_fieldsets(request, obj)
        if obj is not None:
            return found
        return [(title, {**o, "fields": [n for n in o["fields"] if n != "status_until"]}) for title, o in found]

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """One queue, or those that were chosen in the list: with open jobs none of them is deleted."""
        objects, counts, lacking, protected = super().get_deleted_objects(objs, request)
        refusals, remarks = queue_deleting.refusals_and_remarks([obj.pk for obj in objs])
        return [*remarks, *objects], counts, lacking, [*refusals, *protected]

    def tool_context(self, request: HttpRequest, form: Any, obj: Any) -> dict[str, Any]:
        if obj is None:
            return {}
        return {"history": list(QueueStatusLog.objects.filter(queue=obj.pk).order_by("-id")[:SHOWN])}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """The status goes through its door; the other columns are written as everywhere."""
        if not change:
            with queue_status.history_says(by=actor_of(request), reason=obj.status_reason):
                super().save_model(request, obj, form, change)
            return
        if STATUS_FIELDS & set(form.changed_data):
            given = form.cleaned_data
            try:
                queue_status.set_status(
                    obj.pk,
                    given["status"],
                    by=actor_of(request),
                    reason=given["status_reason"],
                    until=given["status_until"],
                    now=timezone.now(),
                )
            except QueueStatusError as exc:  # somebody did the same while the form was open
                messages.warning(request, str(exc))
            form.changed_data = [n for n in form.changed_data if n not in STATUS_FIELDS | {"status_reason"}]
        super().save_model(request, obj, form, change)
