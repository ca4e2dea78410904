"""The resources as JSON. Names are those of the models; sizes and times carry their unit in the name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Count
from django.urls import reverse
from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from brokerage_app.models import Queue, VerdictRecord
from jedisite.identity import tokens
from jedisite.identity.one_line import check_one_line
from jedisite.models import Agent, ApiToken
from jedisite.web.choices import Choice
from jedisite.web.reasons import ReasonField
from tasks_app.api.v2.base import StrictSerializer
from tasks_app.ddm.fetching import is_made
from tasks_app.domain import progress
from tasks_app.domain.job_errors import error_of
from tasks_app.domain.states import TASK_FINAL, TaskCommand
from tasks_app.models import (
    Command,
    Dataset,
    File,
    Job,
    JobArchive,
    JobFile,
    JobMetadata,
    JobParams,
    JobStatusLog,
    Task,
    TaskStatusLog,
)
from tasks_app.models.dataset import INPUT_TYPES, UNMERGED_TYPES
from tasks_app.models.job import JobColumns
from tasks_app.params import command_parameters
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import amending, known_names
from tasks_app.submission.assignment import check_share

MOST_DATASETS = 200
MOST_JOB_FILES = 1000
LONGEST_REASON = 1000
HIGHEST_PRIORITY = 100_000


class TaskRowSerializer(serializers.ModelSerializer[Task]):
    """A task in a list."""

    class Meta:
        model = Task
        fields = [
            "id",
            "name",
            "status",
            "user",
            "vo",
            "task_type",
            "prod_source_label",
            "processing_type",
            "working_group",
            "campaign",
            "task_priority",
            "current_priority",
            "gshare",
            "nucleus",
            "site",
            "parent_id",
            "req_id",
            "progress",
            "attempt",
            "creation_date",
            "modification_time",
            "state_change_time",
            "start_time",
            "end_time",
            "error_dialog",
        ]
        read_only_fields = fields


class DatasetSerializer(serializers.ModelSerializer[Dataset]):
    task_id = serializers.IntegerField(read_only=True)

    class Meta:
        model = Dataset
        exclude = ["task", "also_state_check_time", "locked_by", "locked_time"]


class ProgressSerializer(serializers.Serializer[Any]):
    """Input files of the task's master datasets. `percent` is rounded down: 100 means all. `waiting` are in no job and not
    given up: when the task has ended, nobody processes them unless it is told to run again."""

    total = serializers.IntegerField()
    finished = serializers.IntegerField()
    failed = serializers.IntegerField()
    working = serializers.IntegerField()
    waiting = serializers.IntegerField()
    percent = serializers.IntegerField()


class VerdictSerializer(serializers.ModelSerializer[VerdictRecord]):
    """What the broker last said of the task; `skipped` has [site, code, sentence, numbers] of each site that was left out,
    `chosen` [site, weight, factors] of those that may get jobs."""

    class Meta:
        model = VerdictRecord
        fields = ["at", "kind", "sentence", "chosen", "skipped"]


class TaskSerializer(serializers.ModelSerializer[Task]):
    """One task with all its columns, and what stands around it. `datasets` are the first 200, without those of unmerged files."""

    progress = serializers.SerializerMethodField()
    datasets = serializers.SerializerMethodField()
    jobs = serializers.SerializerMethodField()
    verdict = serializers.SerializerMethodField()

    class Meta:
        model = Task
        exclude = ["locked_by", "locked_time", "fence"]

    def _datasets(self, task: Task) -> list[Dataset]:
        if not hasattr(self, "_of_task"):
            self._of_task = list(Dataset.objects.of_task(task.id))
        return self._of_task

    @extend_schema_field(ProgressSerializer)
    def get_progress(self, task: Task) -> Any:
        masters = [d for d in self._datasets(task) if d.type in INPUT_TYPES and d.master_id is None]
        return ProgressSerializer(progress.of_datasets(masters)).data

    @extend_schema_field(DatasetSerializer(many=True))
    def get_datasets(self, task: Task) -> Any:
        shown = [d for d in self._datasets(task) if d.type not in UNMERGED_TYPES]
        return DatasetSerializer(shown[:MOST_DATASETS], many=True).data

    def get_jobs(self, task: Task) -> dict[str, int]:
        """Numbers of jobs by status, archived ones included."""
        found: dict[str, int] = {}
        for model in (Job, JobArchive):
            rows = model._default_manager.filter(task_id=task.id).values_list("status").annotate(n=Count("id"))
            for status, n in rows.order_by("status"):
                found[status] = found.get(status, 0) + n
        return found

    @extend_schema_field(VerdictSerializer(allow_null=True))
    def get_verdict(self, task: Task) -> Any:
        latest = VerdictRecord.objects.filter(task_id=task.id).order_by("-id").first()
        return VerdictSerializer(latest).data if latest else None


class TaskProgressSerializer(TaskSerializer):
    """How far a task is."""

    is_final = serializers.SerializerMethodField()

    class Meta:
        model = Task
        fields = ["id", "status", "is_final", "state_change_time", "error_dialog", "progress", "jobs"]

    def get_is_final(self, task: Task) -> bool:
        return task.status in TASK_FINAL


class TaskLogSerializer(serializers.ModelSerializer[TaskStatusLog]):
    class Meta:
        model = TaskStatusLog
        exclude = ["host"]


class CommandSerializer(serializers.ModelSerializer[Command]):
    task_id = serializers.IntegerField(read_only=True)

    class Meta:
        model = Command
        fields = ["id", "task_id", "name", "owner", "created", "comment", "parameters", "status", "answer", "ended"]


def _flag(meaning: str) -> Any:
    return serializers.BooleanField(required=False, help_text=meaning)


def _word(meaning: str) -> Any:
    return serializers.CharField(required=False, help_text=meaning)


class NewCommandSerializer(StrictSerializer):
    """A command for a task, with parameters that not every command takes."""

    command = Choice(choices=[c.value for c in TaskCommand])
    reason = ReasonField(max_length=LONGEST_REASON, allow_blank=True, default="")
    soft = _flag("finish: running jobs may end first")
    sole = _flag("retry, incexec: child tasks are left alone")
    discard = _flag("retry, incexec: ranges of events that finished are processed again")
    staged = _flag("retry, incexec: files that are still being staged are used")
    keep = _flag("retry, incexec: share and priority stay as they are")
    transcend = _flag("retry, incexec: the limits on retries do not count (operators)")
    changes = serializers.DictField(required=False, help_text="incexec: task parameters to change; null takes one away")
    attempts = serializers.IntegerField(
        required=False, help_text="increase_attempts: how many each file gets; without it, as many as a retry gives"
    )
    site = _word("reassign: the site that is to take the jobs")
    nucleus = _word("reassign: the nucleus that is to get the outputs")
    cloud = _word("reassign: the cloud that is to take the task")
    back = _flag("reassign: the task goes back to the state in which it was")
    mode = _word("reassign: which jobs are ended: hard (all), soft (queued ones) or nokill")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in attrs.items() if name in command_parameters.NAMES}
        try:
            checked = command_parameters.check(
                TaskCommand(attrs["command"]), {n: v for n, v in given.items() if v is not False}
            )
            known_names.check_parameters(checked, self.context.get("tasks", ()))
        except ParamErrors as exc:
            raise serializers.ValidationError({e.field: [e.message] for e in exc.errors}) from exc
        return {"command": attrs["command"], "reason": attrs["reason"], "parameters": checked}


class NewTaskSerializer(TaskSerializer):
    """A task that was submitted just now, with sentences on what was taken and may not be what was meant."""

    warnings = serializers.SerializerMethodField()

    def get_warnings(self, task: Task) -> list[str]:
        return list(self.context["warnings"])


class SubmittedSerializer(serializers.Serializer[Any]):
    """What became of a submission under a name that a task has already. The code is PanDA's: 3 again, 5 changed."""

    id = serializers.IntegerField(source="task_id")
    code = serializers.IntegerField(source="decision.code")
    sentence = serializers.CharField(source="decision.sentence")
    changes = serializers.DictField(source="decision.changes")


def _checked(check: Callable[[], Any]) -> None:
    """Faults in parts of one field of a body, each under its place in it."""
    try:
        check()
    except ParamErrors as exc:
        found: dict[str, list[ErrorDetail]] = {}
        for e in exc.errors:
            found.setdefault("" if e.field == "gshare" else e.field, []).append(ErrorDetail(e.message, code=e.rule))
        raise serializers.ValidationError(found) from exc


class TaskChangeSerializer(StrictSerializer):
    """Changes to a task at work. Attributes and rules go by the names of task parameters; null takes a rule away."""

    priority = serializers.IntegerField(required=False, min_value=0, max_value=HIGHEST_PRIORITY)
    gshare = serializers.CharField(required=False, max_length=32)
    attributes = serializers.DictField(required=False, help_text="such as ramCount, walltime, cpuTime, coreCount")
    split_rule = serializers.DictField(required=False, help_text="such as nFilesPerJob, nGBPerJob, noAutoPause")
    reason = ReasonField(max_length=LONGEST_REASON)

    def validate_gshare(self, value: str) -> str:
        _checked(lambda: check_share(value))
        return value

    def validate_attributes(self, value: dict[str, Any]) -> dict[str, Any]:
        _checked(lambda: amending.check_attributes(value))
        return value

    def validate_split_rule(self, value: dict[str, Any]) -> dict[str, Any]:
        _checked(lambda: amending.check_rules(value))
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not any(attrs.get(name) not in (None, {}) for name in ("priority", "gshare", "attributes", "split_rule")):
            raise serializers.ValidationError("Nothing to change is given.")
        if empty := [name for name in ("attributes", "split_rule") if attrs.get(name) == {}]:
            raise serializers.ValidationError({name: "Nothing to change is given. Leave it out." for name in empty})
        return attrs


class TaskChangedSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    done = serializers.DictField(child=serializers.CharField(), help_text="a sentence for each change")


class TriedSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    partition = serializers.CharField(allow_null=True)
    matched = serializers.BooleanField()
    why = serializers.CharField()


class TaskQueueSerializer(serializers.Serializer[Any]):
    """Where a task is counted, and why."""

    id = serializers.IntegerField(source="task.id")
    queue = serializers.CharField(source="task.work_queue", allow_null=True)
    share = serializers.CharField(source="task.gshare", allow_null=True)
    queue_now = serializers.CharField(source="now.queue", allow_null=True)
    partition_now = serializers.CharField(source="now.partition", allow_null=True)
    share_now = serializers.CharField(source="now.share", allow_null=True)
    queues_tried = TriedSerializer(source="now.queues_tried", many=True)
    shares_tried = TriedSerializer(source="now.shares_tried", many=True)
    faults = serializers.ListField(source="now.faults", child=serializers.CharField())


_CONTENT = "address from which the content is fetched; null for inputs, and for what no job has stored"


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
        help_text="`failed` of an input: for good, unless a retry gives it more attempts",
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
    error_says = serializers.SerializerMethodField(help_text="what happened, in a sentence")
    error_detail = serializers.SerializerMethodField(help_text="the message of the part that failed")
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


class QueueSerializer(serializers.ModelSerializer[Queue]):
    class Meta:
        model = Queue
        exclude = ["data"]


class AgentSerializer(serializers.ModelSerializer[Agent]):
    """An agent; of its last error, the last line."""

    last_error = serializers.SerializerMethodField()

    class Meta:
        model = Agent
        exclude = ["fence", "queued_at", "unended_since"]

    def get_last_error(self, agent: Agent) -> str:
        return agent.last_error.strip().rpartition("\n")[2]


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    class Meta:
        model = ApiToken
        fields = ["id", "name", "scope", "prefix", "created", "expires", "last_used", "revoked"]


class NewTokenSerializer(StrictSerializer):
    name = serializers.CharField(max_length=100, validators=[check_one_line], help_text="what it is for")
    scope = Choice(choices=ApiToken.SCOPES, default="all", help_text="what it is good for")
    days = serializers.IntegerField(min_value=1, max_value=tokens.LONGEST_DAYS, default=tokens.USUAL_DAYS)


class MadeTokenSerializer(TokenSerializer):
    """A new token. `token` is shown this once."""

    token = serializers.CharField(read_only=True)

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]


@extend_schema_serializer(component_name="TaskParameter")
class TaskParameterSerializer(serializers.Serializer[Any]):
    """One key of the dictionary that describes a task. `inside` is empty for keys of the dictionary itself."""

    inside = serializers.CharField()
    group = serializers.CharField()
    name = serializers.CharField()
    type = serializers.CharField()
    required = serializers.BooleanField()  # type: ignore[assignment]
    meaning = serializers.CharField()
    least = serializers.FloatField(allow_null=True)
    most = serializers.FloatField(allow_null=True)
    longest = serializers.IntegerField(allow_null=True)
    choices = serializers.ListField(child=serializers.CharField())
    split_rule = serializers.CharField(allow_null=True)
