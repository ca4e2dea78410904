"""The pages on errors: kinds of failures with what they cost and how they are spread, one kind, and who failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from jedisite.identity.callers import Right, caller_of, needs
from jedisite.web.reasons import ReasonFormField
from tasks_app.domain import window
from tasks_app.domain.job_errors import main_error
from tasks_app.domain.window import Window
from tasks_app.drawing.bars import Bars, bars
from tasks_app.failures import classifying, pivots
from tasks_app.failures import failure_queries as asked
from tasks_app.failures.failure_queries import DIMENSIONS, Kind
from tasks_app.failures.pivots import per_thousand
from tasks_app.failures.rules.spreads import Spread
from tasks_app.lists.filtersets import FailureFilter
from tasks_app.models import ErrorFingerprint, Job, JobFailure, Task
from tasks_app.web.errors.failure_listing import LISTING
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists import listing
from tasks_app.web.lists.misspelt import one_of, takes

REFRESH_S = 30
KINDS = 25
NEWEST = 10_000
"""Failures of one kind or task that its page counts by site and the like, where there are more."""
TOP = 8
EXAMPLES = 6
CHOICES = ("rows", "columns", "show", "order")
"""What addresses say of how failures are shown, beside what is common to tables."""
FILTERS = (*FailureFilter.base_filters, "rows", "columns", "show", *listing.SWITCHES, "before", "format")
"""What links from one page on errors bring to another."""
ORDERS = {"wasted": "core hours wasted", "failures": "failed jobs", "last": "last seen", "first": "first seen"}


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
        "plot": _plot(found, step, counts),
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


def _plot(found: Failures, step: timedelta, counts: list[int], **more: object) -> Bars | None:
    if not counts:
        return None

    def url(start: datetime) -> str:
        moments = {"since": f"{start:%Y-%m-%dT%H:%M}", "until": f"{start + step:%Y-%m-%dT%H:%M}"}
        values = {**found.picked, **moments, **more}
        return f"{reverse('dashboard:errors-jobs')}?{urlencode(values)}"

    return bars(found.window.since, step, counts, url)


@needs(Right.READ)
@require_safe
@takes(*FILTERS, "order")
def error_pivot(request: HttpRequest) -> HttpResponse:
    """Failed jobs by two dimensions, as a table and as a heat map."""
    now = timezone.now()
    found = failures_of(request, now)
    rows_by, columns_by, measure, faults = pivots.choice(request.GET)
    table = pivots.pivot(found.every, found.window, rows_by, columns_by, measure)
    url = _cell_urls(found, table)
    context = {
        **frame_of(request, "errors-pivot", found, now),
        "pivot": table,
        "faults": faults,
        "dimensions": list(DIMENSIONS.values()),
        "measures": pivots.MEASURES,
        "lines": [
            {
                "head": row,
                "url": url(row.key, None),
                "cells": [{"cell": cell, "url": url(cell.row.key, cell.column.key)} for cell in line],
            }
            for row, line in zip(table.rows, table.cells, strict=True)
        ],
        "heads": [{"head": head, "url": url(None, head.key)} for head in table.columns],
        "jobs_url": found.url("errors-jobs"),
        "other_way": keyset_pages.address(request, rows=columns_by, columns=rows_by),
        "heat": {
            "rows": [row.label[:60] for row in table.rows],
            "columns": [column.label[:60] for column in table.columns],
            "values": [
                [x, y, round(cell.value, 2)]
                for y, line in enumerate(table.cells)
                for x, cell in enumerate(line)
                if cell.value
            ],
            "urls": [url(cell.row.key, cell.column.key) for line in table.cells for cell in line if cell.value],
            "measure": pivots.MEASURES[measure],
        },
        "exports": [
            (form.upper(), f"{reverse('api-v2:errors-pivot')}?{urlencode(_export(found, rows_by, columns_by, form))}")
            for form in ("json", "csv", "ndjson")
        ],
    }
    return render(request, "tasks_app/error_pivot.html", context)


def _export(found: Failures, rows_by: str, columns_by: str, form: str) -> dict[str, str]:
    return {**found.given, "rows": rows_by, "columns": columns_by, "format": form}


def _cell_urls(found: Failures, table: pivots.Pivot) -> Callable[[str | None, str | None], str]:
    """Addresses of the failed jobs of a row, a column, or both by their keys; "" where no filter finds them: those of
    which a value is not known. Made of one address, since there are hundreds."""
    names = (table.rows_by.filter, table.columns_by.filter)
    start = reverse("dashboard:errors-jobs")
    kept = {
        (by_row, by_column): urlencode(
            {n: v for n, v in found.given.items() if not ((by_row and n == names[0]) or (by_column and n == names[1]))}
        )
        for by_row in (True, False)
        for by_column in (True, False)
    }

    def url(row: str | None, column: str | None) -> str:
        if row == "" or column == "":
            return ""
        picked = [f"{n}={quote(key, safe='')}" for n, key in zip(names, (row, column), strict=True) if key is not None]
        return f"{start}?{'&'.join([kept[row is not None, column is not None], *picked])}"

    return url


@needs(Right.READ)
@require_safe
def error_jobs(request: HttpRequest) -> HttpResponse:
    """The failed jobs themselves, newest first."""
    now = timezone.now()
    found = failures_of(request, now)
    frame = frame_of(request, "errors-jobs", found, now)
    return listing.show(request, LISTING, tabs=frame["tabs"], page_name=frame["page_name"])


class ClassifyForm(forms.Form):
    """What is known of an error. Times are in UTC."""

    ticket = forms.CharField(max_length=200, required=False, label="Ticket", help_text="its address or number")
    known_until = forms.DateTimeField(
        required=False,
        label="Known and expected until",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    advice = forms.CharField(
        max_length=1000, required=False, label="What to do", widget=forms.Textarea(attrs={"rows": 3})
    )
    reason = ReasonFormField(max_length=300, label="Reason for this change")

    def clean_known_until(self) -> datetime | None:
        until: datetime | None = self.cleaned_data["known_until"]
        if until is not None and until > timezone.now() + timedelta(days=366):
            raise forms.ValidationError("That is more than a year ahead.")
        return until


@needs(Right.READ)
@require_safe
@takes(*FILTERS, "order")
def error_page(request: HttpRequest, number: int) -> HttpResponse:
    """One kind of failure: what is known of it, when, where and whose it was."""
    return _error_page(request, number, None)


def _error_page(request: HttpRequest, number: int, form: ClassifyForm | None) -> HttpResponse:
    now = timezone.now()
    fingerprint = get_object_or_404(ErrorFingerprint, pk=number)
    found = failures_of(request, now)
    rows = found.rows.filter(fingerprint_id=number)
    tops = asked.tops(rows, NEWEST, TOP)
    ended = asked.ended_jobs({name: [line.key for line in lines] for name, lines in tops.items()}, found.window)
    step, counts = asked.over_time(rows, found.window)
    failures = sum(counts)
    if failures > NEWEST:
        ended = {}  # rates of a part of the failures would be too low
    examples = list(rows.order_by("-ended")[:EXAMPLES])
    jobs = Job.objects.in_bulk([failure.id for failure in examples])
    spread = asked.spreads(rows, [number], NEWEST).get(number)
    may_classify = caller_of(request).may(Right.OPERATE)
    if form is None:
        form = ClassifyForm(initial={name: getattr(fingerprint, name) for name in classifying.FIELDS}, label_suffix="")
    context = {
        **frame_of(request, "error", found, now),
        "fingerprint": fingerprint,
        "new": now - fingerprint.first_seen < asked.NEW_FOR,
        "known": fingerprint.known_until is not None and fingerprint.known_until > now,
        "spread": spread.without(found.picked) if spread else None,
        "failures": failures,
        "sampled": NEWEST if failures > NEWEST else None,
        "tops": [_top_table(found, number, name, lines, ended) for name, lines in tops.items() if lines],
        "plot": _plot(found, step, counts, fingerprint=number),
        "examples": [(failure, _said(failure, jobs)) for failure in examples],
        "ticket_url": fingerprint.ticket if fingerprint.ticket.startswith(("https://", "http://")) else "",
        "form": form if may_classify else None,
        "jobs_url": found.url("errors-jobs", fingerprint=number),
        "pivot_url": found.url("errors-pivot", fingerprint=number, rows="site", columns="node"),
    }
    return render(request, "tasks_app/error_page.html", context, status=422 if form.errors else 200)


def _said(failure: JobFailure, jobs: dict[Any, Job]) -> str:
    error = main_error(jobs[failure.id].__dict__) if failure.id in jobs else None
    return (error.detail or error.sentence) if error else ""


def _top_table(
    found: Failures, number: int, name: str, lines: list[asked.Top], ended: dict[tuple[str, str], int]
) -> dict[str, Any]:
    dimension = DIMENSIONS[name]
    return {
        "title": dimension.title,
        "lines": [
            {
                "top": line,
                "rate": per_thousand(line.failures, ended.get((name, line.key))),
                "name": name,
                "url": found.url("errors-jobs", fingerprint=number, **{dimension.filter: line.key}) if line.key else "",
            }
            for line in lines
        ],
    }


@needs(Right.OPERATE)
@require_POST
def classify(request: HttpRequest, number: int) -> HttpResponse:
    """Write down what is known of an error."""
    form = ClassifyForm(request.POST, label_suffix="")
    if not form.is_valid():
        return _error_page(request, number, form)
    try:
        classifying.classify(
            number,
            ticket=form.cleaned_data["ticket"],
            known_until=form.cleaned_data["known_until"],
            advice=form.cleaned_data["advice"],
            by=caller_of(request).name,
            reason=form.cleaned_data["reason"],
        )
    except ErrorFingerprint.DoesNotExist as exc:
        raise Http404(f"There is no error {number}.") from exc
    messages.success(request, "What is known of this error is written down.")
    return redirect("dashboard:error", number)


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
