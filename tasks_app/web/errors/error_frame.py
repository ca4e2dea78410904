"""What all pages on errors share: the failures that an address asks for, the frame around them, a plot over time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from tasks_app.domain import window
from tasks_app.domain.window import Window
from tasks_app.drawing.bars import Bars, bars
from tasks_app.failures import failure_queries as asked
from tasks_app.lists.filtersets import FailureFilter
from tasks_app.models import JobFailure
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists import listing

REFRESH_S = 30
CHOICES = ("rows", "columns", "show", "order")
"""What addresses say of how failures are shown, beside what is common to tables."""
FILTERS = (*FailureFilter.base_filters, "rows", "columns", "show", *listing.SWITCHES, "before", "format")
"""What links from one page on errors bring to another."""


@dataclass(frozen=True, slots=True)
class Failures:
    """The failed jobs that an address asks for: its filters and its window."""

    filters: FailureFilter
    window: Window
    rows: QuerySet[JobFailure]
    """Of the window, with the filters."""
    every: QuerySet[JobFailure]
    """With the filters, of any time."""

    @property
    def given(self) -> dict[str, str]:
        """What an address needs to ask for the same."""
        return {**self.picked, **self.window.parameters}

    @property
    def picked(self) -> dict[str, str]:
        """The filters that are on."""
        return {name: self.filters.data[name] for name in self.filters.filters if self.filters.data.get(name)}

    def url(self, name: str, **changes: object) -> str:
        """The address of another page on the same failures, or on some of them."""
        values = {**self.given, **{k: v for k, v in changes.items() if v is not None}}
        return f"{reverse(f'dashboard:{name}')}?{urlencode(values)}"


def failures_of(request: HttpRequest, now: datetime) -> Failures:
    """What a request asks for; nothing when a filter is wrong, and its form says what is."""
    given = {name: value for name, value in request.GET.items() if name not in window.NAMES}
    filters = FailureFilter(given, queryset=JobFailure.objects.all())
    every = filters.qs if filters.is_valid() else JobFailure.objects.none()
    within = window.read(request.GET, now)
    return Failures(filters, within, asked.in_window(every, within), every)


def frame_of(request: HttpRequest, page: str, found: Failures, now: datetime) -> dict[str, Any]:
    """What all pages on errors show: tabs, filters, the window."""
    return {
        "section": "errors",
        "page_name": page,
        "tabs": [
            (name, title, found.url(name))
            for name, title in (("errors", "Kinds"), ("errors-pivot", "Pivot"), ("errors-jobs", "Failed jobs"))
        ],
        "window": found.window,
        "filters": found.filters.form,
        "picked": [
            (found.filters.filters[name].label or name, value[:60], _without(request, name))
            for name, value in found.picked.items()
        ],
        "kept": {
            **{n: v for n, v in request.GET.items() if n in CHOICES},
            **(found.window.parameters if any(request.GET.get(n) for n in window.NAMES) else {}),
        },
        "categories": [choice for choice, _ in found.filters.form.fields["category"].choices if choice],
        "seconds": REFRESH_S,
        "now": now,
    }


def _without(request: HttpRequest, name: str) -> str:
    return keyset_pages.address(request, **{name: None, "before": None})


def plot_over_time(found: Failures, step: timedelta, counts: list[int], **more: object) -> Bars | None:
    if not counts:
        return None

    def url(start: datetime) -> str:
        moments = {"since": f"{start:%Y-%m-%dT%H:%M}", "until": f"{start + step:%Y-%m-%dT%H:%M}"}
        values = {**found.picked, **moments, **more}
        return f"{reverse('dashboard:errors-jobs')}?{urlencode(values)}"

    return bars(found.window.since, step, counts, url)
