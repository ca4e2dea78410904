"""API v2: one command for many tasks, with a preview."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from jedisite.identity.callers import Right
from jedisite.web.problems import InvalidFields
from jedisite.web.reasons import ReasonField
from tasks_app.api.counted import ActedOn
from tasks_app.api.v2.base import Resource
from tasks_app.api.v2.task_serializers import LONGEST_REASON, NewCommandSerializer
from tasks_app.commands import bulk
from tasks_app.models import Task
from tasks_app.params.acts import ACTS
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import known_names


class BulkCommandSerializer(NewCommandSerializer):
    """A command, with its parameters, for tasks that are named (`ids`) or found (`filter`); one of the two."""

    reason = ReasonField(max_length=LONGEST_REASON)
    ids = ActedOn(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1), required=False, help_text="numbers of tasks"
    )
    filter = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        help_text="parameters of the list of tasks, such as status and user",
    )
    preview = serializers.BooleanField(default=True, help_text="only report which tasks would be affected")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("ids" in attrs) == ("filter" in attrs):
            raise serializers.ValidationError({"ids": ["Give either ids or filter."]})
        chosen = {name: attrs[name] for name in ("ids", "filter", "preview") if name in attrs}
        return super().validate(attrs) | chosen


class RefusedSerializer(serializers.Serializer[Any]):
    """Tasks that do not get the command: because of their state, a missing right, or because they do not exist."""

    kind = serializers.CharField()
    words = serializers.CharField()
    ids = serializers.ListField(child=serializers.IntegerField())


class BulkAnswerSerializer(serializers.Serializer[Any]):
    """The tasks and jobs that an act affects, or has affected. Jobs are counted up to 10 000; then `more_jobs` is true."""

    command = serializers.CharField()
    preview = serializers.BooleanField()
    ids = serializers.ListField(child=serializers.IntegerField(), help_text="tasks that accept the command")
    refused = RefusedSerializer(many=True)
    jobs = serializers.IntegerField()
    more_jobs = serializers.BooleanField()
    sites = serializers.IntegerField()
    owners = serializers.DictField(child=serializers.IntegerField(), help_text="number of tasks of each owner")


class BulkCommandViewSet(Resource):
    rights = {"create": Right.SUBMIT}
    queryset = Task.objects.all()
    serializer_class = BulkCommandSerializer

    @extend_schema(
        summary="Give a command to many tasks",
        description="Shows which tasks would be affected; with `preview: false`, gives the command to all tasks that "
        "accept it from this caller, and shows which did not accept it and why. More tasks than the site's limit "
        "(JEDI_BULK_LIMIT) are refused as a whole.",
        request=BulkCommandSerializer,
        responses={200: BulkAnswerSerializer, 202: BulkAnswerSerializer},
    )
    def create(self, request: Any) -> Response:
        self.actor()
        body = BulkCommandSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        act, parameters = ACTS[given["command"]], given["parameters"] or {}
        try:
            chosen = bulk.by_ids(given["ids"]) if "ids" in given else bulk.by_filter(given["filter"])
        except bulk.SelectionError as exc:
            field = f"filter.{exc.field}" if "filter" in given and exc.field != "filter" else exc.field
            raise InvalidFields([{"field": field, "rule": "selection", "message": str(exc)}]) from exc
        try:
            known_names.check_changes(parameters, chosen.tasks)
        except ParamErrors as exc:
            raise InvalidFields({"field": e.field, "rule": e.rule, "message": e.message} for e in exc.errors) from exc
        plan = bulk.preview(act, chosen, self.caller, parameters)
        ids, refused = plan.ids, plan.refused
        if not given["preview"]:
            everything = [*(task.id for task in chosen.tasks), *chosen.missing]
            done = bulk.give(act, everything, caller=self.caller, reason=given["reason"], parameters=parameters)
            ids, refused = list(done.ids), done.refused
        answer = {
            "command": act.name,
            "preview": given["preview"],
            "ids": ids,
            "refused": refused,
            "jobs": min(plan.hit.jobs, bulk.JOBS_COUNTED),
            "more_jobs": plan.hit.more,
            "sites": plan.hit.sites,
            "owners": plan.owners,
        }
        code = status.HTTP_200_OK if given["preview"] else status.HTTP_202_ACCEPTED
        return Response(BulkAnswerSerializer(answer).data, status=code)
