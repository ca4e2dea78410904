"""Pages of time: what happened to a task or a job, in lanes, with what is usual, the way through the states, and a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, caller_of, needs
from jedisite.web import exports
from tasks_app.domain import words
from tasks_app.domain.states import JOB_FINAL, TASK_FINAL
from tasks_app.drawing import diagrams, lanes, spans
from tasks_app.drawing.lanes import Bars
from tasks_app.drawing.spans import Lane, Moment, Span, View
from tasks_app.models import Task
from tasks_app.web.commands import command_buttons
from tasks_app.web.frame import keyset_pages
from tasks_app.web.help import machines
from tasks_app.web.jobs import job_doing, job_pages
from tasks_app.web.lists.misspelt import one_of, takes
from tasks_app.web.tasks import timeline_queries as queries

JOB_ROWS: Final = 24
"""More rows of jobs are drawn as bars."""
TABLE_ROWS: Final = 1000
COLUMNS: Final = ("lane", "what", "from", "until", "duration_s", "usual_s", "count", "by", "reason")
MARGIN: Final = 0.02


@needs(Right.READ)
@require_safe
@takes("from", "to", format=one_of(["csv"]))
def task_timeline(request: HttpRequest, task_id: int) -> HttpResponseBase:
    """The timeline of a task; `from` and `to` zoom, `format=csv` sends its rows."""
    task = get_object_or_404(Task.objects.all(), pk=task_id)
    now = timezone.now()
    log = queries.task_log(task_id)
    stays = spans.stays(log, kind="task", usual=queries.usual(task), final=map(str, TASK_FINAL))
    is_over = task.status in TASK_FINAL
    first = min(task.creation_date, stays[0].start if stays else task.creation_date)
    last = (max(stays[-1].start, task.end_time or first) if stays else task.end_time or now) if is_over else now
    view = read_view(request, first, last)
    found = queries.jobs_of(task_id, view.since, view.until)
    given = queries.commands_to(task)
    moments = queries.task_events(task, given, spans.notes(log), found.site_names, first)
    drawn: list[Lane | Bars] = [Lane("states", [stays])]
    job_rows = spans.packed(found.spans, now)
    bars = found.bars if found.total > queries.MOST_MARKS or len(job_rows) > JOB_ROWS else []
    if bars:
        drawn.append(Bars("jobs", bars))
    else:
        drawn.append(Lane("jobs", job_rows, note="" if job_rows else "no job in this time", is_slim=True))
    hidden = len(found.site_names) - len(found.sites)
    drawn.append(
        Lane(
            "sites",
            [[site] for site in found.sites],
            note=f"and {words.plural(hidden, 'site')} with fewer jobs"
            if hidden > 0
            else ""
            if found.sites
            else "none in this time",
        )
    )
    drawn.append(Lane("events", moments=moments))
    rows = list(_rows([*stays, *found.sites, *found.spans], bars if not found.spans else (), moments, view, now))
    if request.GET.get("format") == "csv":
        return _file(rows, f"task-{task_id}-timeline")
    context = {
        "section": "tasks",
        "task": task,
        "total": found.total,
        "every": found.every,
        "buttons": command_buttons.buttons(
            task, caller_of(request), [one.name for one in reversed(given) if one.is_waiting]
        ),
        **_context(request, machines.TASKS, drawn, stays, rows, view, now, "task"),
    }
    return render(request, "tasks_app/task_timeline.html", context)


@needs(Right.READ)
@require_safe
@takes("from", "to", format=one_of(["csv"]))
def job_timeline(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """The timeline of a job, and of the attempts before and after it."""
    job = job_pages.job_of(job_id)
    now = timezone.now()
    log = queries.job_log(job_id)
    stays = spans.stays(log, kind="", usual={}, final=map(str, JOB_FINAL))
    attempts = [_attempt(row, job_id) for row in job_pages.attempts_of(job_id) if row.get("creation_time")]
    at_sites = _at_sites(log, stays)
    moments = queries.job_events(job_id, spans.notes(log))
    starts = [job.creation_time, *(span.start for span in (*stays, *attempts))]
    ends = [span.end for span in (*stays, *attempts) if span.end] + [moment.at for moment in moments]
    is_over = job.status in JOB_FINAL and all(span.end for span in attempts)
    view = read_view(request, min(starts), max([*ends, *starts]) if is_over else now)
    drawn: list[Lane | Bars] = [
        Lane("states", [stays] if stays else [], note="" if stays else "the status log is empty")
    ]
    if attempts:
        drawn.append(Lane("attempts", spans.packed(attempts, now)))
    drawn += [Lane("sites", [at_sites] if at_sites else []), Lane("events", moments=moments)]
    rows = list(_rows([*stays, *attempts, *at_sites], (), moments, view, now))
    if request.GET.get("format") == "csv":
        return _file(rows, f"job-{job_id}-timeline")
    context = {
        "section": "jobs",
        "job": job,
        "buttons": job_doing.job_buttons(job, caller_of(request)),
        **_context(request, machines.JOBS, drawn, stays, rows, view, now, ""),
    }
    return render(request, "tasks_app/job_timeline.html", context)


def _attempt(row: dict[str, Any], job_id: int) -> Span:
    span = queries.job_span(
        row["id"],
        row["status"],
        row["site"],
        row["attempt"],
        row["creation_time"],
        row["start_time"],
        row["end_time"],
        row["modification_time"],
    )
    if row["id"] != job_id:
        return span
    return Span(span.lane, f"{span.text} (this)", span.tone, span.start, span.end, reason=span.reason, url=span.url)


def _at_sites(log: Sequence[queries.Logged], stays: Sequence[Span]) -> list[Span]:
    """At which site a job was, as its log says."""
    found: list[Span] = []
    for row in log:
        if not row.site or (found and found[-1].text == row.site):
            continue
        if found:
            found[-1] = Span("sites", found[-1].text, "run", found[-1].start, row.at)
        found.append(Span("sites", row.site, "run", row.at))
    if found and stays and stays[-1].end:
        found[-1] = Span("sites", found[-1].text, "run", found[-1].start, stays[-1].end)
    return found


def read_view(request: HttpRequest, first: datetime, last: datetime) -> View:
    """The times in the address, or all there is to show with a little room on both sides."""
    last = max(last, first + spans.SHORTEST)
    room = (last - first) * MARGIN
    whole = View(first - room, last + room, first, last)
    begin, end = request.GET.get("from", ""), request.GET.get("to", "")
    if not begin and not end:
        return whole
    try:
        since = _moment(begin) if begin else whole.since
        until = _moment(end) if end else whole.until
    except (ValueError, OverflowError):
        return View(whole.since, whole.until, first, last, "from and to are times such as 2026-01-31T08:00, in UTC.")
    if not spans.SHORTEST <= until - since <= timedelta(days=3660):
        return View(whole.since, whole.until, first, last, "from must be between ten seconds and ten years before to.")
    return View(since, until, first, last)


def _moment(text: str) -> datetime:
    """Raises ValueError or OverflowError."""
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _context(
    request: HttpRequest,
    machine: diagrams.Machine,
    drawn: Sequence[Lane | Bars],
    stays: Sequence[Span],
    rows: Sequence[dict[str, Any]],
    view: View,
    now: datetime,
    kind: str,
) -> dict[str, Any]:
    def at(times: tuple[datetime, datetime]) -> str:
        since, until = times
        return keyset_pages.address(
            request, **{"from": f"{since:%Y-%m-%dT%H:%M:%S}", "to": f"{until:%Y-%m-%dT%H:%M:%S}", "format": None}
        )

    route = diagrams.Route(spans.taken(stays), stays[-1].text) if stays else None
    return {
        "kind": kind,
        "view": view,
        "drawing": mark_safe(lanes.draw(drawn, view, now)),
        "sentence": spans.sentence(stays, now),
        "tone": words.tone(stays[-1].text, kind) if stays else "wait",
        "totals": spans.totals(stays, now),
        "machine": mark_safe(diagrams.draw(machine, route)) if route else "",
        "rows": rows[:TABLE_ROWS],
        "more_rows": max(len(rows) - TABLE_ROWS, 0),
        "zooms": [
            ("in", "+", at(view.zoomed(0.5))),
            ("out", "-", at(view.zoomed(2))),
            ("earlier", "ArrowLeft", at(view.moved(-0.5))),
            ("later", "ArrowRight", at(view.moved(0.5))),
        ],
        "whole_url": keyset_pages.address(request, **{"from": None, "to": None, "format": None}),
        "csv_url": keyset_pages.address(request, format="csv"),
        "now": now,
    }


def _rows(
    shown: Sequence[Span], bars: Sequence[lanes.Bar], moments: Sequence[Moment], view: View, now: datetime
) -> Iterator[dict[str, Any]]:
    """What is drawn, as rows: of the page's table and of the file. Within the view, lane by lane, oldest first."""
    for span in shown:
        if span.start < view.until and (span.end or now) >= view.since:
            yield _row(
                span.lane,
                span.text,
                span.start,
                span.end,
                span.length(now),
                usual_s=span.usual_s,
                count=span.count,
                by=span.by,
                reason=span.reason,
            ) | {"url": span.url}
    for bar in bars:
        yield _row("jobs", bar.status, bar.start, bar.end, bar.end - bar.start, count=bar.count) | {"url": bar.url}
    for moment in sorted(moments, key=lambda moment: moment.at):
        if view.since <= moment.at <= view.until:
            yield _row("events", moment.text, moment.at, moment.at, timedelta(), by=moment.by, reason=moment.reason)


def _row(
    lane: str,
    what: str,
    start: datetime,
    end: datetime | None,
    length: timedelta,
    *,
    usual_s: float | None = None,
    count: int = 1,
    by: str = "",
    reason: str = "",
) -> dict[str, Any]:
    duration_s = round(length.total_seconds(), 3)
    return {
        "lane": lane,
        "what": what,
        "from": start,
        "until": end,
        "duration_s": duration_s,
        "usual_s": usual_s,
        "count": count,
        "by": by,
        "reason": reason,
    }


def _file(rows: Sequence[dict[str, Any]], name: str) -> HttpResponseBase:
    plain: list[exports.Row] = [
        {key: value.isoformat() if isinstance(value, datetime) else value for key, value in row.items()} for row in rows
    ]
    answer = HttpResponse(b"".join(exports.CSVExport().lines(COLUMNS, [plain])), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return answer
