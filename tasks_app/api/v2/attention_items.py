"""API v2: items that need attention, and what people do about them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.response import Response

from jedisite.identity.callers import Right
from jedisite.web.choices import Choice
from jedisite.web.problems import Conflict, InvalidFields
from jedisite.web.reasons import ReasonField
from tasks_app.api.v2.base import Lists, Resource, StrictSerializer
from tasks_app.attention import keeping
from tasks_app.attention.item_filters import AttentionFilter
from tasks_app.models import AttentionItem

ACTIONS = ("acknowledge", "snooze", "ticket", "reopen")


class AttentionSerializer(serializers.ModelSerializer[AttentionItem]):
    class Meta:
        model = AttentionItem
        fields = "__all__"


class AttentionActionSerializer(StrictSerializer):
    action = Choice(choices=ACTIONS)
    reason = ReasonField(max_length=keeping.LONGEST_NOTE)
    until = serializers.DateTimeField(required=False, help_text="end of a snooze")
    ticket = serializers.CharField(
        max_length=keeping.LONGEST_TICKET, required=False, allow_blank=True, help_text="number or address of the ticket"
    )


@extend_schema_view(
    list=extend_schema(
        summary="Items that need attention",
        description="Found by the system; an item goes with its cause, and is kept for another week. `state=open` lists "
        "those that nobody has acknowledged or snoozed. `rank`: higher is more urgent; `path` is the page with the details.",
    ),
    retrieve=extend_schema(summary="One item that needs attention"),
)
class AttentionViewSet(Lists, mixins.RetrieveModelMixin, Resource):
    rights = {"list": Right.READ, "retrieve": Right.READ, "act": Right.OPERATE}
    queryset = AttentionItem.objects.all()
    serializer_class = AttentionSerializer
    filterset_class = AttentionFilter

    @extend_schema(
        summary="Acknowledge, snooze, link a ticket, or reopen",
        description="`snooze` needs `until`, `ticket` needs `ticket`. 409 when the item is gone.",
        request=AttentionActionSerializer,
        responses=AttentionSerializer,
    )
    def act(self, request: Any, pk: int) -> Response:
        body = AttentionActionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        given, item = body.validated_data, self.get_object()
        needed = {"snooze": "until", "ticket": "ticket"}.get(given["action"])
        if needed and needed not in given:
            message = f"{given['action']} needs {needed}."
            raise InvalidFields([{"field": needed, "rule": "required", "message": message}])
        said = {"by": self.actor(), "reason": given["reason"]}
        try:
            if given["action"] == "snooze":
                changed = keeping.snooze(item.pk, given["until"], **said)
            elif given["action"] == "ticket":
                changed = keeping.link_ticket(item.pk, given["ticket"], **said)
            elif given["action"] == "acknowledge":
                changed = keeping.acknowledge(item.pk, **said)
            else:
                changed = keeping.reopen(item.pk, **said)
        except keeping.AttentionError as exc:
            if not exc.field:
                raise Conflict(str(exc)) from exc
            raise InvalidFields([{"field": exc.field, "rule": "value", "message": str(exc)}]) from exc
        return Response(AttentionSerializer(changed).data)
