"""What lists of tasks and jobs can be filtered by: one set for the pages and the API."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import django_filters
from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, Q, QuerySet
from django_filters.fields import IsoDateTimeField

from tasks_app.models import Dataset, File, Job, Task, Worker, WorkerJob
from tasks_app.states import DatasetStatus, FileStatus, JobStatus, TaskStatus


class StatusFilter(django_filters.BaseInFilter, django_filters.ChoiceFilter):
    """One status or several with commas: `status=sent,starting,running`."""


class MomentField(IsoDateTimeField):
    """A time with or without zone, in UTC afterwards. PostgreSQL knows fewer zones than Python."""

    def to_python(self, value: Any) -> datetime | None:
        found: datetime | None = super().to_python(value)
        try:
            return None if found is None else found.astimezone(UTC)
        except (OverflowError, ValueError) as exc:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from exc


class MomentFilter(django_filters.IsoDateTimeFilter):
    field_class = MomentField


class IdFilter(django_filters.NumberFilter):
    """A whole number that fits a column of ids."""

    def __init__(self, field_name: str) -> None:
        super().__init__(field_name=field_name, min_value=0, max_value=2**63 - 1, decimal_places=0)


class TaskFilter(django_filters.FilterSet):
    status = StatusFilter(choices=[(s.value, s.value) for s in TaskStatus])
    user = django_filters.CharFilter(field_name="user", max_length=128)
    name = django_filters.CharFilter(field_name="name", lookup_expr="icontains", max_length=256, label="Name contains")
    type = django_filters.CharFilter(field_name="task_type", max_length=64)
    label = django_filters.CharFilter(field_name="prod_source_label", max_length=20)
    share = django_filters.CharFilter(field_name="gshare", max_length=32)
    queue = IdFilter("work_queue_id")
    parent = IdFilter("parent_id")
    request = IdFilter("req_id")
    created_after = MomentFilter(field_name="creation_date", lookup_expr="gte")
    created_before = MomentFilter(field_name="creation_date", lookup_expr="lt")

    class Meta:
        model = Task
        fields: list[str] = []


class JobFilter(django_filters.FilterSet):
    status = StatusFilter(choices=[(s.value, s.value) for s in JobStatus])
    task = IdFilter("task_id")
    site = django_filters.CharFilter(field_name="site", max_length=128)
    user = django_filters.CharFilter(field_name="user", max_length=128)
    node = django_filters.CharFilter(field_name="worker_node", max_length=128)
    share = django_filters.CharFilter(field_name="gshare", max_length=32)
    queue = IdFilter("work_queue_id")
    error = django_filters.CharFilter(method="with_error", max_length=40, label="Error (component:code)")
    changed_after = MomentFilter(field_name="modification_time", lookup_expr="gte")
    changed_before = MomentFilter(field_name="modification_time", lookup_expr="lt")

    # No Meta.model: living and archived jobs have the same columns.

    def with_error(self, queryset: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        """Jobs of `component:code`, as errors are named on the pages; nothing for a name that does not exist."""
        component, _, code = value.partition(":")
        field = ERROR_FIELDS.get(component)
        if field == "trans_exit_code":
            # Another part that failed explains more than the exit code; then the job is listed under that part.
            return queryset.filter(Q(pilot_error_code=1305) | Q(pilot_error_code__isnull=True), trans_exit_code=code)
        if field is None or not re.fullmatch("-?[0-9]{1,9}", code):
            return queryset.none()
        return queryset.filter(**{field: int(code)})


class WorkerFilter(django_filters.FilterSet):
    status = django_filters.CharFilter(field_name="status", max_length=80)
    site = django_filters.CharFilter(field_name="site", max_length=128, label="Queue")
    harvester = django_filters.CharFilter(field_name="harvester", max_length=50, label="Instance")
    worker = IdFilter("worker_id")
    job = django_filters.NumberFilter(method="of_job", min_value=0, max_value=2**63 - 1, decimal_places=0, label="Job")

    class Meta:
        model = Worker
        fields: list[str] = []

    def of_job(self, queryset: QuerySet[Worker], name: str, value: int) -> QuerySet[Worker]:
        """Workers that were given a job."""
        given = WorkerJob.objects.filter(
            job_id=int(value), harvester=OuterRef("harvester"), worker_id=OuterRef("worker_id")
        )
        return queryset.filter(Exists(given))


class FileFilter(django_filters.FilterSet):
    """Files of one dataset."""

    status = StatusFilter(choices=[(s.value, s.value) for s in FileStatus])
    lfn = django_filters.CharFilter(field_name="lfn", max_length=1024)

    class Meta:
        model = File
        fields: list[str] = []


class NamedFileFilter(FileFilter):
    """Files of all datasets, by name: there are too many to look at all."""

    lfn = django_filters.CharFilter(field_name="lfn", max_length=1024, required=True)
    task = IdFilter("task_id")
    dataset = IdFilter("dataset_id")


class DatasetFilter(django_filters.FilterSet):
    task = IdFilter("task_id")
    name = django_filters.CharFilter(field_name="name", max_length=255)
    container = django_filters.CharFilter(field_name="container_name", max_length=255)
    type = django_filters.CharFilter(field_name="type", max_length=20)
    status = StatusFilter(choices=[(s.value, s.value) for s in DatasetStatus])

    class Meta:
        model = Dataset
        fields: list[str] = []


ERROR_FIELDS = {
    "pilot": "pilot_error_code",
    "exe": "exe_error_code",
    "ddm": "ddm_error_code",
    "brokerage": "brokerage_error_code",
    "jobdispatcher": "dispatcher_error_code",
    "taskbuffer": "task_buffer_error_code",
    "sup": "sup_error_code",
    "payload": "trans_exit_code",
}
