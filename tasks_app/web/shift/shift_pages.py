"""The page of a shift: what a window of time holds, notes, and the hand-over; its report as text."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from jedisite.identity.callers import Right, caller_of, needs
from tasks_app.domain import window
from tasks_app.models import Handover, ShiftNote
from tasks_app.models.shift import LONGEST_NOTE, LONGEST_SUMMARY
from tasks_app.shifts import logbook, shift_reading
from tasks_app.shifts.rules.report_text import HandedOver, Remark, report
from tasks_app.shifts.rules.sections import headline, sections
from tasks_app.shifts.rules.shift_facts import ShiftFacts
from tasks_app.web.lists.misspelt import takes

REFRESH_S: Final = 60
USUAL_WINDOW: Final = "8h"
OFFERED: Final = ("8h", "12h", "24h")
LEFT: Final = ("open", "errors", "sites")
"""The sections of the first column; the others stand beside them."""


@needs(Right.READ)
@require_safe
@takes()
def shift(request: HttpRequest) -> HttpResponse:
    """The window, 8 hours unless the address says another, with the draft of its hand-over."""
    now = timezone.now()
    looked = window.read(request.GET, now, USUAL_WINDOW)
    facts = shift_reading.read_facts(looked.since, looked.until, now)
    notes, handovers, caller = (
        shift_reading.notes(looked.since, looked.until),
        shift_reading.handovers(),
        caller_of(request),
    )
    found = sections(facts)
    at = f"?{urlencode(looked.parameters)}"
    context = {
        "section": "shift",
        "looked": looked,
        "headline": headline(facts),
        "tone": "ok" if not (facts.failures or facts.stopped or facts.items) else "warn",
        "columns": [
            [one for one in found if one.name in LEFT],
            [one for one in found if one.name not in LEFT],
        ],
        "notes": notes,
        "handovers": handovers,
        "may_operate": caller.may(Right.OPERATE),
        "caller": caller.name,
        "draft": _report(facts, notes),
        "pills": [(window.TITLES[key], f"?window={key}", looked.key == key) for key in OFFERED],
        "report_url": reverse("dashboard:shift-report") + at,
        "at": at,
        "handed": window.Window("", looked.since, looked.until).parameters,
        "longest_note": LONGEST_NOTE,
        "longest_summary": LONGEST_SUMMARY,
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/shift.html", context)


@needs(Right.READ)
@require_safe
@takes()
def shift_report(request: HttpRequest) -> HttpResponse:
    """The same as plain text, to paste into a mail or a chat."""
    now = timezone.now()
    looked = window.read(request.GET, now, USUAL_WINDOW)
    if looked.fault:
        return HttpResponse(f"{looked.fault}\n", status=400, content_type="text/plain; charset=utf-8")
    facts = shift_reading.read_facts(looked.since, looked.until, now)
    text = _report(facts, shift_reading.notes(looked.since, looked.until), shift_reading.handovers())
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


def _report(facts: ShiftFacts, notes: list[ShiftNote], handovers: list[Handover] | None = None) -> str:
    handed = [HandedOver(one.by, one.at, one.acknowledged_by, one.acknowledged_at) for one in handovers or []]
    return report(facts, [Remark(note.by, note.at, note.text) for note in reversed(notes)], handed)


@needs(Right.OPERATE)
@require_POST
def shift_note(request: HttpRequest) -> HttpResponse:
    """Keep a note of the caller."""
    try:
        logbook.add_note(request.POST.get("text", ""), by=caller_of(request).name, now=timezone.now())
        messages.success(request, "Note saved.")
    except logbook.LogbookError as exc:
        messages.error(request, str(exc))
    return _back(request)


@needs(Right.OPERATE)
@require_POST
def shift_hand_over(request: HttpRequest) -> HttpResponse:
    """Hand the shift over with a summary."""
    now, given = timezone.now(), {name: request.POST.get(name, "") for name in ("since", "until")}
    handed = window.read(given, now, USUAL_WINDOW)
    try:
        if handed.fault:
            raise logbook.LogbookError("since", handed.fault)
        summary, by = request.POST.get("summary", ""), caller_of(request).name
        logbook.hand_over(summary, handed.since, handed.until, by=by, now=now)
        messages.success(request, "Shift handed over. The next shifter acknowledges it on this page.")
    except logbook.LogbookError as exc:
        messages.error(request, str(exc))
    return _back(request)


@needs(Right.OPERATE)
@require_POST
def shift_acknowledge(request: HttpRequest, handover_id: int) -> HttpResponse:
    """Acknowledge what somebody else handed over."""
    get_object_or_404(Handover, pk=handover_id)
    try:
        logbook.acknowledge(handover_id, by=caller_of(request).name)
        messages.success(request, "Hand-over acknowledged.")
    except logbook.LogbookError as exc:
        messages.error(request, str(exc))
    return _back(request)


def _back(request: HttpRequest) -> HttpResponse:
    """To the page, with the window that the form was sent from."""
    kept: dict[str, Any] = {name: request.GET[name][:40] for name in window.NAMES if request.GET.get(name)}
    return redirect(reverse("dashboard:shift") + (f"?{urlencode(kept)}" if kept else ""))
