"""Messages: the feed of changes, and the endpoint for messages of other systems."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import exceptions, serializers, status
from rest_framework.response import Response

from jedisite.identity.callers import Caller, Right
from jedisite.vocabulary.words import sentence
from jedisite.web.choices import Choice, ChoiceFilter
from jedisite.web.paging import LARGEST_ID, KeysetPagination
from jedisite.web.problems import Conflict, InvalidFields
from tasks_app.api.v2.base import Lists, Resource, StrictSerializer
from tasks_app.domain.message_kinds import KINDS, BadMessageError
from tasks_app.lifecycle import outbox
from tasks_app.messaging import inbox
from tasks_app.models import InMessage, OutMessage

MESSAGE_ID = r"[A-Za-z0-9][A-Za-z0-9_.:@+-]{0,127}"


class ByPosition(KeysetPagination):
    ordering = "position"
    has_nulls = False  # what has no position yet is not listed


class MessageFilter(django_filters.FilterSet):
    after = django_filters.NumberFilter(
        field_name="position",
        lookup_expr="gt",
        min_value=0,
        max_value=LARGEST_ID,
        decimal_places=0,
        label="Only messages after this position",
    )
    topic = ChoiceFilter(choices=[(t, t) for t in (outbox.TASKS, outbox.JOBS)])

    class Meta:
        model = OutMessage
        fields: list[str] = []


class MessageSerializer(serializers.ModelSerializer[OutMessage]):
    """A message. `position` grows: ask for what is after the last one you have read."""

    class Meta:
        model = OutMessage
        fields = ["position", "message_id", "topic", "kind", "task_id", "job_id", "payload", "created"]
        read_only_fields = fields


class NewMessageSerializer(StrictSerializer):
    id = serializers.RegexField(
        f"^{MESSAGE_ID}$",
        help_text="chosen by the sender; the same id sent twice counts as one message",
        error_messages={
            "invalid": "An id has 1 to 128 letters, digits and _ . : @ + -, and begins with a letter or a digit."
        },
    )
    kind = Choice(choices=[(kind, kind) for kind in KINDS])
    payload = serializers.JSONField(help_text="the fields of that kind")


class KeptMessageSerializer(serializers.ModelSerializer[InMessage]):
    """A received message and its result."""

    id = serializers.CharField(source="message_id")
    state = serializers.SerializerMethodField()

    class Meta:
        model = InMessage
        fields = ["id", "kind", "sender", "received", "state", "attempts", "processed", "parked", "answer", "error"]
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(choices=["waiting", "processed", "parked"]))
    def get_state(self, row: InMessage) -> str:
        return "processed" if row.processed else "parked" if row.parked else "waiting"


def sees_all(caller: Caller) -> bool:
    """Whether the feed shows this caller everybody's tasks; others see their own."""
    return caller.may(Right.COMMAND_ANY) or caller.may(Right.OPERATE)


@extend_schema_view(
    list=extend_schema(
        summary="Feed of changes",
        description="Changes of tasks and jobs, oldest first: of one's own tasks, or of all tasks for operators. To "
        "continue, pass the last position as `after=`.",
    )
)
class MessageViewSet(Lists, Resource):
    rights = {"list": Right.READ, "create": Right.TELL}
    queryset = OutMessage.objects.all()
    serializer_class = MessageSerializer
    filterset_class = MessageFilter
    pagination_class = ByPosition

    def get_queryset(self) -> QuerySet[OutMessage]:
        placed = OutMessage.objects.filter(position__isnull=False)
        if getattr(self, "swagger_fake_view", False) or sees_all(self.caller):
            return placed
        return placed.filter(owner=self.caller.name)

    @extend_schema(
        summary="Tell something",
        description="For trusted systems. A message that is sent again with the same id changes nothing; 409 when "
        "the id was used for other content. Commands need the right to command anybody's tasks. Kinds: "
        + " ".join(
            f"{name} ({', '.join(f.name for f in kind.fields)}): {kind.meaning}" for name, kind in KINDS.items()
        ),
        request=NewMessageSerializer,
        responses={200: KeptMessageSerializer, 202: KeptMessageSerializer},
    )
    def create(self, request: Any) -> Response:
        body = NewMessageSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        if KINDS[given["kind"]].commands and not self.caller.may(Right.COMMAND_ANY):
            raise exceptions.PermissionDenied(f"A {given['kind']} needs the right to {Right.COMMAND_ANY.value}.")
        try:
            row, is_new = inbox.receive(given["id"], given["kind"], given["payload"], sender=self.actor())
        except BadMessageError as exc:
            raise InvalidFields([{"field": exc.field, "rule": "message", "message": f"{exc.sentence}."}]) from exc
        except inbox.OtherContentError as exc:
            raise Conflict(sentence(exc)) from exc
        code = status.HTTP_202_ACCEPTED if is_new else status.HTTP_200_OK
        return Response(KeptMessageSerializer(row).data, status=code)
