"""API v2: the audit trail."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from jedisite import audit
from jedisite.identity.callers import Right
from jedisite.models import AuditEntry
from tasks_app.api.v2.base import Lists, Resource
from tasks_app.lists.audit_columns import AUDIT
from tasks_app.lists.filtersets import AuditFilter


class AuditSerializer(serializers.ModelSerializer[AuditEntry]):
    """One recorded action. `details` depend on the action: of a change `changed`, {name: [before, after]}."""

    class Meta:
        model = AuditEntry
        fields = ["id", "at", "actor", "action", "object_type", "object_id", "reason", "details"]
        read_only_fields = fields


@extend_schema_view(
    list=extend_schema(
        summary="Audit trail",
        description="Who did what, to which object, when and why, newest first. Changes of accounts and tokens are "
        "shown only to operators of the grid and to the person who made them.",
    )
)
class AuditViewSet(Lists, Resource):
    rights = {"list": Right.READ}
    queryset = AuditEntry.objects.all()
    serializer_class = AuditSerializer
    filterset_class = AuditFilter
    columns = AUDIT

    def get_queryset(self) -> QuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):
            return AuditEntry.objects.all()
        return audit.visible_to(self.caller)
