"""Numbers of open jobs by site, which harvester reads to decide how many workers it submits: v1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Count
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes

from jedisite.identity.callers import Right
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.wire import envelope
from tasks_app.models import Job

ALWAYS_TOLD = ("assigned", "activated", "running")


@call("statistics/active_job_stats_by_site", "GET", Right.SITE_DATA, data=OpenApiTypes.OBJECT)
def active_job_stats_by_site(ask: Ask) -> HttpResponse:
    """Open jobs as {site: {state: number}}."""
    return envelope(_nested(_counted("site", "status")))


@call("statistics/active_job_detailed_stats_by_site", "GET", Right.SITE_DATA, data=OpenApiTypes.OBJECT)
def active_job_detailed_stats_by_site(ask: Ask) -> HttpResponse:
    """Open jobs as {site: {resource type: {label: {state: number}}}}."""
    return envelope(_nested(_counted("site", "resource_type", "prod_source_label", "status")))


def _counted(*columns: str) -> Iterable[tuple[Any, ...]]:
    return Job.objects.open().exclude(site=None).values_list(*columns).annotate(Count("id")).order_by(*columns)


def _nested(rows: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    """Rows of names, a state and a number as objects in objects."""
    found: dict[str, Any] = {}
    for *names, status, number in rows:
        inner = found
        for name in names:
            inner = inner.setdefault(name or "", {})
        if not inner:
            inner.update(dict.fromkeys(ALWAYS_TOLD, 0))
        inner[status] = number
    return found
