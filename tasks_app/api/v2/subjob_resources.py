"""API v2: the subjobs of a task, which are its groups of files; some of them killed or resubmitted by number."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from jedisite.identity.callers import Right
from jedisite.vocabulary.words import sentence
from jedisite.web.problems import Conflict, InvalidFields
from jedisite.web.reasons import ReasonField
from tasks_app.api.v2.base import OfTask, StrictSerializer, check_command_right
from tasks_app.api.v2.task_serializers import LONGEST_REASON
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.gpi.rules.master_status import STATUSES
from tasks_app.lists.subjobs import subjobs_of
from tasks_app.models import Task
from tasks_app.params.command_parameters import numbered_subjobs, written_numbers
from tasks_app.submission import command_queue
from tasks_app.upkeep.subjob_kills import CannotKillError, kill_subjobs

KILL, RESUBMIT = "kill", "resubmit"
NUMBERS, OUTPUTS = "numbers", "outputs"
LONGEST_NUMBERS: Final = 30_000


class SubjobOutputSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="of /api/v2/files/<id>/content")
    lfn = serializers.CharField()
    size = serializers.IntegerField(allow_null=True)
    checksum = serializers.CharField(allow_null=True)


class SubjobSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    status = serializers.CharField(help_text=f"one of {', '.join(STATUSES)}")
    jobs = serializers.ListField(child=serializers.IntegerField(), help_text="its attempts, in order")
    exit_code = serializers.IntegerField(allow_null=True, help_text="of the last payload")
    error = serializers.CharField()
    outputs = SubjobOutputSerializer(many=True, required=False, help_text="with outputs=true")


class SubjobsSerializer(serializers.Serializer[Any]):
    task_id = serializers.IntegerField()
    task_status = serializers.CharField()
    status = serializers.CharField(help_text="what the states of the subjobs come to")
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="subjobs by state")
    subjobs = SubjobSerializer(many=True)


class SubjobActSerializer(StrictSerializer):
    """`numbers` such as 1,4-7."""

    act = serializers.ChoiceField(choices=[KILL, RESUBMIT])
    numbers = serializers.CharField(max_length=LONGEST_NUMBERS)
    reason = ReasonField(max_length=LONGEST_REASON, allow_blank=True, default="")

    def validate_numbers(self, text: str) -> list[int]:
        return _numbers(text)


class SubjobActDoneSerializer(serializers.Serializer[Any]):
    act = serializers.CharField()
    numbers = serializers.CharField()
    done = serializers.CharField()


def _numbers(text: str) -> list[int]:
    try:
        found = numbered_subjobs(text)
    except ValueError as error:
        raise serializers.ValidationError(str(error), code="numbers") from error
    if not found:
        raise serializers.ValidationError("Name at least one subjob.", code="numbers")
    return found


class SubjobViewSet(OfTask):
    rights = {"retrieve": Right.READ, "create": Right.SUBMIT}
    queryset = Task.objects.all()
    serializer_class = SubjobsSerializer

    def known_parameters(self) -> set[str]:
        return {NUMBERS, OUTPUTS} if self.action == "retrieve" else set()

    @extend_schema(
        summary="Subjobs of a task",
        description="The groups of files of a task (loadXML, numbered from 0, or groupBoundaryID 3 or 4, with the numbers of "
        "their blocks); all in one answer. A subjob keeps its number over all attempts. A task without groups has none.",
        parameters=[
            OpenApiParameter(NUMBERS, OpenApiTypes.STR, description="only these, such as 1,4-7"),
            OpenApiParameter(OUTPUTS, OpenApiTypes.BOOL, description="with the outputs of those that are completed"),
        ],
        responses=SubjobsSerializer,
    )
    def retrieve(self, request: Any, task_id: int) -> Response:
        given = request.query_params.get(NUMBERS)
        try:
            numbers = None if given is None else _numbers(given[: LONGEST_NUMBERS + 1])
        except serializers.ValidationError as error:
            fault = {"field": NUMBERS, "rule": "numbers", "message": str(error.detail[0])}  # type: ignore[index]
            raise InvalidFields([fault]) from error
        return Response(subjobs_of(self.task(), numbers, outputs=self.switch(OUTPUTS)))

    @extend_schema(
        summary="Kill or resubmit subjobs",
        description="Killed: their jobs end, and no others follow. Resubmitted: those that failed or were killed are tried "
        "again, as by the command retry. 409 when there is nothing of the kind among them.",
        request=SubjobActSerializer,
        responses={202: SubjobActDoneSerializer},
    )
    def create(self, request: Any, task_id: int) -> Response:
        task = self.task()
        check_command_right(self.caller, task)
        body = SubjobActSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        try:
            done = (self._kill if given["act"] == KILL else self._resubmit)(task, given["numbers"], given["reason"])
        except (CannotKillError, command_queue.CommandRefusedError) as exc:
            raise Conflict(sentence(exc)) from exc
        answer = {"act": given["act"], "numbers": written_numbers(given["numbers"]), "done": done}
        return Response(answer, status=status.HTTP_202_ACCEPTED)

    def _kill(self, task: Task, numbers: list[int], reason: str) -> str:
        self.actor()
        done = kill_subjobs(task.id, numbers, self.caller, reason=reason)
        return f"jobs killed: {done.jobs}; files that wait no longer: {done.given_up}"

    def _resubmit(self, task: Task, numbers: list[int], reason: str) -> str:
        found = subjobs_of(task, numbers)["subjobs"]
        if other := next((one for one in found if one["status"] not in ("failed", "killed")), None):
            raise command_queue.CommandRefusedError(
                f"subjob {other['number']} of task {task.id} is {other['status']}: only those that failed or were killed are "
                "tried again"
            )
        if unknown := set(numbers) - {one["number"] for one in found}:
            raise command_queue.CommandRefusedError(f"task {task.id} has no subjob {min(unknown)}")
        parameters = {"subjobs": written_numbers(numbers)}
        by = self.actor()
        try:
            row = command_queue.give_command(task.id, TaskCommand.RETRY, by=by, reason=reason, parameters=parameters)
        except command_queue.CommandRefusedError as refused:
            # A task that was retried a moment ago, or rests, gives attempts; any other says why it takes no retry.
            try:
                row = command_queue.give_command(
                    task.id, TaskCommand.INCREASE_ATTEMPTS, by=by, reason=reason, parameters=parameters
                )
            except command_queue.CommandRefusedError:
                raise refused from None
        return f"the command {row.name} was given"
