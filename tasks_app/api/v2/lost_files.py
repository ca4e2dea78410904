"""API v2: outputs of a task that are lost are made again."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from jedisite.identity.callers import Right
from jedisite.vocabulary.words import sentence
from jedisite.web.problems import Conflict
from jedisite.web.reasons import ReasonField
from tasks_app.api.counted import CountedList
from tasks_app.api.v2.base import OfTask, StrictSerializer, check_command_right
from tasks_app.api.v2.task_serializers import LONGEST_REASON
from tasks_app.models import Task
from tasks_app.outcomes.recovery import recover
from tasks_app.outcomes.recovery_plans import CannotRecoverError
from tasks_app.outcomes.remaking import Remaking, recover_as_task

MOST_FILES = 10_000


class LostFilesSerializer(StrictSerializer):
    """Names of lost outputs, with a scope before a colon or without. With `dry_run` nothing is changed.

    With `new_task` another task makes them again, in datasets of its own, and this one stays as it ended.
    """

    files = CountedList(child=serializers.CharField(max_length=300), allow_empty=False, max_length=MOST_FILES)
    dataset = serializers.CharField(max_length=255, required=False)
    reason = ReasonField(max_length=LONGEST_REASON, allow_blank=True, default="")
    dry_run = serializers.BooleanField(default=False)
    new_task = serializers.BooleanField(default=False)


class RecoverySerializer(serializers.Serializer[Any]):
    """What was done, or with `dry_run` would be done."""

    task_id = serializers.IntegerField()
    dry_run = serializers.BooleanField()
    new_task_id = serializers.IntegerField(allow_null=True, help_text="the task that makes them again, with `new_task`")
    runs_again = serializers.BooleanField(help_text="the task had ended and runs again")
    lost = serializers.ListField(child=serializers.CharField())
    also_lost = serializers.ListField(child=serializers.CharField(), help_text="also lost: made by the same jobs")
    jobs = serializers.ListField(child=serializers.IntegerField())
    inputs = serializers.ListField(child=serializers.CharField(), help_text="processed again")
    sentences = serializers.ListField(child=serializers.CharField())


class LostFilesViewSet(OfTask):
    rights = {"create": Right.SUBMIT}
    queryset = Task.objects.all()
    serializer_class = LostFilesSerializer

    @extend_schema(
        summary="Make lost outputs of a task again",
        description="Finds the jobs that made the files and processes their inputs again; a task that has ended runs "
        "again. Inputs that are gone as well are made again first, by the tasks that made them. 409 when the task did not "
        "make one of the files, or cannot be changed now; then nothing is done.",
        request=LostFilesSerializer,
        responses={202: RecoverySerializer},
    )
    def create(self, request: Any, task_id: int) -> Response:
        check_command_right(self.caller, self.task())
        body = LostFilesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        remaking: Remaking | None = None
        asked: dict[str, Any] = {name: given.get(name) for name in ("reason", "dataset", "dry_run")}
        try:
            if given["new_task"]:
                remaking = recover_as_task(task_id, given["files"], caller=self.caller, **asked)
            found = (
                remaking.found
                if remaking
                else recover(task_id, given["files"], by=self.actor(), may=self._may, **asked)
            )
        except CannotRecoverError as exc:
            raise Conflict(sentence(exc)) from exc
        reply = {
            "task_id": task_id,
            "dry_run": given["dry_run"],
            "new_task_id": remaking.task_id if remaking else None,
            "runs_again": found.reopens and remaking is None,
            "lost": [o.lfn for o in found.lost],
            "also_lost": [o.lfn for o in found.also_lost],
            "jobs": list(found.jobs),
            "inputs": [i.lfn for i in found.inputs],
            "sentences": (remaking or found).sentences(),
        }
        return Response(RecoverySerializer(reply).data, status=status.HTTP_202_ACCEPTED)

    def _may(self, task: Task) -> bool:
        return self.caller.may_command(task.user, task.working_group)
