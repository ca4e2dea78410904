"""API v2: jobs, their files and their history."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.response import Response

from jedisite.identity.callers import Right
from jedisite.web.paging import OldestFirst
from tasks_app.api.v2.base import Lists, OfTask, Resource, none_of
from tasks_app.api.v2.job_serializers import JobFileSerializer, JobLogSerializer, JobRowSerializer, JobSerializer
from tasks_app.lists.filtersets import JobFilter
from tasks_app.lists.job_columns import JOBS
from tasks_app.models import Job, JobArchive, JobFile, JobRetryHistory, JobStatusLog, Task
from tasks_app.models.job import JobColumns, living_or_archived

ARCHIVED = OpenApiParameter("archived", OpenApiTypes.BOOL, description="list archived jobs instead of recent ones")


def job_of(number: int) -> JobColumns:
    """A job, from the living table or the archive. Raises NotFound."""
    found = living_or_archived(number)
    if found is None:
        raise none_of("job", number)
    return found


class JobLists(Lists, Resource):
    """Jobs, newest first: the living ones, or with `archived=true` those that ended long ago."""

    queryset = Job.objects.all()
    serializer_class = JobRowSerializer
    filterset_class = JobFilter
    columns = JOBS
    switches = ("archived",)
    small_orderings = (
        "status",
        "site",
        "worker_node",
        "core_count",
        "min_ram_mb",
        "max_rss_kb",
        "attempt",
        "current_priority",
        "modification_time",
        "state_change_time",
        "creation_time",
        "start_time",
        "end_time",
        "heartbeat_at",
        "user",
        "gshare",
        "events",
        "input_bytes",
        "output_bytes",
        "cpu_time_s",
    )

    def jobs(self) -> QuerySet[Any]:
        archived = self.action == "list" and self.switch("archived")
        return JobArchive.objects.all() if archived else Job.objects.all()


class TaskJobViewSet(JobLists, OfTask):
    rights = {"list": Right.READ}

    def of_task(self, task: Task) -> QuerySet[Any]:
        return self.jobs().filter(task_id=task.id)

    @extend_schema(
        summary="Jobs of a task",
        description="Newest first: recent jobs, or with `archived=true` those that ended long ago.",
        parameters=[ARCHIVED],
    )
    def list(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return super().list(request, *args, **kwargs)


class JobViewSet(JobLists):
    rights = {"list": Right.READ, "retrieve": Right.READ}

    def get_queryset(self) -> Any:
        return super().get_queryset() if getattr(self, "swagger_fake_view", False) else self.jobs()

    @extend_schema(
        summary="Jobs",
        description="Newest first: recent jobs, or with `archived=true` those that ended long ago. `error=` is a "
        "component and a code, such as `pilot:1305`.",
        parameters=[ARCHIVED],
    )
    def list(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return super().list(request, *args, **kwargs)

    @extend_schema(
        summary="A job",
        description="All its columns, the first 1 000 of its files, its command line, the payload's report and the "
        "job's history; archived jobs are found, too. Memory in MB and kB, times in seconds, as the names say.",
        responses=JobSerializer,
    )
    def retrieve(self, request: Any, pk: int) -> Response:
        found: Any = job_of(pk)
        return Response(JobSerializer(found, context=self.get_serializer_context()).data)


class OfJob(Lists, Resource):
    """What belongs to one job. Answers 404 when there is no such job."""

    rights = {"list": Right.READ}
    pagination_class = OldestFirst

    def get_queryset(self) -> QuerySet[Any]:
        found: QuerySet[Any] = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return found
        return found.filter(job_id=job_of(self.kwargs["job_id"]).id)


@extend_schema_view(
    list=extend_schema(summary="Files of a job", description="What it reads and writes, with sizes in bytes.")
)
class JobFileViewSet(OfJob):
    queryset = JobFile.objects.all()
    serializer_class = JobFileSerializer


@extend_schema_view(
    list=extend_schema(
        summary="History of a job", description="Its states, each with who set it and why, oldest first."
    )
)
class JobLogViewSet(OfJob):
    queryset = JobStatusLog.objects.all()
    serializer_class = JobLogSerializer


class RetrySerializer(serializers.ModelSerializer[JobRetryHistory]):
    """A job that was followed by another one; `relation_type` says why, such as retry or merge."""

    class Meta:
        model = JobRetryHistory
        fields = ["id", "task_id", "old_job_id", "new_job_id", "origin_job_id", "relation_type", "at"]


@extend_schema_view(
    list=extend_schema(
        summary="Retries and merges of jobs",
        description="Of one task, newest first: which job retries or merges which.",
    )
)
class TaskRetryViewSet(Lists, OfTask):
    rights = {"list": Right.READ}
    queryset = JobRetryHistory.objects.all()
    serializer_class = RetrySerializer
