"""Which items a list shows: one filter for the page and the API."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import django_filters
from django.db.models import Q, QuerySet
from django.utils import timezone

from jedisite.web.choices import ChoiceFilter
from tasks_app.attention.rules.findings import KINDS
from tasks_app.models import AttentionItem

STATES: Final = ("open", "acknowledged", "snoozed", "gone", "all")


def in_state(state: str, now: datetime) -> Q:
    """Open, acknowledged, snoozed or gone items."""
    snoozed = Q(gone_at__isnull=True, snoozed_until__gt=now)
    awake = Q(gone_at__isnull=True) & (Q(snoozed_until__isnull=True) | Q(snoozed_until__lte=now))
    return {
        "open": awake & Q(acknowledged_at__isnull=True),
        "acknowledged": awake & Q(acknowledged_at__isnull=False),
        "snoozed": snoozed,
        "gone": Q(gone_at__isnull=False),
        "all": Q(),
    }[state]


def waiting(now: datetime) -> QuerySet[AttentionItem]:
    """Items that are neither acknowledged nor snoozed, the most urgent first."""
    return AttentionItem.objects.filter(in_state("open", now)).order_by("-rank", "id")


class AttentionFilter(django_filters.FilterSet):
    state = ChoiceFilter(choices=[(s, s) for s in STATES], method="of_state")
    kind = ChoiceFilter(choices=[(name, kind.title) for name, kind in KINDS.items()])
    owner = django_filters.CharFilter(max_length=128)

    class Meta:
        model = AttentionItem
        fields: list[str] = []

    def of_state(self, queryset: QuerySet[AttentionItem], name: str, value: str) -> QuerySet[AttentionItem]:
        return queryset.filter(in_state(value, timezone.now()))
