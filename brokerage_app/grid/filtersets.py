"""What lists of queues and storage can be filtered by: one set for the pages and the API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import django_filters
from django.db.models import QuerySet

from brokerage_app.models import Queue, Site, StorageEndpoint
from jedisite.web.choices import ChoiceFilter, NameFilter
from jedisite.web.filters_by_name import KnownFilter, NamedFilters


def _is_site(name: str) -> bool:
    return Site.objects.filter(name=name).exists() or Queue.objects.filter(site_name=name).exists()


def _sites() -> Iterable[str]:
    return {*Site.objects.values_list("name", flat=True), *Queue.objects.values_list("site_name", flat=True)}


def _site_filter(**more: Any) -> KnownFilter:
    return KnownFilter(kind="site", is_known=_is_site, names=_sites, field_name="site_name", max_length=60, **more)


class QueueFilter(NamedFilters):
    name = NameFilter(field_name="name", max_length=128, label="Name contains")
    status = ChoiceFilter(choices=[(s, s) for s in Queue.STATUSES])
    type = ChoiceFilter(choices=[(t, t) for t in Queue.TYPES], label="Takes")
    site = _site_filter(label="Site")
    cloud = django_filters.CharFilter(field_name="cloud", max_length=50, label="Region")
    opportunistic = django_filters.BooleanFilter(method="without_pledge", label="Opportunistic")

    class Meta:
        model = Queue
        fields: list[str] = []

    def without_pledge(self, queryset: QuerySet[Queue], name: str, value: bool) -> QuerySet[Queue]:
        """Queues that may take their slots back, or the others."""
        return queryset.filter(pledged_cores__lt=0) if value else queryset.filter(pledged_cores__gte=0)


class StorageFilter(NamedFilters):
    site = _site_filter()
    type = django_filters.CharFilter(field_name="type", max_length=32)
    tape = django_filters.BooleanFilter(field_name="is_tape")

    class Meta:
        model = StorageEndpoint
        fields: list[str] = []
