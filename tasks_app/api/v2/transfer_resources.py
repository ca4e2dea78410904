"""API v2: data that moves: rules, and the transfers of their files."""

from __future__ import annotations

import django_filters
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers

from jedisite.identity.callers import Right
from jedisite.web.choices import ChoiceFilter
from tasks_app.api.v2.base import Lists, Resource
from tasks_app.domain.transfer_states import TransferKind, TransferStatus
from tasks_app.lists.filtersets import IdFilter, MomentFilter, StatusFilter, text
from tasks_app.models import TransferRequest, TransferRule

STATES = [(s.value, s.value) for s in TransferStatus]


class RuleFilter(django_filters.FilterSet):
    kind = ChoiceFilter(choices=[(k.value, k.value) for k in TransferKind], label="Kind")
    status = StatusFilter(choices=STATES, label="Status")
    task = IdFilter("task_id", label="Task")
    job = IdFilter("job_id", label="Job")
    user = text("user", 128, "User")
    dataset = text("dataset", 255, "Dataset")
    destination = text("destination", 60, "Destination")
    created_after = MomentFilter(field_name="created", lookup_expr="gte", label="Created after")
    created_before = MomentFilter(field_name="created", lookup_expr="lt", label="Created before")

    class Meta:
        model = TransferRule
        fields: list[str] = []


class TransferFilter(django_filters.FilterSet):
    rule = IdFilter("rule_id", label="Rule")
    status = StatusFilter(choices=STATES, label="Status")
    task = IdFilter("rule__task_id", label="Task")
    job = IdFilter("rule__job_id", label="Job")
    source = text("source", 60, "Source")
    destination = text("destination", 60, "Destination")
    scope = text("scope", 30, "Scope")
    lfn = text("lfn", 256, "File name")

    class Meta:
        model = TransferRequest
        fields: list[str] = []


class RuleSerializer(serializers.ModelSerializer[TransferRule]):
    class Meta:
        model = TransferRule
        exclude = ["report"]


class TransferSerializer(serializers.ModelSerializer[TransferRequest]):
    rule_id = serializers.IntegerField(read_only=True)

    class Meta:
        model = TransferRequest
        exclude = ["rule", "locked_by", "lease_until", "has_part"]


@extend_schema_view(
    list=extend_schema(
        summary="Transfer rules",
        description="Files that are to be at a storage endpoint: staged from tape, copied for a job, or outputs that are "
        "gathered; newest first. Sizes in bytes. Rules that have ended are kept for a week.",
    ),
    retrieve=extend_schema(summary="A transfer rule", description="Sizes in bytes."),
)
class TransferRuleViewSet(Lists, mixins.RetrieveModelMixin, Resource):
    rights = {"list": Right.READ, "retrieve": Right.READ}
    queryset = TransferRule.objects.defer("report")
    serializer_class = RuleSerializer
    filterset_class = RuleFilter


@extend_schema_view(
    list=extend_schema(
        summary="Transfers of files",
        description="One for each file of a transfer rule, newest first: where it is copied from, how far that is, and "
        "why its last attempt failed. Sizes in bytes.",
    )
)
class TransferViewSet(Lists, Resource):
    rights = {"list": Right.READ}
    queryset = TransferRequest.objects.all()
    serializer_class = TransferSerializer
    filterset_class = TransferFilter
