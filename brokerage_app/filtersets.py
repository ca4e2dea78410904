"""What lists of queues and storage can be filtered by: one set for the pages and the API."""

from __future__ import annotations

import django_filters

from brokerage_app.models import Queue, StorageEndpoint


class QueueFilter(django_filters.FilterSet):
    status = django_filters.ChoiceFilter(choices=[(s, s) for s in Queue.STATUSES])
    type = django_filters.ChoiceFilter(choices=[(t, t) for t in Queue.TYPES])
    site = django_filters.CharFilter(field_name="site_name", max_length=60)
    cloud = django_filters.CharFilter(field_name="cloud", max_length=50)

    class Meta:
        model = Queue
        fields: list[str] = []


class StorageFilter(django_filters.FilterSet):
    site = django_filters.CharFilter(field_name="site_name", max_length=60)
    type = django_filters.CharFilter(field_name="type", max_length=32)
    tape = django_filters.BooleanFilter(field_name="is_tape")

    class Meta:
        model = StorageEndpoint
        fields: list[str] = []
