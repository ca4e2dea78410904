"""API v2: how CPU is divided among global shares and work queues."""

from __future__ import annotations

from typing import Any

from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from brokerage_app.models import GlobalShare
from jedisite.identity import Right
from tasks_app.api.base import Resource
from tasks_app.dividing import division


class ShareNowSerializer(serializers.Serializer[Any]):
    """A share: its part of the whole in percent; what its jobs execute, have queued and should have, in HS."""

    name = serializers.CharField(source="share.name")
    parent = serializers.CharField(source="share.parent", allow_null=True)  # type: ignore[assignment]
    value = serializers.IntegerField(source="share.value")
    percent = serializers.FloatField()
    executing = serializers.FloatField(source="usage.executing")
    queued = serializers.FloatField(source="usage.queued")
    target = serializers.FloatField(source="usage.target")
    ratio = serializers.FloatField(source="usage.ratio", help_text="executing over target; below 1 is under-used")
    idle = serializers.BooleanField(source="branch.idle", default=None, allow_null=True, help_text="first level only")
    equivalent = serializers.FloatField(
        source="branch.equivalent", default=None, allow_null=True, help_text="ratio when what idle branches leave is given away"
    )  # fmt: skip
    figures = serializers.DictField(child=serializers.FloatField(), allow_null=True, help_text="leaves only")


class QueueNowSerializer(serializers.Serializer[Any]):
    """A work queue, and its part in percent of the CPUs that its VO and label have now."""

    id = serializers.IntegerField(source="queue.id")
    name = serializers.CharField(source="queue.name")
    vo = serializers.CharField(source="queue.vo")
    type = serializers.CharField(source="queue.type")
    partition = serializers.CharField(allow_null=True)
    share = serializers.IntegerField(source="queue.share", allow_null=True)
    stretchable = serializers.BooleanField(source="queue.stretchable")
    tasks = serializers.IntegerField()
    percent = serializers.FloatField(allow_null=True)


class DivisionSerializer(serializers.Serializer[Any]):
    shares = ShareNowSerializer(many=True)
    work_queues = QueueNowSerializer(source="queues", many=True)
    order = serializers.ListField(child=serializers.CharField())


class ShareViewSet(Resource):
    """How CPU is divided now."""

    rights = {"list": Right.READ}
    queryset = GlobalShare.objects.all()
    serializer_class = DivisionSerializer
    pagination_class = None
    filter_backends = []

    def known_parameters(self) -> set[str]:
        return {"vo", "label"}

    @extend_schema(
        summary="Global shares and work queues",
        description="order: work queues that keep their own statistics, then the leaves of the tree, the most under-used first.",
        parameters=[
            OpenApiParameter("vo", OpenApiTypes.STR, description="queues and order of this VO"),
            OpenApiParameter("label", OpenApiTypes.STR, description="queues and order of this prodSourceLabel"),
        ],
        responses=forced_singular_serializer(DivisionSerializer),
    )
    def list(self, request: Any) -> Response:
        given = request.query_params
        return Response(DivisionSerializer(division(given.get("vo") or None, given.get("label") or None)).data)
