"""API v2: tasks, datasets, jobs, queues and agents as resources. Views translate, nothing more."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import exceptions, mixins, status
from rest_framework.response import Response

from brokerage_app.models import Queue
from jedisite.identity import Right
from jedisite.models import Agent
from jedisite.paging import ByName, OldestFirst
from jedisite.problems import Conflict, InvalidFields
from tasks_app import amending, moves, placing, submitting
from tasks_app.api import idempotency
from tasks_app.api import serializers as s
from tasks_app.api.base import Resource, check_command_right
from tasks_app.commands import rights
from tasks_app.filtersets import FileFilter, JobFilter, TaskFilter
from tasks_app.models import Command, Dataset, File, Job, JobArchive, Task, TaskParams, TaskStatusLog
from tasks_app.models.dataset import UNMERGED_TYPES
from tasks_app.params.resubmission import Code
from tasks_app.params.schema import ParamErrors, describe
from tasks_app.submitting import SubmissionRefusedError


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
    Code.NEW: status.HTTP_201_CREATED, Code.AGAIN: status.HTTP_202_ACCEPTED, Code.PATCHED: status.HTTP_200_OK,
}  # fmt: skip


class TaskViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, Resource):
    """Tasks, newest first."""

    rights = {"list": Right.READ, "retrieve": Right.READ, "create": Right.SUBMIT}
    queryset = Task.objects.all()
    filterset_class = TaskFilter

    def known_parameters(self) -> set[str]:
        return {ALLOW_ACTIVE} if self.action == "create" else super().known_parameters()

    def get_serializer_class(self) -> Any:
        return s.TaskRowSerializer if self.action == "list" else s.TaskSerializer

    def filter_queryset(self, queryset: Any) -> Any:
        return super().filter_queryset(queryset) if self.action == "list" else queryset

    @extend_schema(
        summary="Submit a task",
        description="The body is the JEDI task-parameter dictionary; /api/v2/task-parameters/ describes every key. "
        "The same caller and Idempotency-Key get the same task for 24 hours. With uniqueTaskName in the body, an analysis "
        "of a name that a task has already runs that task again if it has ended (202), or is refused (409); with "
        "allow_active=true a user's task that runs is changed in place (200).",
        request={"application/json": parameters_schema()},
        responses={200: s.SubmittedSerializer, 201: s.TaskSerializer, 202: s.SubmittedSerializer},
        parameters=[
            OpenApiParameter(idempotency.HEADER, OpenApiTypes.STR, OpenApiParameter.HEADER),
            OpenApiParameter(ALLOW_ACTIVE, OpenApiTypes.BOOL, description="change a task of the name that runs"),
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
        except (SubmissionRefusedError, moves.CommandRefusedError) as exc:
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
        task = Task.objects.get(pk=done.task_id)
        reply = dict(s.TaskSerializer(task).data if done.is_new else s.SubmittedSerializer(done).data)
        if taken:
            taken.task_id, taken.reply = done.task_id, reply
            taken.save(update_fields=["task_id", "reply"])
        return reply


class OfTask(Resource):
    """What belongs to one task. Answers 404 when there is no such task."""

    def task(self) -> Task:
        return get_object_or_404(Task, pk=self.kwargs["task_id"])

    def get_queryset(self) -> Any:
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        return self.of_task(self.task())

    def of_task(self, task: Task) -> QuerySet[Any]:
        found: QuerySet[Any] = super().get_queryset()
        return found.filter(task_id=task.id)


class TaskParamsViewSet(OfTask):
    rights = {"retrieve": Right.READ}
    queryset = TaskParams.objects.all()
    serializer_class = s.TaskSerializer

    @extend_schema(summary="The submitted dictionary of a task", responses=OpenApiTypes.OBJECT)
    def retrieve(self, request: Any, task_id: int) -> Response:
        return Response(get_object_or_404(TaskParams, pk=task_id).params)


UNMERGED = OpenApiParameter("unmerged", OpenApiTypes.BOOL, description="list datasets of unmerged files, too")


@extend_schema_view(list=extend_schema(parameters=[UNMERGED]))
class TaskDatasetViewSet(mixins.ListModelMixin, OfTask):
    """Datasets of a task with their counters; those of unmerged files only if asked for."""

    rights = {"list": Right.READ}
    queryset = Dataset.objects.all()
    serializer_class = s.DatasetSerializer
    pagination_class = OldestFirst
    switches = ("unmerged",)

    def of_task(self, task: Task) -> QuerySet[Any]:
        found = super().of_task(task)
        return found if self.switch("unmerged") else found.exclude(type__in=UNMERGED_TYPES)


ARCHIVED = OpenApiParameter("archived", OpenApiTypes.BOOL, description="list the archive instead of the living jobs")


class JobLists(mixins.ListModelMixin, Resource):
    """Jobs, newest first: the living ones, or with `archived=true` those that ended long ago."""

    queryset = Job.objects.all()
    serializer_class = s.JobRowSerializer
    filterset_class = JobFilter
    switches = ("archived",)

    def jobs(self) -> QuerySet[Any]:
        archived = self.action == "list" and self.switch("archived")
        return JobArchive.objects.all() if archived else Job.objects.all()


class TaskJobViewSet(JobLists, OfTask):
    rights = {"list": Right.READ}

    def of_task(self, task: Task) -> QuerySet[Any]:
        return self.jobs().filter(task_id=task.id)

    @extend_schema(parameters=[ARCHIVED])
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request, *args, **kwargs)


class JobViewSet(JobLists):
    rights = {"list": Right.READ, "retrieve": Right.READ}

    def get_queryset(self) -> Any:
        return super().get_queryset() if getattr(self, "swagger_fake_view", False) else self.jobs()

    @extend_schema(parameters=[ARCHIVED])
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request, *args, **kwargs)

    @extend_schema(responses=s.JobSerializer)
    def retrieve(self, request: Any, pk: int) -> Response:
        job: Any = Job.objects.filter(pk=pk).first() or get_object_or_404(JobArchive, pk=pk)
        return Response(s.JobSerializer(job).data)


class TaskLogViewSet(mixins.ListModelMixin, OfTask):
    """States of a task with who and why, newest first."""

    rights = {"list": Right.READ}
    queryset = TaskStatusLog.objects.all()
    serializer_class = s.TaskLogSerializer


class TaskCommandViewSet(mixins.ListModelMixin, OfTask):
    """Commands given to a task, newest first."""

    rights = {"list": Right.READ, "create": Right.SUBMIT}
    queryset = Command.objects.all()
    serializer_class = s.CommandSerializer

    @extend_schema(
        summary="Give a command to a task",
        description="409 when the task's state does not accept it. Task commando obeys it soon.",
        request=s.NewCommandSerializer,
        responses={202: s.CommandSerializer},
    )
    def create(self, request: Any, task_id: int) -> Response:
        task = self.task()
        # Who may command nobody's task learns no more.
        check_command_right(self.caller, task)
        body = s.NewCommandSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        refused = rights.refusal(self.caller, given["command"], task, given["parameters"])
        if refused:
            raise exceptions.PermissionDenied(refused)
        try:
            command = moves.give_command(
                task_id, given["command"], by=self.actor(), reason=given["reason"], parameters=given["parameters"]
            )
        except moves.CommandRefusedError as exc:
            raise Conflict(sentence(exc)) from exc
        command.refresh_from_db()
        return Response(s.CommandSerializer(command).data, status=status.HTTP_202_ACCEPTED)


class TaskChangeViewSet(OfTask):
    """Changes to a task at work: priority, share, needs of its jobs, split rule."""

    rights = {"create": Right.STEER}
    queryset = Task.objects.all()
    serializer_class = s.TaskChangeSerializer

    @extend_schema(
        summary="Change a task",
        description="All of it or, when a field is wrong or the task has ended (409), nothing.",
        request=s.TaskChangeSerializer,
        responses={200: s.TaskChangedSerializer},
    )
    def create(self, request: Any, task_id: int) -> Response:
        self.task()
        body = s.TaskChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        by, given = self.actor(), body.validated_data
        doors = (
            ("priority", amending.change_priority), ("gshare", amending.change_share),
            ("attributes", amending.change_attributes), ("split_rule", amending.change_split_rule),
        )  # fmt: skip
        try:
            with transaction.atomic():
                done = {
                    name: door(task_id, given[name], by=by, reason=given["reason"])
                    for name, door in doors
                    if name in given
                }
        except amending.CannotChangeError as exc:
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
        description="queue and share are the task's. The rest is what the queues and shares that are configured now say.",
        responses=s.TaskQueueSerializer,
    )
    def retrieve(self, request: Any, task_id: int) -> Response:
        task = self.task()
        return Response(s.TaskQueueSerializer({"task": task, "now": placing.explained(task)}).data)


class DatasetFileViewSet(mixins.ListModelMixin, Resource):
    """Files of a dataset, in the order in which they came."""

    rights = {"list": Right.READ}
    queryset = File.objects.all()
    serializer_class = s.FileSerializer
    filterset_class = FileFilter
    pagination_class = OldestFirst

    def get_queryset(self) -> Any:
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        dataset = get_object_or_404(Dataset, pk=self.kwargs["dataset_id"])
        return File.objects.all_of_dataset(dataset.id, dataset.task_id)


class QueueViewSet(mixins.ListModelMixin, Resource):
    """Computing queues. Memory and disk in MB, times in seconds."""

    rights = {"list": Right.SITE_DATA}
    queryset = Queue.objects.all()
    serializer_class = s.QueueSerializer
    pagination_class = ByName


class AgentViewSet(mixins.ListModelMixin, Resource):
    """Agents: when each is due, what its last pass did."""

    rights = {"list": Right.READ}
    queryset = Agent.objects.all()
    serializer_class = s.AgentSerializer
    pagination_class = ByName


class TaskParameterViewSet(Resource):
    """Every key of the dictionary that describes a task."""

    rights = {"list": Right.NOTHING}
    serializer_class = s.TaskParameterSerializer
    pagination_class = None
    filter_backends = []

    @extend_schema(responses=s.TaskParameterSerializer(many=True))
    def list(self, request: Any) -> Response:
        return Response(s.TaskParameterSerializer(describe(), many=True).data)


def sentence(exc: Exception) -> str:
    text = str(exc)
    return f"{text[:1].upper()}{text[1:]}."
