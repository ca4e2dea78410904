"""The shapes of jobs and of files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tasks_app.ddm.fetching import is_made
from tasks_app.domain.job_errors import error_of
from tasks_app.models import File, Job, JobArchive, JobFile, JobMetadata, JobParams, JobStatusLog
from tasks_app.models.job import JobColumns

MOST_JOB_FILES = 1000


_CONTENT = "address of the content; null for inputs, and for files that no job has stored"


def _content_of(context: Mapping[str, Any], file_id: int | None, type: str, surl: str | None) -> str | None:
    if not file_id or not is_made(type, surl):
        return None
    path = reverse("api-v2:file-content", args=[file_id])
    request = context.get("request")
    return str(request.build_absolute_uri(path)) if request is not None else path


class FileSerializer(serializers.ModelSerializer[File]):
    """A file; its queryset is `as_seen`."""

    status = serializers.CharField(
        source="seen_status",
        read_only=True,
        help_text="`failed` of an input is permanent, unless a retry gives it more attempts",
    )

    content = serializers.SerializerMethodField(help_text=_CONTENT)

    class Meta:
        model = File
        fields = [
            "id",
            "task_id",
            "dataset_id",
            "lfn",
            "scope",
            "guid",
            "type",
            "status",
            "size",
            "checksum",
            "events",
            "start_event",
            "end_event",
            "first_event",
            "attempt",
            "max_attempt",
            "failed_attempt",
            "job_id",
            "lumi_block",
            "boundary_id",
            "creation_date",
            "last_attempt_time",
            "surl",
            "content",
        ]

    def get_content(self, file: File) -> str | None:
        return _content_of(self.context, file.id, file.type, file.surl)


class JobRowSerializer(serializers.ModelSerializer[Job]):
    """A job in a list."""

    class Meta:
        model = Job
        fields = [
            "id",
            "task_id",
            "name",
            "status",
            "sub_status",
            "user",
            "site",
            "worker_node",
            "transformation",
            "processing_type",
            "prod_source_label",
            "current_priority",
            "attempt",
            "core_count",
            "min_ram_mb",
            "creation_time",
            "modification_time",
            "start_time",
            "end_time",
            "events",
            "max_rss_kb",
            "cpu_time_s",
            "pilot_error_code",
            "pilot_error_diag",
            "exe_error_code",
            "exe_error_diag",
            "trans_exit_code",
        ]


class JobFileSerializer(serializers.ModelSerializer[JobFile]):
    """A file of a job: `id` is that of this row, `file_id` that of the file."""

    content = serializers.SerializerMethodField(help_text=_CONTENT)

    class Meta:
        model = JobFile
        exclude = ["job_id", "task_id"]

    def get_content(self, file: JobFile) -> str | None:
        return _content_of(self.context, file.file_id, file.type, file.surl)


class JobLogSerializer(serializers.ModelSerializer[JobStatusLog]):
    class Meta:
        model = JobStatusLog
        fields = ["status", "at", "site", "by", "reason"]


class JobSerializer(serializers.ModelSerializer[Job]):
    """One job with all its columns, the first 1 000 of its files, its command line, the payload's report and its history."""

    archived = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField(help_text="component and code of the error that explains a job")
    error_says = serializers.SerializerMethodField(help_text="one sentence on what happened")
    error_detail = serializers.SerializerMethodField(help_text="message of the component that failed")
    params = serializers.SerializerMethodField()
    metadata = serializers.SerializerMethodField()
    files = serializers.SerializerMethodField()
    log = serializers.SerializerMethodField()

    class Meta:
        model = Job
        exclude = ["fence", "secret_hash"]

    def get_archived(self, job: JobColumns) -> bool:
        return isinstance(job, JobArchive)

    def get_error(self, job: JobColumns) -> str | None:
        error = error_of(vars(job))
        return error.key if error else None

    def get_error_says(self, job: JobColumns) -> str | None:
        error = error_of(vars(job))
        return error.sentence if error else None

    def get_error_detail(self, job: JobColumns) -> str | None:
        error = error_of(vars(job))
        return error.detail if error else None

    def get_params(self, job: JobColumns) -> str | None:
        return JobParams.objects.filter(pk=job.id).values_list("params", flat=True).first()

    @extend_schema_field({"nullable": True})
    def get_metadata(self, job: JobColumns) -> Any:
        return JobMetadata.objects.filter(pk=job.id).values_list("metadata", flat=True).first()

    @extend_schema_field(JobFileSerializer(many=True))
    def get_files(self, job: JobColumns) -> Any:
        files = JobFile.objects.filter(job_id=job.id).order_by("id")[:MOST_JOB_FILES]
        return JobFileSerializer(files, many=True, context=self.context).data

    @extend_schema_field(JobLogSerializer(many=True))
    def get_log(self, job: JobColumns) -> Any:
        return JobLogSerializer(
            JobStatusLog.objects.filter(job_id=job.id).order_by("id")[:MOST_JOB_FILES], many=True
        ).data
