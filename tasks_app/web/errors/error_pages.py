"""The pages on errors: kinds of failures with what they cost and how they are spread, one kind, and who failed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, needs
from tasks_app.failures import failure_queries as asked
from tasks_app.failures.failure_queries import DIMENSIONS, Kind
from tasks_app.failures.pivots import per_thousand
from tasks_app.failures.rules.spreads import Spread
from tasks_app.models import ErrorFingerprint, JobFailure, Task
from tasks_app.web.errors.error_frame import FILTERS, REFRESH_S, Failures, failures_of, frame_of, plot_over_time
from tasks_app.web.errors.failure_listing import LISTING
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists import list_page
from tasks_app.web.lists.misspelt import one_of, takes

KINDS = 25
ORDERS = {"wasted": "core hours wasted", "failures": "failed jobs", "last": "last seen", "first": "first seen"}


@needs(Right.READ)
@require_safe
@takes(*FILTERS, order=one_of(ORDERS))
def error_list(request: HttpRequest) -> HttpResponse:
    """Kinds of failures in the window, those that wasted most first."""
    now = timezone.now()
    found = failures_of(request, now)
    order = request.GET.get("order") or "wasted"
    kinds = _ordered(asked.kinds(found.rows, now), order)
    shown = kinds[:KINDS]
    numbers = [kind.number for kind in shown]
    spreads, prints = (asked.spreads(found.rows, numbers), asked.fingerprints(numbers)) if shown else ({}, {})
    failures, wasted = sum(kind.failures for kind in kinds), sum(kind.wasted_core_s for kind in kinds)
    ended = _ended(found)
    step, counts = asked.over_time(found.rows, found.window) if failures else (timedelta(), [])
    context = {
        **frame_of(request, "errors", found, now),
        "rows": [_kind_row(found, kind, prints[kind.number], spreads.get(kind.number), wasted, now) for kind in shown],
        "kinds": len(kinds),
        "new": sum(kind.new for kind in kinds),
        "failures": failures,
        "wasted_core_s": wasted,
        "ended": max(ended or 0, failures),
        "percent": _percent(failures, ended),
        "by_category": _by_category(found, kinds, wasted),
        "plot": plot_over_time(found, step, counts),
        "order": order,
        "orders": [(name, title, keyset_pages.address(request, order=name)) for name, title in ORDERS.items()],
        "jobs_url": found.url("errors-jobs"),
    }
    return render(request, "tasks_app/errors.html", context)


def _percent(failures: int, ended: int | None) -> float | None:
    thousandth = per_thousand(failures, ended)
    return None if thousandth is None else thousandth / 10


def _ordered(kinds: list[Kind], order: str) -> list[Kind]:
    keys = {
        "wasted": lambda kind: kind.wasted_core_s,
        "failures": lambda kind: kind.failures,
        "last": lambda kind: kind.last,
        "first": lambda kind: kind.first_seen,
    }
    return sorted(kinds, key=lambda kind: (keys[order](kind), kind.number), reverse=True)


def _kind_row(
    found: Failures, kind: Kind, fingerprint: ErrorFingerprint, spread: Spread | None, wasted: int, now: datetime
) -> dict[str, Any]:
    known = fingerprint.known_until
    return {
        "kind": kind,
        "print": fingerprint,
        "spread": spread.without(found.picked) if spread else None,
        "part": 100 * kind.wasted_core_s / wasted if wasted else 0,
        "known": known is not None and known > now,
        "url": f"{reverse('dashboard:error', args=[kind.number])}?{urlencode(found.window.parameters)}",
        "jobs_url": found.url("errors-jobs", fingerprint=kind.number),
    }


def _by_category(found: Failures, kinds: list[Kind], wasted: int) -> list[dict[str, Any]]:
    sums: dict[str, list[int]] = {}
    for kind in kinds:
        line = sums.setdefault(kind.category, [0, 0])
        line[0] += kind.failures
        line[1] += kind.wasted_core_s
    return [
        {
            "category": category,
            "failures": n,
            "wasted_core_s": core_s,
            "part": 100 * core_s / wasted if wasted else 0,
            "url": found.url("errors", category=category),
        }
        for category, (n, core_s) in sorted(sums.items(), key=lambda item: -item[1][1])
    ]


def _ended(found: Failures) -> int | None:
    """Jobs that ended in the window and fit the filters; None where that is not counted, or a filter is wrong."""
    if not found.filters.is_valid():
        return None
    counted = [
        (name, value) for name, value in found.picked.items() if name not in ("known", "ended_after", "ended_before")
    ]
    if not counted:
        return asked.ended_jobs({"all": [""]}, found.window).get(("all", ""))
    if len(counted) == 1:
        dimension = next((d for d in DIMENSIONS.values() if d.filter == counted[0][0] and d.ends), None)
        if dimension is not None:
            key = counted[0][1]
            return asked.ended_jobs({dimension.ends: [key]}, found.window).get((dimension.ends, key))
    return None


@needs(Right.READ)
@require_safe
def error_jobs(request: HttpRequest) -> HttpResponse:
    """The failed jobs themselves, newest first."""
    now = timezone.now()
    found = failures_of(request, now)
    frame = frame_of(request, "errors-jobs", found, now)
    return list_page.show(request, LISTING, tabs=frame["tabs"], page_name=frame["page_name"])


@needs(Right.READ)
@require_safe
@takes()
def task_errors(request: HttpRequest, task_id: int) -> HttpResponse:
    """Why jobs of a task failed: causes with their parts, where, and since when."""
    task = get_object_or_404(Task, pk=task_id)
    now = timezone.now()
    rows = JobFailure.objects.filter(task_id=task_id)
    kinds = _ordered(asked.kinds(rows, now), "failures")
    numbers = [kind.number for kind in kinds[:KINDS]]
    spreads, prints = (asked.spreads(rows, numbers), asked.fingerprints(numbers)) if kinds else ({}, {})
    failures = sum(kind.failures for kind in kinds)
    sites = asked.top_sites(rows, numbers) if kinds else {}
    context = {
        "section": "tasks",
        "tab": "task-errors",
        "task": task,
        "rows": [
            {
                "kind": kind,
                "print": prints[kind.number],
                "part": 100 * kind.failures / failures,
                "spread": spreads[kind.number].without(("task", "user")),
                "sites": sites.get(kind.number, []),
                "known": (prints[kind.number].known_until or now) > now,
                "jobs_url": f"{reverse('dashboard:jobs')}?{urlencode({'task': task_id, 'fingerprint': kind.number})}",
            }
            for kind in kinds[:KINDS]
        ],
        "more": max(0, len(kinds) - KINDS),
        "failures": failures,
        "wasted_core_s": sum(kind.wasted_core_s for kind in kinds),
        "jobs_url": f"{reverse('dashboard:jobs')}?{urlencode({'task': task_id, 'status': 'failed'})}",
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/task_errors.html", context)
