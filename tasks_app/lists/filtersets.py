"""What lists of tasks and jobs can be filtered by: one set for the pages and the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import django_filters
from django.core.exceptions import ValidationError
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django_filters.fields import IsoDateTimeField

from brokerage_app.models import DatasetReplica, VerdictRecord
from jedisite.models import AuditEntry
from jedisite.web.choices import ChoiceFilter, NameFilter
from jedisite.web.filters_by_name import NamedFilters
from tasks_app.domain import window
from tasks_app.domain.fingerprints import CATEGORIES
from tasks_app.domain.job_errors import NO_ERROR
from tasks_app.domain.states import (
    FILE_PROCESSED,
    FILE_STATES,
    TASK_FINAL,
    DatasetStatus,
    JobStatus,
    TaskStatus,
)
from tasks_app.failures.error_queries import with_main_error
from tasks_app.inputs.locality import NOT_IN_DATA_MANAGEMENT
from tasks_app.lists.named_filters import WorkQueueFilter, at_place, queue_filter, user_filter
from tasks_app.models import (
    Dataset,
    ErrorFingerprint,
    File,
    Job,
    JobFailure,
    JobRetryHistory,
    ScoutReport,
    Task,
    Worker,
    WorkerJob,
)
from tasks_app.models.dataset import DATASET_TYPES, INPUT_TYPES
from tasks_app.models.file import FileQuerySet

TaskRows = QuerySet[Task]


class StatusFilter(django_filters.BaseInFilter, ChoiceFilter):
    """One status or several with commas: `status=sent,starting,running`."""


class MomentField(IsoDateTimeField):
    """A time with or without zone, in UTC afterwards. PostgreSQL knows fewer zones than Python."""

    def to_python(self, value: Any) -> datetime | None:
        found: datetime | None = super().to_python(value)
        try:
            return None if found is None else found.astimezone(UTC)
        except (OverflowError, ValueError) as exc:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from exc


MOMENT = "Enter a time as 2026-01-31T12:00:00Z, or a day as 2026-01-31."


class MomentFilter(django_filters.IsoDateTimeFilter):
    field_class = MomentField

    def __init__(self, **more: Any) -> None:
        super().__init__(**more, error_messages={"invalid": MOMENT})


class IdFilter(django_filters.NumberFilter):
    """A whole number that fits a column of ids."""

    def __init__(self, field_name: str, **more: Any) -> None:
        super().__init__(field_name=field_name, min_value=0, max_value=2**63 - 1, decimal_places=0, **more)


def text(column: str, longest: int, label: str) -> django_filters.CharFilter:
    """Rows whose column is a text exactly."""
    return django_filters.CharFilter(field_name=column, max_length=longest, label=label)


class WindowFilter(ChoiceFilter):
    """Rows whose column is within the last hours or days: `window=12h`."""

    def __init__(self, field_name: str, label: str) -> None:
        super().__init__(field_name=field_name, choices=[(key, key) for key in window.CHOICES], label=label)

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        if not value:
            return qs
        return qs.filter(**{f"{self.field_name}__gte": timezone.now() - window.CHOICES[value]})


class TaskFilter(NamedFilters):
    status = StatusFilter(choices=[(s.value, s.value) for s in TaskStatus], label="Status")
    name = NameFilter(field_name="name", max_length=256, label="Name contains")
    user = user_filter()
    type = text("task_type", 64, "Type")
    label = text("prod_source_label", 20, "Label")
    share = text("gshare", 32, "Share")
    queue = WorkQueueFilter()
    vo = text("vo", 32, "VO")
    group = text("working_group", 32, "Working group")
    processing = text("processing_type", 64, "Processing type")
    resource_type = text("resource_type", 56, "Resource type")
    nucleus = text("nucleus", 52, "Nucleus")
    site = queue_filter(method="with_jobs_at", label="Open jobs at site")
    campaign = text("campaign", 32, "Campaign")
    reason = django_filters.CharFilter(method="refused_for", max_length=60, label="Broker's reason")
    dataset = django_filters.CharFilter(method="with_dataset", max_length=255, label="Dataset")
    stalled_for = django_filters.NumberFilter(
        method="without_progress", min_value=1, max_value=10_000, label="No progress for hours"
    )
    idle = django_filters.BooleanFilter(method="without_jobs", label="Open task without open jobs")
    has_scouts = django_filters.BooleanFilter(method="that_scouted", label="Has scouts")
    parent = IdFilter("parent_id")
    request = IdFilter("req_id")
    window = WindowFilter("modification_time", "Changed within")
    created_after = MomentFilter(field_name="creation_date", lookup_expr="gte", label="Created after")
    created_before = MomentFilter(field_name="creation_date", lookup_expr="lt", label="Created before")

    class Meta:
        model = Task
        fields: list[str] = []

    def with_jobs_at(self, queryset: TaskRows, name: str, value: str) -> TaskRows:
        return queryset.filter(id__in=Job.objects.open().filter(site=value).values("task_id"))

    def refused_for(self, queryset: TaskRows, name: str, value: str) -> TaskRows:
        """Open tasks for which the broker found no site when it was asked last, by the code of its refusal."""
        latest = VerdictRecord.objects.filter(task_id=OuterRef("pk")).order_by("-id").values("code")[:1]
        return (
            queryset.exclude(status__in=sorted(TASK_FINAL)).annotate(last_code=Subquery(latest)).filter(last_code=value)
        )

    def with_dataset(self, queryset: TaskRows, name: str, value: str) -> TaskRows:
        """Tasks that read or write a dataset, named in full."""
        return queryset.filter(id__in=Dataset.objects.filter(name=value).values("task_id"))

    def without_progress(self, queryset: TaskRows, name: str, value: Decimal) -> TaskRows:
        """Open tasks that have not changed, nor have the counters of their input, for some hours."""
        before = timezone.now() - timedelta(hours=float(value))
        moved = Dataset.objects.filter(task_id=OuterRef("pk"), modification_time__gte=before)
        still = queryset.exclude(status__in=sorted(TASK_FINAL)).filter(modification_time__lt=before)
        return still.filter(~Exists(moved))

    def without_jobs(self, queryset: TaskRows, name: str, value: bool) -> TaskRows:
        """Tasks that have not ended and have no job that has not; with false the others."""
        has_jobs = Exists(Job.objects.open().filter(task_id=OuterRef("pk")))
        ended = Q(status__in=sorted(TASK_FINAL))
        return queryset.filter(~ended, ~has_jobs) if value else queryset.filter(ended | has_jobs)

    def that_scouted(self, queryset: TaskRows, name: str, value: bool) -> TaskRows:
        reports = ScoutReport.objects.filter(task_id=OuterRef("pk"))
        return queryset.filter(Exists(reports)) if value else queryset.exclude(Exists(reports))


class JobFilter(NamedFilters):
    status = StatusFilter(choices=[(s.value, s.value) for s in JobStatus], label="Status")
    task = IdFilter("task_id", label="Task")
    site = queue_filter("site", method="at_place", label="Queue")
    node = django_filters.CharFilter("worker_node", method="at_place", max_length=128, label="Worker node")
    error = django_filters.CharFilter(method="with_error", max_length=60, label="Error (component:code)")
    fingerprint = IdFilter("fingerprint", method="of_fingerprint", label="Error fingerprint")
    user = user_filter()
    share = text("gshare", 32, "Share")
    queue = WorkQueueFilter()
    processing = text("processing_type", 64, "Processing type")
    resource_type = text("resource_type", 56, "Resource type")
    label = text("prod_source_label", 20, "Label")
    group = text("working_group", 32, "Working group")
    vo = text("vo", 32, "VO")
    nucleus = text("nucleus", 52, "Nucleus")
    attempt = django_filters.NumberFilter(
        field_name="attempt", lookup_expr="gte", min_value=1, max_value=1000, label="Minimum attempt"
    )
    dropped = django_filters.BooleanFilter(method="that_others_followed", label="Replaced by another attempt")
    cores = django_filters.NumberFilter(field_name="core_count", min_value=0, max_value=10_000, label="Cores")
    window = WindowFilter("modification_time", "Changed within")
    changed_after = MomentFilter(field_name="modification_time", lookup_expr="gte", label="Changed after")
    changed_before = MomentFilter(field_name="modification_time", lookup_expr="lt", label="Changed before")

    # No Meta.model: living and archived jobs have the same columns.

    def that_others_followed(self, queryset: QuerySet[Job], name: str, value: bool) -> QuerySet[Job]:
        """Jobs whose work went to another job; with False those that are the last of their attempts."""
        links = JobRetryHistory.objects.exclude(relation_type="merge").filter(old_job_id=OuterRef("pk"))
        return queryset.filter(Exists(links)) if value else queryset.filter(~Exists(links))

    def at_place(self, queryset: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        return queryset.filter(at_place(**{name: value}))

    def of_fingerprint(self, queryset: QuerySet[Job], name: str, value: int) -> QuerySet[Job]:
        """Jobs that failed in the same way."""
        return queryset.filter(Exists(JobFailure.objects.filter(pk=OuterRef("pk"), fingerprint_id=int(value))))

    def with_error(self, queryset: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        """Jobs of which `component:code` is the main error; nothing for a name that does not exist."""
        component, _, code = value.partition(":")
        return with_main_error(queryset, component, code)


def _known(queryset: QuerySet[Any], value: bool, prefix: str = "") -> QuerySet[Any]:
    """Errors that somebody has marked as known and expected until some time to come; with False the others."""
    known = Q(**{f"{prefix}known_until__gt": timezone.now()})
    return queryset.filter(known if value else ~known)


class FailureFilter(NamedFilters):
    """Failed jobs, as they are booked for counting."""

    category = ChoiceFilter(field_name="fingerprint__category", choices=[(c, c) for c in CATEGORIES], label="Category")
    error = django_filters.CharFilter(method="with_error", max_length=60, label="Error (component:code)")
    fingerprint = IdFilter("fingerprint_id", label="Fingerprint")
    site = queue_filter("site", label="Site")
    node = django_filters.CharFilter(field_name="node", max_length=128, label="Worker node")
    task = IdFilter("task_id", label="Task")
    user = user_filter()
    share = django_filters.CharFilter(field_name="activity", max_length=32, label="Activity (share)")
    version = django_filters.CharFilter(field_name="pilot_version", max_length=32, label="Pilot version")
    known = django_filters.BooleanFilter(method="is_known", label="Known and expected")
    window = WindowFilter("ended", "Failed within")
    since = MomentFilter(field_name="ended", lookup_expr="gte", label="Failed after")
    until = MomentFilter(field_name="ended", lookup_expr="lt", label="Failed before")

    class Meta:
        model = JobFailure
        fields: list[str] = []

    def with_error(self, queryset: QuerySet[JobFailure], name: str, value: str) -> QuerySet[JobFailure]:
        component, _, code = value.partition(":")
        if value == NO_ERROR:
            component, code = "", ""
        return queryset.filter(fingerprint__component=component, fingerprint__code=code)

    def is_known(self, queryset: QuerySet[JobFailure], name: str, value: bool) -> QuerySet[JobFailure]:
        return _known(queryset, value, "fingerprint__")


class FingerprintFilter(django_filters.FilterSet):
    category = ChoiceFilter(field_name="category", choices=[(c, c) for c in CATEGORIES])
    component = django_filters.CharFilter(field_name="component", max_length=16)
    code = django_filters.CharFilter(field_name="code", max_length=40)
    known = django_filters.BooleanFilter(method="is_known", label="Known and expected")
    seen_after = MomentFilter(field_name="last_seen", lookup_expr="gte")
    first_seen_after = MomentFilter(field_name="first_seen", lookup_expr="gte")

    class Meta:
        model = ErrorFingerprint
        fields: list[str] = []

    def is_known(self, queryset: QuerySet[ErrorFingerprint], name: str, value: bool) -> QuerySet[ErrorFingerprint]:
        return _known(queryset, value)


class WorkerFilter(NamedFilters):
    status = text("status", 80, "Status")
    site = queue_filter("site", label="Queue")
    harvester = text("harvester", 50, "Instance")
    node = text("node", 200, "Worker node")
    worker = IdFilter("worker_id", label="Worker number")
    job = django_filters.NumberFilter(method="of_job", min_value=0, max_value=2**63 - 1, decimal_places=0, label="Job")
    empty = django_filters.BooleanFilter(method="without_job", label="Never had a job")
    window = WindowFilter("last_update", "Changed within")

    class Meta:
        model = Worker
        fields: list[str] = []

    def of_job(self, queryset: QuerySet[Worker], name: str, value: int) -> QuerySet[Worker]:
        """Workers that were given a job."""
        given = WorkerJob.objects.filter(
            job_id=int(value), harvester=OuterRef("harvester"), worker_id=OuterRef("worker_id")
        )
        return queryset.filter(Exists(given))

    def without_job(self, queryset: QuerySet[Worker], name: str, value: bool) -> QuerySet[Worker]:
        given = WorkerJob.objects.filter(harvester=OuterRef("harvester"), worker_id=OuterRef("worker_id"))
        return queryset.filter(~Exists(given) if value else Exists(given))


class FileFilter(django_filters.FilterSet):
    """Files of one dataset."""

    status = StatusFilter(choices=[(s.value, s.value) for s in FILE_STATES], method="seen_in")
    lfn = django_filters.CharFilter(field_name="lfn", max_length=1024)

    class Meta:
        model = File
        fields: list[str] = []

    def seen_in(self, queryset: FileQuerySet, name: str, value: list[str]) -> FileQuerySet:
        """Inputs that have failed for good are failed, whatever the agents have them as."""
        return queryset.seen_in(value)


class TaskFileFilter(FileFilter):
    """Files of one task, through all its datasets."""

    dataset = IdFilter("dataset_id")
    type = ChoiceFilter(field_name="type", choices=[(use, use) for use in DATASET_TYPES], label="Use")
    unfinished = django_filters.BooleanFilter(method="that_remain", label="Unfinished")

    def that_remain(self, queryset: QuerySet[File], name: str, value: bool) -> QuerySet[File]:
        """Files that are not done: neither finished nor read by a merge already."""
        done = sorted(FILE_PROCESSED)
        return queryset.exclude(status__in=done) if value else queryset.filter(status__in=done)


class NamedFileFilter(FileFilter):
    """Files of all datasets, by name: there are too many to look at all."""

    lfn = django_filters.CharFilter(field_name="lfn", max_length=1024, required=True)
    task = IdFilter("task_id")
    dataset = IdFilter("dataset_id")


class AuditFilter(django_filters.FilterSet):
    """Entries of the audit trail. An object is named by its kind and its id together."""

    actor = text("actor", 128, "Who")
    action = text("action", 64, "What")
    object_type = text("object_type", 32, "Kind of object")
    object_id = text("object_id", 64, "Object id")
    window = WindowFilter("at", "Within")
    since = MomentFilter(field_name="at", lookup_expr="gte", label="Since")
    until = MomentFilter(field_name="at", lookup_expr="lt", label="Until")

    class Meta:
        model = AuditEntry
        fields: list[str] = []

    @property
    def form(self) -> Any:
        form = super().form
        if form.is_bound and form.data.get("object_id") and not form.data.get("object_type"):
            form.add_error("object_id", "object_id needs object_type.")
        return form


class DatasetFilter(NamedFilters):
    """Uses of datasets by tasks."""

    task = IdFilter("task_id")
    name = NameFilter(field_name="name", max_length=255, whole=True, label="Name")
    contains = NameFilter(field_name="name", max_length=255, label="Name contains")
    container = text("container_name", 255, "Container")
    type = ChoiceFilter(field_name="type", choices=[(use, use) for use in DATASET_TYPES], label="Use")
    status = StatusFilter(choices=[(s.value, s.value) for s in DatasetStatus], label="Status")
    task_status = StatusFilter(
        field_name="task__status", choices=[(s.value, s.value) for s in TaskStatus], label="Task status"
    )
    user = user_filter("task__user")
    in_use = django_filters.BooleanFilter(method="of_open_tasks", label="Input of an open task")
    not_ready = django_filters.BooleanFilter(method="with_files_not_ready", label="Files not ready")
    missing = django_filters.BooleanFilter(method="with_missing_files", label="Files missing")
    replicas = ChoiceFilter(method="that_lie", choices=[(n, n) for n in ("whole", "part", "none")], label="Replicas")
    changed_before = MomentFilter(field_name="modification_time", lookup_expr="lt", label="Unchanged since")

    class Meta:
        model = Dataset
        fields: list[str] = []

    def of_open_tasks(self, queryset: QuerySet[Dataset], name: str, value: bool) -> QuerySet[Dataset]:
        inputs = queryset.filter(type__in=INPUT_TYPES).exclude(name__in=NOT_IN_DATA_MANAGEMENT)
        inputs = inputs.exclude(task__status__in=sorted(TASK_FINAL))
        return inputs if value else queryset.exclude(pk__in=inputs.values("pk"))

    def with_files_not_ready(self, queryset: QuerySet[Dataset], name: str, value: bool) -> QuerySet[Dataset]:
        return queryset.filter(**{"files__gt" if value else "files__lte": F("files_to_be_used")})

    def with_missing_files(self, queryset: QuerySet[Dataset], name: str, value: bool) -> QuerySet[Dataset]:
        return queryset.filter(files_missing__gt=0) if value else queryset.filter(files_missing=0)

    def that_lie(self, queryset: QuerySet[Dataset], name: str, value: str) -> QuerySet[Dataset]:
        """Inputs by what data management said: whole at some storage, only in part, or nowhere."""
        held = DatasetReplica.objects.filter(dataset=OuterRef("name"))
        inputs = (
            queryset.filter(type="input").exclude(status=DatasetStatus.REMOVED).exclude(name__in=NOT_IN_DATA_MANAGEMENT)
        )
        if value == "none":
            return inputs.filter(~Exists(held))
        whole = Exists(held.filter(complete=True))
        return inputs.filter(whole) if value == "whole" else inputs.filter(Exists(held), ~whole)
