"""The shapes of tasks, their datasets and their commands, and of what is sent to change them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.db.models import Count
from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from brokerage_app.models import VerdictRecord
from jedisite.web.choices import Choice
from jedisite.web.reasons import ReasonField
from tasks_app.api.v2.base import StrictSerializer
from tasks_app.domain import progress
from tasks_app.domain.states import TASK_FINAL
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.inputs.missing_files import missing_of, total
from tasks_app.models import Command, Dataset, Job, JobArchive, Task, TaskStatusLog
from tasks_app.models.dataset import INPUT_TYPES, UNMERGED_TYPES
from tasks_app.params import command_parameters
from tasks_app.params.faults import ParamErrors
from tasks_app.params.kinds import Key
from tasks_app.submission import known_names, parameter_changes
from tasks_app.submission.assignment import check_share

MOST_DATASETS = 200
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
    """The broker's last decision on the task; `skipped` has [site, code, sentence, numbers] of each site that was left out,
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
    goal = serializers.SerializerMethodField(help_text="per cent of the input that is to succeed, as it was submitted")
    super_status = serializers.CharField(read_only=True)
    real_modification_time = serializers.DateTimeField(read_only=True)

    class Meta:
        model = Task
        exclude = ["locked_by", "locked_time", "fence"]

    def get_goal(self, task: Task) -> float | None:
        return None if task.goal is None else task.goal / 10

    def _datasets(self, task: Task) -> list[Dataset]:
        if not hasattr(self, "_of_task"):
            self._of_task = list(Dataset.objects.of_task(task.id))
        return self._of_task

    @extend_schema_field(ProgressSerializer)
    def get_progress(self, task: Task) -> Any:
        masters = [d for d in self._datasets(task) if d.type in INPUT_TYPES and d.master_id is None]
        return ProgressSerializer(progress.of_datasets(masters, total(missing_of(masters).values()).files)).data

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


_FIELDS: Final[Mapping[str, type[serializers.Field[Any, Any, Any, Any]]]] = {
    "flag": serializers.BooleanField,
    "text": serializers.CharField,
    "integer": serializers.IntegerField,
    "number": serializers.FloatField,
    "object": serializers.DictField,
}


class NewCommandSerializer(StrictSerializer):
    """A command for a task, with parameters that not every command takes."""

    command = Choice(choices=[c.value for c in TaskCommand])
    reason = ReasonField(max_length=LONGEST_REASON, allow_blank=True, default="")

    def get_fields(self) -> dict[str, Any]:
        """With the parameters of all commands, which `command_parameters` has and checks."""
        found: dict[str, Any] = super().get_fields()
        takers: dict[Key, list[str]] = {}
        for command, keys in command_parameters.PARAMETERS.items():
            for key in keys:
                takers.setdefault(key, []).append(command.value)
        for key, names in takers.items():
            said = f"{', '.join(names)}: {key.meaning}"
            if key.name in found:
                found[key.name].help_text += f"; {said}"
            else:
                found[key.name] = _FIELDS[key.kind](required=False, help_text=said)
        return found

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
    """A newly submitted task, with warnings about parameters that may not be what was meant."""

    warnings = serializers.SerializerMethodField()

    def get_warnings(self, task: Task) -> list[str]:
        return list(self.context["warnings"])


class SubmittedSerializer(serializers.Serializer[Any]):
    """The result of a submission under the name of an existing task. The code is PanDA's: 3 runs again, 5 changed."""

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
        _checked(lambda: parameter_changes.check_attributes(value))
        return value

    def validate_split_rule(self, value: dict[str, Any]) -> dict[str, Any]:
        _checked(lambda: parameter_changes.check_rules(value))
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if empty := [name for name in ("attributes", "split_rule") if attrs.get(name) == {}]:
            raise serializers.ValidationError({name: "No change is given: leave this field out." for name in empty})
        if not any(attrs.get(name) is not None for name in ("priority", "gshare", "attributes", "split_rule")):
            raise serializers.ValidationError("No change is given.")
        return attrs


class TaskChangedSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    done = serializers.DictField(child=serializers.CharField(), help_text="one sentence for each change")


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
    refused = serializers.CharField(help_text="why this site refuses it, and what to do instead; empty: it is accepted")
