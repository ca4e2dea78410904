"""API v2: samples of the grid over time, for plots and reports."""

from __future__ import annotations

import django_filters
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from brokerage_app.models import Sample
from jedisite.identity.callers import Right
from jedisite.web.choices import ChoiceFilter
from tasks_app.api.v2.base import Lists, Resource
from tasks_app.lists.filtersets import MomentFilter

_SITE, _SHARE = ~Q(site=""), ~Q(share="")
KINDS = {"grid": ~_SITE & ~_SHARE, "sites": _SITE & ~_SHARE, "shares": ~_SITE & _SHARE, "pairs": _SITE & _SHARE}


class SampleFilter(django_filters.FilterSet):
    of = ChoiceFilter(
        choices=[(kind, kind) for kind in KINDS],
        method="of_kind",
        label="the whole grid, each site, each share, or each pair of both",
    )
    site = django_filters.CharFilter(max_length=128)
    share = django_filters.CharFilter(max_length=32)
    since = MomentFilter(field_name="at", lookup_expr="gte")
    until = MomentFilter(field_name="at", lookup_expr="lte")

    class Meta:
        model = Sample
        fields: list[str] = []

    def of_kind(self, queryset: QuerySet[Sample], name: str, value: str) -> QuerySet[Sample]:
        return queryset.filter(KINDS[value])


class SampleSerializer(serializers.ModelSerializer[Sample]):
    class Meta:
        model = Sample
        fields = "__all__"


@extend_schema_view(
    list=extend_schema(
        summary="Samples of the grid",
        description="One every five minutes, of the whole grid, each site, each share and each pair of them that is in use; "
        "an empty site or share means all. Jobs, cores and HS23 at that moment; finished jobs, failed jobs and the "
        "core seconds of failed jobs in the five minutes before it. Null: not sampled.",
    )
)
class SampleViewSet(Lists, Resource):
    rights = {"list": Right.READ}
    queryset = Sample.objects.all()
    serializer_class = SampleSerializer
    filterset_class = SampleFilter
