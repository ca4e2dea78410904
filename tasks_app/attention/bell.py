"""The number of items that need attention, as on every page: counted in one statement, cached for some seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from django.db.models import Count
from django.utils import timezone

from tasks_app.attention.item_filters import in_state
from tasks_app.models import AttentionItem

CACHE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of open items, acknowledged items (both without snoozed ones), and snoozed items."""

    waiting: int
    taken_on: int
    put_off: int


_kept: tuple[float, Numbers] | None = None


def numbers() -> Numbers:
    """At most CACHE_S old; what people changed in this process is in it."""
    global _kept
    kept = _kept
    if kept is None or kept[0] < time.monotonic():
        now = timezone.now()
        counts = AttentionItem.objects.filter(gone_at__isnull=True).aggregate(
            waiting=Count("id", filter=in_state("open", now)),
            taken_on=Count("id", filter=in_state("acknowledged", now)),
            put_off=Count("id", filter=in_state("snoozed", now)),
        )
        kept = _kept = (time.monotonic() + CACHE_S, Numbers(**counts))
    return kept[1]


def forget() -> None:
    """The next page counts anew."""
    global _kept
    _kept = None
