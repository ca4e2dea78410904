"""API v2: the division of CPU among global shares and work queues; the table of shares as on the page."""

from __future__ import annotations

from typing import Any

from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from brokerage_app.models import GlobalShare
from jedisite.identity.callers import Right
from jedisite.web import exports
from tasks_app.api.v2.base import FORMAT, Forms, Resource
from tasks_app.usage.cpu_division import division
from tasks_app.usage.share_use import share_rows


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
        source="branch.equivalent",
        default=None,
        allow_null=True,
        help_text="ratio after the unused part of idle branches is redistributed",
    )
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


class ShareRowSerializer(serializers.Serializer[Any]):
    """A line of the table of shares, by the counts of open jobs. Percents are of the whole, power is in HS."""

    name = serializers.CharField()
    parent = serializers.CharField(allow_null=True)  # type: ignore[assignment]
    level = serializers.IntegerField()
    state = serializers.CharField(
        help_text="on target, over target, starved, little work, no target, nothing runs or idle"
    )
    value = serializers.IntegerField()
    target_percent = serializers.FloatField(source="percent")
    actual_percent = serializers.FloatField(source="actual", allow_null=True)
    day_percent = serializers.FloatField(source="day", allow_null=True, help_text="mean of 24 hours")
    week_percent = serializers.FloatField(source="week", allow_null=True, help_text="mean of 7 days")
    ratio = serializers.FloatField(allow_null=True)
    running_hs = serializers.FloatField(source="usage.executing")
    queued_hs = serializers.FloatField(source="usage.queued")
    running_jobs = serializers.IntegerField(source="load.running_jobs")
    queued_jobs = serializers.IntegerField(source="load.queued_jobs")
    waiting_tasks = serializers.IntegerField(source="waiting.tasks", default=0)
    oldest_task = serializers.IntegerField(source="waiting.oldest", default=None, allow_null=True)
    oldest_since = serializers.DateTimeField(source="waiting.since", default=None, allow_null=True)


class DivisionSerializer(serializers.Serializer[Any]):
    shares = ShareNowSerializer(many=True)
    table = ShareRowSerializer(many=True)
    work_queues = QueueNowSerializer(source="queues", many=True)
    order = serializers.ListField(child=serializers.CharField())


class ShareViewSet(Forms, Resource):
    """How CPU is divided now."""

    rights = {"list": Right.READ}
    queryset = GlobalShare.objects.all()
    serializer_class = DivisionSerializer
    pagination_class = None
    filter_backends = []

    def known_parameters(self) -> set[str]:
        return {"vo", "label", "resource", "region", FORMAT}

    @extend_schema(
        summary="Global shares and work queues",
        description="order: work queues that keep their own statistics, then the leaves of the tree, the most under-used first; "
        "without a tree the work queues in the order in which their jobs are sent. "
        "table: the lines of the page of shares, by the counts of open jobs, which are some seconds old; it alone is sent as "
        "CSV or NDJSON.",
        parameters=[
            OpenApiParameter("vo", OpenApiTypes.STR, description="queues and order of this VO"),
            OpenApiParameter("label", OpenApiTypes.STR, description="queues and order of this prodSourceLabel"),
            OpenApiParameter("resource", OpenApiTypes.STR, description="table of jobs of this resource type"),
            OpenApiParameter("region", OpenApiTypes.STR, description="table of jobs at queues of this region"),
        ],
        responses=forced_singular_serializer(DivisionSerializer),
    )
    def list(self, request: Any) -> HttpResponseBase:
        given = request.query_params
        table = share_rows(timezone.now(), resource_type=given.get("resource", ""), region=given.get("region", ""))
        if isinstance(request.accepted_renderer, exports.Export):
            rows = list(ShareRowSerializer(table, many=True).data)
            return exports.stream(request, list(ShareRowSerializer().fields), [rows])
        found = division(given.get("vo") or None, given.get("label") or None)
        whole = {"shares": found.shares, "queues": found.queues, "order": found.order, "table": table}
        return Response(DivisionSerializer(whole).data)
