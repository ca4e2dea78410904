"""Pages that say why: a task waits, a site gets no work, the tasks of a share wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple, get_args
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.advice.task_remedies import Remedy
from brokerage_app.models import VerdictRecord
from jedisite.identity.callers import Caller, Right, caller_of, needs
from jedisite.web.exports import CSVExport, Row
from tasks_app.commands import bulk
from tasks_app.domain import refusal_codes
from tasks_app.drawing.stacks import Period, Stack, of_periods
from tasks_app.explaining import following, stored_verdicts, why_job, why_site, why_task
from tasks_app.explaining.rules.answers import Gate
from tasks_app.models import Task
from tasks_app.params.acts import ACTS
from tasks_app.web.brokerage.verdict_pages import PICKS, Part, Picked, Which
from tasks_app.web.jobs.job_pages import job_of
from tasks_app.web.lists.misspelt import one_of, takes

REFRESH_S = 10
CHOSEN: Final = "chosen"
"""The name of the lowest layer: sites that were chosen."""


@needs(Right.READ)
@require_safe
@takes(*PICKS, answer=one_of(get_args(Which)), format=one_of(["csv"]))
def task_why(request: HttpRequest, task_id: int) -> HttpResponse:
    """The gates of a task, the latest verdicts with their sites as the address filters them, and how reasons changed.

    `?format=csv` sends the sites that fit as a file.
    """
    task = get_object_or_404(Task.objects.select_related("work_queue"), pk=task_id)
    now, picked = timezone.now(), Picked.of(request.GET)
    found = why_task.explain(task, now)
    parts = [Part(record, found.before(record), picked) for record in found.verdicts]
    if request.GET.get("format") == "csv":
        return csv_of(f"task-{task_id}-why", parts)
    all_done = found.blocked is not None and found.blocked.code == refusal_codes.TASK_ALL_DONE
    on_jobs = [record for record in found.history if record.kind != "task"]
    context = {
        "section": "tasks",
        "task": task,
        "why": found,
        "gates": gate_rows(found.gates),
        "parts": parts,
        "remedies": followed(task, found.blocked, caller_of(request)),
        "all_done": all_done,
        "tone": TONE_OF[said.severity] if (said := found.blocked or found.held) else "",
        "plot": reasons_over_time(on_jobs, now),
        "csv": csv_query(picked),
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/task_why.html", context)


class Way(NamedTuple):
    """A page on which advice is followed."""

    title: str
    address: str


def followed(task: Task, blocked: Gate | None, caller: Caller) -> list[tuple[Remedy, list[Way]]]:
    """What helps, each with the pages on which this reader may do it now."""
    remedies = blocked.remedies if blocked is not None else None
    return [(one, [*_ways(task, one, caller)]) for one in remedies or ()]


def _ways(task: Task, remedy: Remedy, caller: Caller) -> Iterator[Way]:
    for name in following.acts_of(remedy):
        # Commands that wait are not asked for: the act's own page says it where one of them stands against it.
        if caller.may(Right.SUBMIT) and bulk.why_not(ACTS[name], task, caller, waiting=()) is None:
            yield Way(ACTS[name].title, reverse("dashboard:task-do", args=[task.id, name]))
    queue = following.queue_of(remedy)
    if queue and caller.may(Right.OPERATE):
        yield Way(f"Set the status of {queue}", reverse("dashboard:site", args=[queue]) + "#d-set")


@needs(Right.READ)
@require_safe
@takes()
def job_why(request: HttpRequest, job_id: int) -> HttpResponse:
    """What a job waits for: its gates, from being made to its kept outputs."""
    job, now = job_of(job_id), timezone.now()
    found = why_job.explain(job, now)
    context = {
        "section": "jobs",
        "job": job,
        "why": found,
        "gates": gate_rows(found.gates),
        "tone": TONE_OF[found.blocked.severity] if found.blocked else "",
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/job_why.html", context)


TONE_OF: Final = {"info": "wait", "warning": "warn", "error": "bad"}


def gate_rows(gates: Iterable[Gate]) -> list[tuple[str, Gate]]:
    """Gates with how their row is shown: the first "no" stands out unless it is no trouble, and all behind it stand back."""
    found, stopped = [], False
    for gate in gates:
        first = gate.answer == "no" and not stopped
        look = "first-no" if gate.severity != "info" else "first-wait"
        found.append((look if first else "unreached" if stopped else "", gate))
        stopped = stopped or first
    return found


def csv_of(name: str, parts: Iterable[Part]) -> HttpResponse:
    """All sites of verdicts that fit what was asked, as a file."""
    rows: list[Row] = [row for part in parts for row in stored_verdicts.csv_rows(part.record.kind, part.fitting)]
    body = b"".join(CSVExport().lines(stored_verdicts.CSV_COLUMNS, [rows]))
    return HttpResponse(
        body,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
    )


def csv_query(picked: Picked) -> str:
    """The parameters of the address of the same sites as a file."""
    given = {"site": picked.site, "code": picked.code, "answer": picked.answer}
    return urlencode({name: value for name, value in given.items() if value} | {"format": "csv"})


def reasons_over_time(history: list[VerdictRecord], now: datetime) -> Stack | None:
    """Sites by reason, from verdicts (the newest first); each holds until the next. None without any."""
    if not history:
        return None
    spans, until = [], now
    for record in history:
        if record.first_at >= until:
            continue
        counts = {code: len(sites) for code, sites in record.reasons.items()}
        if record.chosen:
            counts[CHOSEN] = len(stored_verdicts.chosen_queues(record))
        spans.append(Period(record.first_at, until, counts))
        until = record.first_at
    spans.reverse()
    return of_periods(spans, now - why_task.HISTORY, now, good=CHOSEN, called=stored_verdicts.title_of)


@needs(Right.READ)
@require_safe
@takes()
def site_why(request: HttpRequest, name: str) -> HttpResponse:
    queue, now = why_site.queue_of(name), timezone.now()
    if queue is None:
        raise Http404
    why = why_site.why_site(queue, now, name=name)
    context = {"section": "sites", "queue": queue, "why": why, "seconds": REFRESH_S, "now": now}
    return render(request, "tasks_app/site_why.html", context)


@needs(Right.READ)
@require_safe
@takes()
def share_why(request: HttpRequest, name: str) -> HttpResponse:
    """An old address: the page of a share says why its tasks wait."""
    return redirect(f"{reverse('dashboard:share', args=[name])}#why", permanent=True)
