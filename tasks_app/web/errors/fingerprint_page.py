"""One kind of failure: what is known of it, when, where and whose it was; and the form that says what is known."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from jedisite.identity.callers import Right, caller_of, needs
from jedisite.web.reasons import ReasonFormField
from tasks_app.domain.fingerprints import CAUSES
from tasks_app.domain.job_errors import main_error
from tasks_app.failures import classifying
from tasks_app.failures import failure_queries as asked
from tasks_app.failures.failure_queries import DIMENSIONS
from tasks_app.failures.pivots import per_thousand
from tasks_app.failures.rules import blame
from tasks_app.models import ErrorFingerprint, Job, JobFailure
from tasks_app.web.errors.error_frame import FILTERS, Failures, failures_of, frame_of, plot_over_time
from tasks_app.web.lists.misspelt import takes

NEWEST = 10_000
"""Failures of one kind or task that its page counts by site and the like, where there are more."""
TOP = 8
EXAMPLES = 6


class ClassifyForm(forms.Form):
    """What is known of an error. Times are in UTC."""

    ticket = forms.CharField(max_length=200, required=False, label="Ticket", help_text="address or number")
    known_until = forms.DateTimeField(
        required=False,
        label="Known and expected until",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    advice = forms.CharField(
        max_length=1000, required=False, label="What to do", widget=forms.Textarea(attrs={"rows": 3})
    )
    cause = forms.ChoiceField(choices=[("", "what the evidence says"), *CAUSES.items()], required=False, label="Cause")
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
    ended = asked.ended_jobs(
        {"all": [""], **{name: [line.key for line in lines] for name, lines in tops.items()}}, found.window
    )
    spread = asked.spreads(rows, [number], NEWEST).get(number)
    cause = None
    if spread is not None and not found.picked:  # where something was picked, nothing else can stand out
        cause = blame.blame(spread.failures, blame.evidence(spread, ended, ended.get(("all", ""), 0)))
    step, counts = asked.over_time(rows, found.window)
    failures = sum(counts)
    if failures > NEWEST:
        ended = {}  # rates of a part of the failures would be too low
    examples = list(rows.order_by("-ended")[:EXAMPLES])
    jobs = Job.objects.in_bulk([failure.id for failure in examples])
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
        "cause": cause,
        "sampled": NEWEST if failures > NEWEST else None,
        "tops": [_top_table(found, number, name, lines, ended) for name, lines in tops.items() if lines],
        "plot": plot_over_time(found, step, counts, fingerprint=number),
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
            cause=form.cleaned_data["cause"],
            by=caller_of(request).name,
            reason=form.cleaned_data["reason"],
        )
    except ErrorFingerprint.DoesNotExist as exc:
        raise Http404(f"There is no error {number}.") from exc
    messages.success(request, "The notes on this error are saved.")
    return redirect("dashboard:error", number)
