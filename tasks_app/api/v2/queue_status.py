"""API v2: the status of a computing queue, its history and the door to change it."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.response import Response

from brokerage_app.grid.queue_status import LONGEST_REASON, QueueStatusError, set_status
from brokerage_app.models import Queue, QueueStatusLog
from jedisite.identity.callers import Right
from jedisite.web.choices import Choice
from jedisite.web.problems import InvalidFields
from jedisite.web.reasons import ReasonField
from tasks_app.api.v2.base import Lists, Resource, StrictSerializer, none_of, one_of


class QueueStatusRowSerializer(serializers.ModelSerializer[QueueStatusLog]):
    class Meta:
        model = QueueStatusLog
        fields = ["id", "queue", "old", "new", "reason", "by", "at", "until", "after", "ended_at"]
        read_only_fields = fields


class NewQueueStatusSerializer(StrictSerializer):
    status = Choice(choices=[(s, s) for s in Queue.STATUSES])
    reason = ReasonField(max_length=LONGEST_REASON, help_text="reason; all who look at the queue see it")
    until = serializers.DateTimeField(
        required=False,
        allow_null=True,
        help_text="when the previous permanent status returns; null: the status is permanent",
    )


@extend_schema_view(
    list=extend_schema(
        summary="Status history of a queue",
        description="Newest first, whoever changed it. The present status has no `ended_at`.",
    )
)
class QueueHistoryViewSet(Lists, Resource):
    rights = {"list": Right.READ}
    queryset = QueueStatusLog.objects.all()
    serializer_class = QueueStatusRowSerializer

    def get_queryset(self) -> QuerySet[QueueStatusLog]:
        if getattr(self, "swagger_fake_view", False):
            return QueueStatusLog.objects.all()
        found = QueueStatusLog.objects.filter(queue=self.kwargs["name"])
        if not found.exists():  # a queue that is gone has a history as well
            raise none_of("queue", self.kwargs["name"])
        return found


class QueueStatusViewSet(Resource):
    rights = {"create": Right.OPERATE}
    queryset = QueueStatusLog.objects.all()
    serializer_class = QueueStatusRowSerializer

    @extend_schema(
        summary="Set the status of a queue",
        description="With a reason, and for a limited time if `until` is given. For shifters and administrators.",
        request=NewQueueStatusSerializer,
        responses={201: QueueStatusRowSerializer},
    )
    def create(self, request: Any, name: str) -> Response:
        actor = self.actor()
        queue = one_of(Queue, name)
        body = NewQueueStatusSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        try:
            row = set_status(
                queue.name,
                given["status"],
                by=actor,
                reason=given["reason"],
                until=given.get("until"),
                now=timezone.now(),
            )
        except QueueStatusError as exc:
            raise InvalidFields([{"field": exc.field, "rule": "status", "message": str(exc)}]) from exc
        return Response(QueueStatusRowSerializer(row).data, status=status.HTTP_201_CREATED)
