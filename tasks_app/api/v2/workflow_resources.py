"""API v2: workflows: submit a definition, see how far it is, and command it."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.response import Response

from jedisite.identity.callers import Right
from jedisite.vocabulary.words import plural, sentence
from jedisite.web.paging import OldestFirst
from jedisite.web.problems import Conflict, InvalidFields
from jedisite.web.reasons import ReasonField
from tasks_app.api.v2 import idempotency
from tasks_app.api.v2.base import Lists, Resource, StrictSerializer, one_of
from tasks_app.api.v2.bulk_commands import RefusedSerializer
from tasks_app.api.v2.task_serializers import LONGEST_REASON
from tasks_app.models import Workflow, WorkflowPackage
from tasks_app.params.acts import HIGHEST_PRIORITY
from tasks_app.params.faults import ParamErrors, shown
from tasks_app.submission.submitting import SubmissionRefusedError
from tasks_app.workflows.dropping import CannotDropError, drop_line
from tasks_app.workflows.large_definitions import place_for, place_of
from tasks_app.workflows.line_stories import story_of_package
from tasks_app.workflows.package_acts import act_on_packages
from tasks_app.workflows.package_columns import PACKAGES, PackageFilter, with_places
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.rules.definition_files import read_definition, told_by_line
from tasks_app.workflows.rules.document_fields import MOST_STAGES
from tasks_app.workflows.rules.package_states import PackageStatus
from tasks_app.workflows.rules.workflow_document import as_document
from tasks_app.workflows.rules.workflow_text import LONGEST_TEXT
from tasks_app.workflows.submitting_workflows import submit_workflow
from tasks_app.workflows.workflow_acts import (
    COMMANDS,
    CannotActError,
    act_on_workflow,
)
from tasks_app.workflows.workflow_columns import ORDERINGS, WORKFLOWS, WorkflowFilter
from tasks_app.workflows.workflow_states import WorkflowState, with_states

DROP = "drop"


class WorkflowRowSerializer(serializers.ModelSerializer[Workflow]):
    state = serializers.ChoiceField(choices=[one.value for one in WorkflowState], read_only=True)

    class Meta:
        model = Workflow
        fields = ["id", "name", "owner", "state", "submitted", "container"]


class PackageSerializer(serializers.Serializer[Any]):
    """A package: what it does now, the job that has it, and how often it failed for which reason."""

    path = serializers.CharField()
    software = serializers.CharField()
    status = serializers.ChoiceField(choices=[one.value for one in PackageStatus])
    task_id = serializers.IntegerField(allow_null=True)
    job_id = serializers.IntegerField(allow_null=True)
    site = serializers.CharField()
    node = serializers.CharField(help_text="the machine on which the job runs, as its pilot names it")
    failures = serializers.DictField(child=serializers.IntegerField())


class WorkflowSerializer(WorkflowRowSerializer):
    packages = serializers.SerializerMethodField()

    class Meta(WorkflowRowSerializer.Meta):
        fields = [*WorkflowRowSerializer.Meta.fields, "definition", "packages"]

    @extend_schema_field(PackageSerializer(many=True))
    def get_packages(self, workflow: Workflow) -> Any:
        return PackageSerializer(package_facts(workflow), many=True).data


class NewWorkflowSerializer(StrictSerializer):
    """A definition as a document or as the compact text; one of the two."""

    definition = serializers.JSONField(required=False, help_text="the document")
    text = serializers.CharField(required=False, max_length=LONGEST_TEXT, trim_whitespace=False)

    def validate_definition(self, value: object) -> object:
        if not isinstance(value, dict):
            hint = ": the compact text stands in text." if isinstance(value, str) else "."
            raise serializers.ValidationError(f"Expected an object, got {shown(value)}{hint}")
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) != 1:
            raise serializers.ValidationError({"definition": ["Give either definition or text."]})
        return attrs


class WorkflowCommandSerializer(StrictSerializer):
    """A command for a whole workflow, or for a `stage`, a `line`, a package, or the packages with a job on a `node`.

    With `preview` nothing is done.
    """

    command = serializers.ChoiceField(choices=[*COMMANDS, DROP])
    stage = serializers.IntegerField(min_value=1, max_value=MOST_STAGES, required=False)
    line = serializers.RegexField(
        r"^[0-9]{3,5}/[0-9]{3,5}(/[0-9]{3,5})?$",
        required=False,
        help_text="such as 001/002, or a package such as 001/002/001",
    )
    node = serializers.CharField(
        required=False, max_length=128, help_text="for kill, and for retry, which gives the jobs of the node up"
    )
    priority = serializers.IntegerField(min_value=0, max_value=HIGHEST_PRIORITY, required=False)
    reason = ReasonField(max_length=LONGEST_REASON, allow_blank=True, default="")
    preview = serializers.BooleanField(default=True, help_text="only report what would be affected")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        command, faults = attrs["command"], {}
        if ("priority" in attrs) != (command == "priority"):
            faults["priority"] = ["It is for priority only." if "priority" in attrs else "priority needs it."]
        if command == DROP and "line" not in attrs:
            faults["line"] = ["drop needs it."]
        given = [name for name in ("line", "node", "stage") if name in attrs]
        if len(given) > 1:
            faults[given[-1]] = [f"Give {given[0]} or {given[-1]}, not both."]
        elif command == DROP and given != ["line"]:
            faults["line"] = ["A line is dropped: give line."]
        if faults:
            raise serializers.ValidationError(faults)
        return attrs


class WorkflowAnswerSerializer(serializers.Serializer[Any]):
    """What a command affects, or has affected."""

    command = serializers.CharField()
    preview = serializers.BooleanField()
    tasks = serializers.ListField(child=serializers.IntegerField(), help_text="tasks that accept the command")
    refused = RefusedSerializer(many=True)
    begins = serializers.BooleanField(help_text="a workflow that was on hold gets its tasks")
    packages = serializers.ListField(
        child=serializers.CharField(),
        help_text="packages that accept it, of a command for single ones, or of resume for all",
    )
    canceled = serializers.ListField(child=serializers.CharField(), help_text="packages that will not run")
    removed = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()), help_text="files that other packages go on without"
    )
    jobs = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="jobs that are killed, given up with their node, taken back by a hold, or get the priority",
    )


@extend_schema_view(
    list=extend_schema(summary="Workflows", description="Newest first."),
    retrieve=extend_schema(
        summary="A workflow",
        description="Its definition, and its packages with their states. Which package waits for which follows from the "
        "names of the files in the definition.",
    ),
)
class WorkflowViewSet(Lists, mixins.RetrieveModelMixin, Resource):
    rights = {"list": Right.READ, "retrieve": Right.READ, "create": Right.SUBMIT}
    queryset = with_states(Workflow.objects.all())
    filterset_class = WorkflowFilter
    columns = WORKFLOWS
    small_orderings = ("name", "owner", "submitted")
    computed_orderings = ORDERINGS

    def get_queryset(self) -> Any:
        found = super().get_queryset()
        return found.defer("definition") if self.action == "list" else found

    def retrieve(self, request: Any, *args: Any, **more: Any) -> Response:
        with place_of(self.kwargs["pk"], self.caller.name):
            return super().retrieve(request, *args, **more)

    def get_serializer_class(self) -> Any:
        return WorkflowRowSerializer if self.action == "list" else WorkflowSerializer

    @extend_schema(
        summary="Submit a workflow",
        description="The definition as a document, of which `manage.py workflow schema` prints the JSON Schema, or as the "
        "compact text. All of its tasks are made, or none; on hold it has no tasks yet. For 24 hours, the same caller and "
        "Idempotency-Key get the same workflow.",
        request=NewWorkflowSerializer,
        responses={201: WorkflowSerializer},
        parameters=[OpenApiParameter(idempotency.HEADER, OpenApiTypes.STR, OpenApiParameter.HEADER)],
    )
    def create(self, request: Any) -> Response:
        by, key = self.actor(), idempotency.checked_key(request.headers.get(idempotency.HEADER))
        with place_for(int(request.META.get("CONTENT_LENGTH") or 0), self.caller.name):
            return self._created(request, by, key)

    def _created(self, request: Any, by: str, key: str | None) -> Response:
        body = NewWorkflowSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        (whole,) = body.validated_data
        try:
            with transaction.atomic():
                number = self._submit(body.validated_data, by, key)
        except ParamErrors as exc:
            found = ({"field": e.field or whole, "rule": e.rule, "message": e.message} for e in exc.errors)
            raise InvalidFields(found) from exc
        except SubmissionRefusedError as exc:
            raise Conflict(sentence(exc)) from exc
        workflow = self.get_queryset().get(pk=number)
        location = reverse("api-v2:workflow", kwargs={"pk": number})
        return Response(
            WorkflowSerializer(workflow).data, status=status.HTTP_201_CREATED, headers={"Location": location}
        )

    def _submit(self, given: dict[str, Any], by: str, key: str | None) -> int:
        """The number of a new workflow, or of the one that was submitted under the same key."""
        taken = idempotency.take(by, key, given) if key else None
        if taken and taken.reply is not None:
            return int(taken.reply["workflow"])
        if "definition" in given:
            number = submit_workflow(given["definition"], self.caller).pk
        else:
            with told_by_line(given["text"]):
                number = submit_workflow(as_document(read_definition(given["text"])[0]), self.caller).pk
        if taken:
            taken.reply = {"workflow": number}
            taken.save(update_fields=["reply"])
        return number


class WorkflowPackageSerializer(serializers.ModelSerializer[WorkflowPackage]):
    class Meta:
        model = WorkflowPackage
        fields = ["id", "path", "software", "task_id", "boundary", "is_canceled", "is_held", "priority"]


class PackageFailureSerializer(serializers.Serializer[Any]):
    """A job that had the package and failed: when, where and why."""

    job_id = serializers.IntegerField(source="id")
    ended = serializers.DateTimeField(allow_null=True)
    site = serializers.CharField(help_text="queue of the job")
    node = serializers.CharField(help_text="the machine, as its pilot names it")
    reason = serializers.CharField(help_text="the narrowest reason by which restarts can be limited")
    error = serializers.CharField(source="error.sentence", default="")


class LimitSerializer(serializers.Serializer[Any]):
    """A reason for which the workflow restarts packages."""

    reason = serializers.CharField()
    failures = serializers.IntegerField(help_text="failures that count for it")
    restarts = serializers.IntegerField(help_text="so many of them are restarted")


class PackageHistorySerializer(WorkflowPackageSerializer):
    """A package with its failures, oldest first, and what they count for."""

    status = serializers.ChoiceField(source="story.fact.status", choices=[one.value for one in PackageStatus])
    history = PackageFailureSerializer(source="story.failed_tries", many=True)
    restarts = LimitSerializer(source="story.limits", many=True)

    class Meta(WorkflowPackageSerializer.Meta):
        fields = [*WorkflowPackageSerializer.Meta.fields, "status", "history", "restarts"]


@extend_schema_view(
    list=extend_schema(
        summary="Packages of a workflow",
        description="In the order of stage, line and place. What they do now, their jobs and their failures are `columns` to "
        "choose.",
    )
)
class WorkflowPackageViewSet(Lists, Resource):
    rights = {"list": Right.READ, "retrieve": Right.READ}
    queryset = with_places(WorkflowPackage.objects.all())
    serializer_class = WorkflowPackageSerializer
    filterset_class = PackageFilter
    pagination_class = OldestFirst
    columns = PACKAGES

    def get_queryset(self) -> Any:
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        one_of(Workflow.objects.only("id"), self.kwargs["workflow_id"])
        return super().get_queryset().filter(workflow_id=self.kwargs["workflow_id"])

    @extend_schema(
        summary="A package of a workflow",
        description="By its number in the list: its state, its failures, and how often it is restarted for which reason. 409 "
        "when the definition of its workflow is refused today.",
        responses={200: PackageHistorySerializer},
    )
    def retrieve(self, request: Any, workflow_id: int, pk: int) -> Response:
        package = one_of(self.get_queryset().select_related("workflow"), pk)
        try:
            with place_of(workflow_id, self.caller.name):
                story = story_of_package(package.workflow, package.path)
        except ParamErrors as exc:
            raise Conflict(sentence(exc)) from exc
        found: Any = {name: getattr(package, name) for name in WorkflowPackageSerializer.Meta.fields}
        found["story"] = story
        return Response(PackageHistorySerializer(found).data)


class WorkflowCommandViewSet(Resource):
    rights = {"create": Right.SUBMIT}
    queryset = Workflow.objects.all()
    serializer_class = WorkflowCommandSerializer

    @extend_schema(
        summary="Command a workflow",
        description="hold, resume, kill, retry and priority are given to each task of the workflow, or of one `stage`, "
        "that accepts them; drop cancels the packages of a `line` and takes the files that they would have written out of "
        "what others read. All of them are given for single lines and packages as well, kill and retry also for nodes. "
        "With `preview: true`, which is the default, only shows what would be affected. 409 when the "
        "workflow is in no state for it.",
        request=WorkflowCommandSerializer,
        responses={200: WorkflowAnswerSerializer, 202: WorkflowAnswerSerializer},
    )
    def create(self, request: Any, pk: int) -> Response:
        self.actor()
        workflow = one_of(Workflow.objects.defer("definition"), pk)
        if not self.caller.may_command(workflow.owner):
            raise PermissionDenied(f"Workflow {pk} belongs to {workflow.owner}; you may not command it.")
        body = WorkflowCommandSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        if given["command"] == "priority" and not self.caller.may(Right.STEER):
            raise PermissionDenied("A priority needs the right to steer production.")
        with place_of(pk, self.caller.name):
            answer = self._act(pk, given)
        code = status.HTTP_200_OK if given["preview"] else status.HTTP_202_ACCEPTED
        return Response(WorkflowAnswerSerializer(answer).data, status=code)

    def _act(self, pk: int, given: dict[str, Any]) -> dict[str, Any]:
        """What the command affects, as the answer's fields. Raises InvalidFields and Conflict."""
        asked: dict[str, Any] = {"caller": self.caller, "reason": given["reason"], "preview": given["preview"]}
        answer: dict[str, Any] = {
            "command": given["command"],
            "preview": given["preview"],
            **dict.fromkeys(("tasks", "refused", "packages", "canceled", "jobs"), ()),
            "begins": False,
            "removed": {},
        }
        try:
            if given["command"] == DROP:
                dropped = drop_line(pk, given["line"], **asked)
                answer |= {"canceled": dropped.canceled, "removed": dropped.removed, "jobs": dropped.jobs}
            elif "line" in given or "node" in given:
                of = {"line": given.get("line", ""), "node": given.get("node", "")}
                acted = act_on_packages(pk, given["command"], priority=given.get("priority"), **asked, **of)
                answer |= {name: getattr(acted, name) for name in ("tasks", "refused", "packages", "jobs")}
            else:
                more: dict[str, Any] = {"stage": given.get("stage"), "priority": given.get("priority")}
                acted = act_on_workflow(pk, given["command"], **asked, **more)
                answer |= {name: getattr(acted, name) for name in ("tasks", "refused", "begins", "packages")}
            if answer["refused"] and not answer["tasks"] and not given["preview"]:
                raise Conflict(" ".join(f"{plural(len(one.ids), 'task')}: {one.words}." for one in answer["refused"]))
        except ParamErrors as exc:
            raise InvalidFields({"field": e.field, "rule": e.rule, "message": e.message} for e in exc.errors) from exc
        except (CannotDropError, CannotActError, SubmissionRefusedError) as exc:
            raise Conflict(sentence(exc)) from exc
        return answer
