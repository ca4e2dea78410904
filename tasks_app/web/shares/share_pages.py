"""Pages on global shares: the tree with what each has against its target, one share, and other values tried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import F
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from brokerage_app.grid import installed_policy, samples
from brokerage_app.grid.share_values import ShareValueError, parse, set_values
from brokerage_app.models import Queue, ResourceType
from brokerage_app.policy import share_change
from jedisite.identity.callers import Right, caller_of, needs
from tasks_app.counts import statistics
from tasks_app.domain import window, words
from tasks_app.domain.states import TASK_FINAL
from tasks_app.drawing import bullets, trends
from tasks_app.drawing.stacks import of_series
from tasks_app.explaining import why_site
from tasks_app.explaining.stored_verdicts import explained
from tasks_app.models import Task
from tasks_app.usage import share_use
from tasks_app.usage.share_use import ShareRow
from tasks_app.web.lists.misspelt import one_of, takes

REFRESH_S = 30
USUAL_WINDOW = "24h"
POINTS = 120
SHOWN = 15
VALUE, SEEN = "value-", "seen-"


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the tree as it is shown: with its bar and, of starved leaves, (what a code means, tasks, one of them)."""

    row: ShareRow
    bullet: bullets.Bullet | None
    reasons: list[tuple[dict[str, Any], int, int]]


def _types() -> list[str]:
    return list(ResourceType.objects.values_list("name", flat=True))


def _regions() -> list[str]:
    return list(Queue.objects.exclude(cloud="").order_by("cloud").values_list("cloud", flat=True).distinct())


@needs(Right.READ)
@require_safe
@takes(resource=one_of(_types), region=one_of(_regions))
def share_list(request: HttpRequest) -> HttpResponse:
    """The tree; of one resource type or region when the address says so."""
    now, counted_at = timezone.now(), statistics.counted_at()
    span = window.read(request.GET, now, USUAL_WINDOW)
    resource_type, region = request.GET.get("resource", ""), request.GET.get("region", "")
    rows = share_use.share_rows(now, resource_type=resource_type, region=region)
    why = share_use.reasons(rows, now)
    lines = [_line(row, why) for row in rows]
    context = {
        "section": "shares",
        "lines": lines,
        "starved": [line for line in lines if line.row.leaf and line.row.state == share_change.STARVED],
        "stopped": _stopped(rows),
        "over": [line for line in lines if line.row.leaf and line.row.state == share_change.OVER],
        "trends": _trends(rows, span.since, span.until),
        "span": span,
        "band_percent": round(100 * share_change.BAND),
        "types": _types(),
        "regions": _regions(),
        "resource": resource_type,
        "region": region,
        "may_steer": caller_of(request).may(Right.STEER),
        "RUNNING": ",".join(share_use.EXECUTING),
        "QUEUED": ",".join(share_use.QUEUED),
        "WAITING": ",".join(share_use.WAITING),
        "query": urlencode({k: v for k, v in (("resource", resource_type), ("region", region)) if v}),
        "seconds": REFRESH_S,
        "now": now,
        "counted_at": counted_at,
    }
    return render(request, "tasks_app/shares.html", context)


def _stopped(rows: tuple[ShareRow, ...]) -> tuple[int, int] | None:
    """Jobs that are queued and tasks that wait although no share runs anything; None while some share does."""
    leaves = [row for row in rows if row.leaf]
    if not any(row.state == share_change.NOTHING_RUNS for row in leaves):
        return None
    return sum(row.load.queued_jobs for row in leaves), sum(row.waiting.tasks for row in leaves if row.waiting)


def _line(row: ShareRow, why: Mapping[str, list[tuple[str, int, int]]]) -> Line:
    label = f"{row.name}: {row.state}"
    if row.ratio is not None and row.actual is not None:
        label = f"{row.name} has {row.actual:.1f} % of the running power, target {row.percent:.1f} %: {row.state}"
    bullet = bullets.of_ratio(row.ratio, share_change.BAND, label, words.tone(row.state))
    return Line(row, bullet, [(explained(code), tasks, one) for code, tasks, one in why.get(row.name, [])])


def _trends(rows: tuple[ShareRow, ...], since: datetime, until: datetime) -> list[tuple[ShareRow, trends.Trend]]:
    """Percent of what ran, of each leaf over time. One query."""
    step = samples.step_for(until - since, POINTS)
    found = samples.each("share", since=since, until=until, step=step, names=("running_hs",), under_way=True)
    leaves = [row for row in rows if row.leaf]
    lists = [found[row.name].values["running_hs"] for row in leaves if row.name in found]
    totals = [sum(v or 0 for v in at) for at in zip(*lists, strict=True)]
    shown = []
    for row in leaves:
        if row.name in found:
            pairs = zip(found[row.name].values["running_hs"], totals, strict=True)
            percents = [None if value is None or not total else 100 * value / total for value, total in pairs]
            shown.append((row, trends.trend(percents, row.percent, share_change.BAND)))
    return shown


@needs(Right.READ)
@require_safe
@takes()
def share_page(request: HttpRequest, name: str) -> HttpResponse:
    """One share: what it has, who uses it, and what its tasks wait for."""
    now = timezone.now()
    span = window.read(request.GET, now, USUAL_WINDOW)
    tree = installed_policy.share_tree()
    rows = share_use.rows_of(tree, now)
    row = next((one for one in rows if one.name == name), None)
    if row is None and not why_site.share_is_known(name):
        raise Http404
    series = share_use.series_of(tree, name, span.since, span.until, POINTS)
    tasks = Task.objects.filter(gshare=name).exclude(status__in=TASK_FINAL)
    counted_at, users = share_use.users_of(name, SHOWN)
    context = {
        "section": "shares",
        "share": name,
        "line": _line(row, {}) if row else None,
        "above": _above(name, tree.shares),
        "children": [one for one in rows if one.parent == name],
        "patterns": _patterns(tree.shares.get(name)),
        "why": why_site.why_share(name, now),
        "users": users,
        "tasks": tasks.order_by(F("current_priority").desc(nulls_last=True), "id")[:SHOWN],
        "plot": of_series(series.at, {name: series.values["running_hs"]}),
        "queued_plot": of_series(series.at, {name: series.values["queued_hs"]}),
        "points": [
            {"at": at, **{what: numbers[i] for what, numbers in series.values.items()}}
            for i, at in reversed(list(enumerate(series.at)))
        ],
        "span": span,
        "may_steer": caller_of(request).may(Right.STEER),
        "RUNNING": ",".join(share_use.EXECUTING),
        "QUEUED": ",".join(share_use.QUEUED),
        "WAITING": ",".join(share_use.WAITING),
        "seconds": REFRESH_S,
        "now": now,
        "counted_at": counted_at,
    }
    return render(request, "tasks_app/share_page.html", context)


def _above(name: str, shares: Mapping[str, Any]) -> list[str]:
    """The shares above one, from the top."""
    found: list[str] = []
    parent = shares[name].parent if name in shares else None
    while parent:
        found.insert(0, parent)
        parent = shares[parent].parent
    return found


def _patterns(share: Any) -> list[tuple[str, str]]:
    """What a task must have to belong to a leaf, as (attribute, regular expression)."""
    if share is None:
        return []
    names = ("vo", "prod_source_label", "working_group", "campaign", "processing_type", "trans_path", "rtype")
    return [(name.replace("_", " "), getattr(share, name)) for name in names if getattr(share, name)]


@needs(Right.READ)
@require_safe
@takes(starting=VALUE)
def share_targets(request: HttpRequest) -> HttpResponse:
    """Other values of shares, and what they would do. The address holds the values; nothing is stored."""
    rows = installed_policy.share_rows()
    given = {key.removeprefix(VALUE): str(text) for key, text in request.GET.dict().items() if key.startswith(VALUE)}
    known = {row.name for row in rows}
    values: dict[str, int] = {}
    faults: list[str] = []
    for name, text in given.items():
        try:
            if name not in known:
                raise ShareValueError(name, f"There is no share {name[:32]!r}.")
            values[name] = parse(name, text)
        except ShareValueError as exc:
            faults.append(str(exc))
    loads, turned_over = share_use.loads(), share_use.turned_over()
    executing, queued = (
        {n: load.executing for n, load in loads.items()},
        {n: load.queued for n, load in loads.items()},
    )
    effects = share_change.effects(rows, {} if faults else values, executing, queued, turned_over=turned_over)
    context = {
        "section": "shares",
        "effects": effects,
        "typed": given,
        "faults": faults,
        "changed": not faults and any(one.changed for one in effects),
        "turned_over": round(100 * turned_over),
        "may_steer": caller_of(request).may(Right.STEER),
        "now": timezone.now(),
    }
    return render(request, "tasks_app/share_targets.html", context, status=400 if faults else 200)


@needs(Right.STEER)
@require_POST
def share_targets_change(request: HttpRequest) -> HttpResponse:
    """Store the values that were looked at in the preview."""
    asked = {key.removeprefix(VALUE): str(text) for key, text in request.POST.dict().items() if key.startswith(VALUE)}
    try:
        values = {name: parse(name, text) for name, text in asked.items()}
        seen = {n: parse(n, request.POST.get(f"{SEEN}{n}", "")) for n in asked}
        changed = set_values(values, seen=seen, by=caller_of(request).name, reason=request.POST.get("reason", ""))
    except ShareValueError as exc:
        messages.error(request, str(exc))
        back = urlencode({f"{VALUE}{name}": text for name, text in asked.items()})
        return redirect(f"{reverse('dashboard:share-targets')}?{back}")
    told = ", ".join(f"{name} from {old} to {new}" for name, (old, new) in sorted(changed.items()))
    messages.success(request, f"Changed: {told}. Agents follow within seconds.")
    return redirect("dashboard:shares")
