"""Pages on brokerage as a whole: decisions over time, sites by reason, tasks without a site; one decision; the codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, get_args
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.models import VerdictRecord
from jedisite import refusals
from jedisite.identity.callers import Right, needs
from tasks_app.domain import window as windows
from tasks_app.drawing.scales import shade
from tasks_app.drawing.stacks import OTHERS, Period, Stack, of_periods
from tasks_app.explaining import stored_verdicts
from tasks_app.models import Task
from tasks_app.web.brokerage import brokerage_queries as queries
from tasks_app.web.brokerage.brokerage_queries import CHOSEN, Matrix, Scope
from tasks_app.web.brokerage.needs_words import Inputs, inputs_of
from tasks_app.web.brokerage.verdict_pages import PICKS, Part, Picked, Which
from tasks_app.web.brokerage.why_pages import csv_of, csv_query
from tasks_app.web.lists.misspelt import one_of, takes

REFRESH_S = 30
BEFORE: Final = 50
KINDS: Final[Mapping[str, str]] = {"job": "sites for jobs", "task": "nuclei for tasks", "merge": "sites for merge jobs"}


@needs(Right.READ)
@require_safe
@takes("site", "code", kind=one_of(KINDS))
def brokerage_page(request: HttpRequest) -> HttpResponse:
    """Decisions over the window, sites by reason, and the open tasks for which nothing was found."""
    now = timezone.now()
    window = windows.read(request.GET, now)
    kind = request.GET.get("kind") or "job"
    given = {name: request.GET.get(name, "").replace("\0", "")[:60].strip() for name in ("share", "code", "site")}
    scope = Scope(window, kind, given["share"], given["code"])
    spans = queries.decisions_over_time(scope)
    found = queries.matrix(scope, now, given["site"])
    waits = queries.waiting(scope)
    outcomes: dict[str, int] = {}
    for span in spans:
        for code, n in span.counts.items():
            outcomes[code] = outcomes.get(code, 0) + n
    decided = sum(outcomes.values())
    rate, rate_of = decided / max(window.length / timedelta(minutes=1), 1), "per minute"
    if rate < 1:
        rate, rate_of = rate * 60, "per hour"
    plot = of_periods(spans, window.since, window.until, good=CHOSEN, called=stored_verdicts.title_of)
    context = {
        "section": "brokerage",
        "window": window,
        "scope": scope,
        "kinds": KINDS,
        "given": given,
        "now": now,
        "seconds": REFRESH_S,
        "step": queries.step_of(window),
        "spans": spans,
        "decided": decided,
        "chosen": outcomes.get(CHOSEN, 0),
        "rate": rate,
        "rate_of": rate_of,
        "none": decided - outcomes.get(CHOSEN, 0),
        "plot": plot,
        "time_rows": plot_rows(plot, spans),
        "outcomes": [
            {**stored_verdicts.explained(code), "decisions": n}
            for code, n in sorted(outcomes.items(), key=lambda pair: (-pair[1], pair[0]))
            if code != CHOSEN
        ],
        "matrix": found,
        "heat": heat_of(found),
        "heat_rows": heat_rows(found),
        "waiting": waits.rows,
        "more": waits.more,
        "clear": urlencode(window.parameters),
        "query": urlencode(window.parameters | {"kind": scope.kind, "share": scope.share}),
        "by_code": [{**stored_verdicts.explained(code), "tasks": n} for code, n in waits.by_code.items()],
    }
    return render(request, "tasks_app/brokerage.html", context)


def plot_rows(plot: Stack, spans: Sequence[Period]) -> list[tuple[datetime, list[int]]]:
    """The numbers of stacked areas as rows of a table, in the order of the layers, the newest first."""
    named = {one.name for one in plot.layers}
    return [
        (
            span.start,
            [
                sum(n for name, n in span.counts.items() if name not in named)
                if one.name == OTHERS
                else span.counts.get(one.name, 0)
                for one in plot.layers
            ],
        )
        for span in reversed(spans)
    ]


def heat_of(found: Matrix) -> dict[str, Any]:
    """A matrix as a heat map reads it: cells as [column, row, decisions]."""
    return {
        "rows": list(found.sites),
        "columns": list(found.codes),
        "measure": "decisions",
        "cells": [
            [x, y, found.cells[site, code]]
            for y, site in enumerate(found.sites)
            for x, code in enumerate(found.codes)
            if (site, code) in found.cells
        ],
    }


def heat_rows(found: Matrix) -> list[tuple[str, int, int, list[tuple[str, int, int]]]]:
    """The same as rows of a table: (site, skipped, chosen, [(code, decisions, shade), ...])."""
    return [
        (
            site,
            found.of_site[site],
            found.chosen.get(site, 0),
            [(code, n, shade(n, found.most)) for code in found.codes for n in (found.cells.get((site, code), 0),)],
        )
        for site in found.sites
    ]


@needs(Right.READ)
@require_safe
@takes(*PICKS, answer=one_of(get_args(Which)), format=one_of(["csv"]))
def decision(request: HttpRequest, verdict_id: int) -> HttpResponse:
    """One decision: what was asked for, what was left behind each gate, the weights, and every site.

    `?format=csv` sends the sites that fit the address as a file.
    """
    record = get_object_or_404(VerdictRecord.objects.select_related("snapshot").defer("snapshot__body"), pk=verdict_id)
    same = VerdictRecord.objects.filter(task_id=record.task_id, kind=record.kind).defer("skipped", "needs", "facts")
    before = list(same.filter(pk__lt=record.pk).order_by("-id")[:BEFORE])
    after = same.filter(pk__gt=record.pk).order_by("id").values_list("id", flat=True).first()
    picked = Picked.of(request.GET)
    part = Part(record, before, picked)
    if request.GET.get("format") == "csv":
        return csv_of(f"decision-{record.id}", [part])
    inputs: Inputs = inputs_of(record.needs or {})
    context = {
        "section": "brokerage",
        "record": record,
        "part": part,
        "picked": picked,
        "before": before[0] if before else None,
        "after": after,
        "task": Task.objects.filter(pk=record.task_id).only("id", "name", "status").first(),
        "changes": stored_verdicts.changes(before[0], record) if before else None,
        "inputs": inputs,
        "csv": csv_query(picked),
        "factors": factors_of(record),
        "stopped": stored_verdicts.explained(record.stopped[0]) if record.stopped else None,
        "in_full": bool(record.skipped) or not record.reasons,
        "now": timezone.now(),
    }
    return render(request, "tasks_app/decision.html", context)


def factors_of(record: VerdictRecord) -> tuple[list[str], list[tuple[str, float, list[tuple[str, float | None]]]]]:
    """Names of all factors of the weights, and for each chosen site its weight and its factors in that order."""
    given = [(site, weight, rest[0] if rest else {}) for site, weight, *rest in record.chosen]
    names = list(dict.fromkeys(name for _, _, factors in given for name in factors))
    return names, [(site, weight, [(name, factors.get(name)) for name in names]) for site, weight, factors in given]


@needs(Right.READ)
@require_safe
@takes()
def codes_page(request: HttpRequest) -> HttpResponse:
    """Every refusal code with what it means, by group."""
    groups: dict[str, list[refusals.Refusal]] = {}
    for code in refusals.all_codes():
        found = refusals.get(code)
        groups.setdefault(found.group, []).append(found)
    return render(request, "tasks_app/help_codes.html", {"section": "help", "groups": sorted(groups.items())})


def _called(kind: str) -> str:
    """What people call decisions of a kind."""
    return f"decisions on {KINDS[kind]}" if kind in KINDS else kind


@needs(Right.READ)
@require_safe
@takes()
def code_page(request: HttpRequest, code: str) -> HttpResponse:
    """One refusal code: what it means, how often it was said by day, where, and which open tasks it blocks."""
    now = timezone.now()
    spans, sites = queries.history_of(code, now)
    if code not in refusals.all_codes() and not spans:
        raise Http404
    window = windows.read({"window": "24h"}, now)
    waits = queries.waiting(Scope(window, code=code))
    plot = of_periods(spans, now - timedelta(days=queries.DAYS), now, called=_called) if spans else None
    context = {
        "section": "brokerage",
        "code": code,
        "meaning": stored_verdicts.explained(code),
        "spans": spans,
        "sites": sites,
        "severity": refusals.get(code).severity if code in refusals.all_codes() else "",
        "waiting": waits.rows,
        "more": waits.more,
        "plot": plot,
        "day_rows": plot_rows(plot, spans) if plot else [],
        "now": now,
    }
    return render(request, "tasks_app/code.html", context)
