"""API v2: tasks and their commands. Views only translate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import exceptions, mixins, status
from rest_framework.response import Response

from jedisite.identity.callers import Right
from jedisite.vocabulary.words import sentence
from jedisite.web.problems import Conflict, InvalidFields
from tasks_app.api.v2 import idempotency
from tasks_app.api.v2 import task_serializers as s
from tasks_app.api.v2.base import Lists, OfTask, Resource, check_command_right, one_of
from tasks_app.lifecycle import rights
from tasks_app.lists.filtersets import TaskFilter
from tasks_app.lists.task_columns import TASKS
from tasks_app.models import Command, Task, TaskParams, TaskStatusLog
from tasks_app.params.acts import Change
from tasks_app.params.resubmission import Code
from tasks_app.params.schema import ParamErrors, describe
from tasks_app.submission import assignment, command_queue, parameter_changes, submitting
from tasks_app.submission.submitting import SubmissionRefusedError


def parameters_schema() -> dict[str, Any]:
    """The submitted dictionary in words of JSON schema: names, meanings and limits; `TaskParameter` says more."""
    keys = [key for key in describe() if not key.inside]
    properties: dict[str, Any] = {}
    for key in keys:
        properties[key.name] = {"description": f"{key.meaning} ({key.type})"}
        if key.longest is not None and key.type.startswith("text"):
            properties[key.name]["maxLength"] = key.longest
    return {"type": "object", "required": [key.name for key in keys if key.required], "properties": properties}


ALLOW_ACTIVE = "allow_active"
_SUBMITTED: dict[int, int] = {
    Code.NEW: status.HTTP_201_CREATED,
    Code.AGAIN: status.HTTP_202_ACCEPTED,
    Code.PATCHED: status.HTTP_200_OK,
}


@extend_schema_view(
    list=extend_schema(
        summary="Tasks",
        description="Newest first. Tasks with a higher priority are served first. `progress` in per cent.",
    ),
    retrieve=extend_schema(
        summary="A task",
        description="All its columns, with its datasets, the numbers of its jobs, and the broker's last decision. "
        "Memory and times are in the units given beside them.",
    ),
)
class TaskViewSet(Lists, mixins.RetrieveModelMixin, Resource):
    rights = {"list": Right.READ, "retrieve": Right.READ, "create": Right.SUBMIT}
    queryset = Task.objects.all()
    filterset_class = TaskFilter
    orderings = ("creation_date", "current_priority", "name")
    small_orderings = (
        "status",
        "state_change_time",
        "user",
        "task_type",
        "gshare",
        "task_priority",
        "nucleus",
        "core_count",
        "ram_count",
        "resource_type",
        "attempt",
        "start_time",
        "end_time",
        "modification_time",
        "ttc_requested",
        "cpu_efficiency",
        "req_id",
    )
    columns = TASKS
    instead = {"delete": 'A task is ended by POST /api/v2/tasks/<id>/commands/ with {"command": "kill"}.'}

    def known_parameters(self) -> set[str]:
        return {ALLOW_ACTIVE} if self.action == "create" else super().known_parameters()

    def get_serializer_class(self) -> Any:
        return s.TaskRowSerializer if self.action == "list" else s.TaskSerializer

    def filter_queryset(self, queryset: Any) -> Any:
        return super().filter_queryset(queryset) if self.action == "list" else queryset

    @extend_schema(
        summary="Submit a task",
        description="The body is the JEDI task-parameter dictionary; /api/v2/task-parameters/ describes every key. "
        "For 24 hours, the same caller and Idempotency-Key get the same task. With uniqueTaskName in the body, an "
        "analysis task with the name of an earlier task runs that task again if it has ended (202), or is refused "
        "(409); with allow_active=true a user's running task is changed in place (200).",
        request={"application/json": parameters_schema()},
        responses={200: s.SubmittedSerializer, 201: s.NewTaskSerializer, 202: s.SubmittedSerializer},
        parameters=[
            OpenApiParameter(idempotency.HEADER, OpenApiTypes.STR, OpenApiParameter.HEADER),
            OpenApiParameter(ALLOW_ACTIVE, OpenApiTypes.BOOL, description="change a running task of the same name"),
        ],
    )
    def create(self, request: Any) -> Response:
        by = self.actor()
        key = idempotency.checked_key(request.headers.get(idempotency.HEADER))
        try:
            submission = submitting.check(request.data, self.caller)
            with transaction.atomic():
                reply = self._submit(submission, by, key, request.data)
        except ParamErrors as exc:
            raise InvalidFields({"field": e.field, "rule": e.rule, "message": e.message} for e in exc.errors) from exc
        except (SubmissionRefusedError, command_queue.CommandRefusedError) as exc:
            raise Conflict(sentence(exc)) from exc
        location = reverse("api-v2:task", kwargs={"pk": reply["id"]})
        return Response(reply, status=_SUBMITTED[reply.get("code", Code.NEW)], headers={"Location": location})

    def _submit(self, submission: submitting.Submission, by: str, key: str | None, body: Any) -> dict[str, Any]:
        """The task as JSON: a new one, or the one that was submitted under the same key."""
        taken = idempotency.take(by, key, body) if key else None
        if taken and taken.reply is not None:
            return dict(taken.reply)
        done = submitting.submit(
            submission, by=by, allow_active=self.switch(ALLOW_ACTIVE), most_active=settings.JEDI_MOST_ACTIVE_TASKS
        )
        if done.is_new:
            task = Task.objects.get(pk=done.task_id)
            reply = dict(s.NewTaskSerializer(task, context={"warnings": done.warnings}).data)
        else:
            reply = dict(s.SubmittedSerializer(done).data)
        if taken:
            taken.task_id, taken.reply = done.task_id, reply
            taken.save(update_fields=["task_id", "reply"])
        return reply


class TaskProgressViewSet(OfTask):
    rights = {"retrieve": Right.READ}
    queryset = Task.objects.all()
    serializer_class = s.TaskProgressSerializer

    @extend_schema(
        summary="Progress of a task",
        description="For scripts that wait for a task: its state, whether that state is final, the input files that "
        "are done, and the numbers of its jobs by state.",
        responses=s.TaskProgressSerializer,
    )
    def retrieve(self, request: Any, task_id: int) -> Response:
        return Response(s.TaskProgressSerializer(self.task()).data)


class TaskParamsViewSet(OfTask):
    rights = {"retrieve": Right.READ}
    queryset = TaskParams.objects.all()
    serializer_class = s.TaskSerializer

    @extend_schema(
        summary="The submitted dictionary of a task",
        description="With the refiner's additions and all later changes.",
        responses={200: parameters_schema()},
    )
    def retrieve(self, request: Any, task_id: int) -> Response:
        return Response(one_of(TaskParams, task_id).params)


@extend_schema_view(
    list=extend_schema(
        summary="History of a task", description="Its states, each with who set it and why, newest first."
    )
)
class TaskLogViewSet(Lists, OfTask):
    rights = {"list": Right.READ}
    queryset = TaskStatusLog.objects.all()
    serializer_class = s.TaskLogSerializer


@extend_schema_view(
    list=extend_schema(summary="Commands given to a task", description="Newest first, each with its result.")
)
class TaskCommandViewSet(Lists, OfTask):
    rights = {"list": Right.READ, "create": Right.SUBMIT}
    queryset = Command.objects.all()
    serializer_class = s.CommandSerializer

    @extend_schema(
        summary="Give a command to a task",
        description="409 when the task's state does not accept the command, or it would find nothing to do. "
        "The agent commando carries it out within seconds.",
        request=s.NewCommandSerializer,
        responses={202: s.CommandSerializer},
    )
    def create(self, request: Any, task_id: int) -> Response:
        task = self.task()
        # Who may command nobody's task learns no more.
        check_command_right(self.caller, task)
        body = s.NewCommandSerializer(data=request.data, context={"tasks": [task]})
        body.is_valid(raise_exception=True)
        given = body.validated_data
        refused = rights.refusal(self.caller, given["command"], task, given["parameters"])
        if refused:
            raise exceptions.PermissionDenied(refused)
        try:
            command = command_queue.give_command(
                task_id, given["command"], by=self.actor(), reason=given["reason"], parameters=given["parameters"]
            )
        except command_queue.CommandRefusedError as exc:
            raise Conflict(sentence(exc)) from exc
        command.refresh_from_db()
        return Response(s.CommandSerializer(command).data, status=status.HTTP_202_ACCEPTED)


_CHANGES: Mapping[str, tuple[Change, Callable[..., str]]] = {
    "priority": (Change.PRIORITY, parameter_changes.change_priority),
    "gshare": (Change.SHARE, parameter_changes.change_share),
    "attributes": (Change.NEEDS, parameter_changes.change_attributes),
    "split_rule": (Change.SPLIT_RULE, parameter_changes.change_split_rule),
}
"""What may stand in the body of a change: the act whose rights it needs, and the door."""


class TaskChangeViewSet(OfTask):
    """Changes to a task at work: priority, share, needs of its jobs, split rule."""

    rights = {"create": Right.SUBMIT}
    queryset = Task.objects.all()
    serializer_class = s.TaskChangeSerializer

    @extend_schema(
        summary="Change a task",
        description="All changes are made, or none if a field is wrong or the task has ended (409). Priority and "
        "share can be changed by production managers and administrators, the rest also by the owner.",
        request=s.TaskChangeSerializer,
        responses={200: s.TaskChangedSerializer},
    )
    def create(self, request: Any, task_id: int) -> Response:
        task = self.task()
        # Who may command nobody's task learns no more.
        check_command_right(self.caller, task)
        body = s.TaskChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        by, given = self.actor(), body.validated_data
        wanted = {name: change for name, change in _CHANGES.items() if name in given}
        for change, _ in wanted.values():
            if refused := rights.refusal(self.caller, change.value, task):
                raise exceptions.PermissionDenied(refused)
        try:
            with transaction.atomic():
                done = {
                    name: door(task_id, given[name], by=by, reason=given["reason"])
                    for name, (_, door) in wanted.items()
                }
        except parameter_changes.CannotChangeError as exc:
            raise Conflict(sentence(exc)) from exc
        except ParamErrors as exc:
            raise InvalidFields(
                {"field": _place_in(given, e.field), "rule": e.rule, "message": e.message} for e in exc.errors
            ) from exc
        return Response({"id": task_id, "done": done})


def _place_in(given: dict[str, Any], name: str) -> str:
    """Where in the body of a change a fault lies that names a task parameter."""
    if name == "gshare":
        return name
    where = "attributes" if name in given.get("attributes", {}) else "split_rule"
    return f"{where}.{name}".rstrip(".")


class TaskQueueViewSet(OfTask):
    """The work queue and the global share of a task, and why: every one that was tried, in order."""

    rights = {"retrieve": Right.READ}
    queryset = Task.objects.select_related("work_queue")
    serializer_class = s.TaskQueueSerializer

    @extend_schema(
        summary="Work queue and share of a task",
        description="queue and share are those of the task. The rest follows from the queues and shares as configured now.",
        responses=s.TaskQueueSerializer,
    )
    def retrieve(self, request: Any, task_id: int) -> Response:
        task = self.task()
        return Response(s.TaskQueueSerializer({"task": task, "now": assignment.explained(task)}).data)


class TaskParameterViewSet(Resource):
    rights = {"list": Right.NOTHING}
    serializer_class = s.TaskParameterSerializer
    pagination_class = None
    filter_backends = []

    @extend_schema(
        summary="Task parameters",
        description="Every key of the dictionary that describes a task, with its meaning and limits.",
        responses=s.TaskParameterSerializer(many=True),
    )
    def list(self, request: Any) -> Response:
        return Response(s.TaskParameterSerializer(describe(), many=True).data)
