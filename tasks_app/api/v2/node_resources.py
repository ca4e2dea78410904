"""API v2: the packages of all workflows that have a job on one node, and what is done to them when it is dead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from jedisite.identity.callers import Right
from jedisite.vocabulary.words import sentence
from jedisite.web.problems import Conflict
from jedisite.web.reasons import ReasonField
from tasks_app.api.v2.base import Resource, StrictSerializer
from tasks_app.api.v2.task_serializers import LONGEST_REASON
from tasks_app.models import Workflow
from tasks_app.workflows.node_acts import LONGEST_NODE, NODE_ACTS, OnNode, act_on_node, packages_on
from tasks_app.workflows.workflow_acts import CannotActError


class NodeCommandSerializer(StrictSerializer):
    """A command for all packages that have a job on a node. With `preview` nothing is done."""

    node = serializers.CharField(max_length=LONGEST_NODE, help_text="the machine, as its pilots name it")
    command = serializers.ChoiceField(choices=NODE_ACTS)
    reason = ReasonField(max_length=LONGEST_REASON, allow_blank=True, default="")
    preview = serializers.BooleanField(default=True, help_text="only report what would be affected")


class OfWorkflowSerializer(serializers.Serializer[Any]):
    workflow = serializers.IntegerField()
    name = serializers.CharField()
    owner = serializers.CharField()
    packages = serializers.ListField(child=serializers.CharField(), help_text="paths of the packages on the node")
    jobs = serializers.ListField(child=serializers.IntegerField(), help_text="their jobs there")
    refused = serializers.CharField(help_text="why nothing is done to them; empty: it is")


class NodeAnswerSerializer(serializers.Serializer[Any]):
    """What a command affects, or has affected, by workflow."""

    node = serializers.CharField()
    command = serializers.CharField()
    preview = serializers.BooleanField()
    workflows = OfWorkflowSerializer(many=True)


class WorkflowNodeViewSet(Resource):
    rights = {"create": Right.SUBMIT}
    queryset = Workflow.objects.all()
    serializer_class = NodeCommandSerializer

    @extend_schema(
        summary="Command the packages of a node",
        description="retry gives up the jobs that packages of any workflows have on a dead node, and others follow, which uses "
        "up no attempt; kill ends them. Packages of workflows that the caller may not command are named and left alone. With "
        "`preview: true`, which is the default, only shows what would be affected. 409 when nothing can be done.",
        request=NodeCommandSerializer,
        responses={200: NodeAnswerSerializer, 202: NodeAnswerSerializer},
    )
    def create(self, request: Any) -> Response:
        self.actor()
        body = NodeCommandSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        try:
            if given["preview"]:
                found = packages_on(given["node"], self.caller)
            else:
                found = act_on_node(given["node"], given["command"], caller=self.caller, reason=given["reason"])
        except CannotActError as exc:
            raise Conflict(sentence(exc)) from exc
        answer = {**{name: given[name] for name in ("node", "command", "preview")}, "workflows": _shown(found)}
        code = status.HTTP_200_OK if given["preview"] else status.HTTP_202_ACCEPTED
        return Response(NodeAnswerSerializer(answer).data, status=code)


def _shown(found: Sequence[OnNode]) -> list[dict[str, Any]]:
    return [
        {
            "workflow": one.workflow.pk,
            "name": one.workflow.name,
            "owner": one.workflow.owner,
            "packages": [fact.path for fact in one.packages],
            "jobs": [fact.job_id for fact in one.packages if fact.job_id is not None],
            "refused": one.refused,
        }
        for one in found
    ]
