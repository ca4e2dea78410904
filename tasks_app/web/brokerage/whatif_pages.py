"""What-if pages: a decision made again under changes by the same pure broker. The address holds all that was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.advice.whatif import FORMS, ChangeError, Difference, WhatIf
from brokerage_app.models import VerdictRecord
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.stored import needs_of
from jedisite.identity.callers import Right
from jedisite.identity.callers import needs as needs_right
from jedisite.web.problems import NotPlainJSONError, strict_json
from tasks_app.explaining import deciding_again, stored_verdicts
from tasks_app.explaining.deciding_again import NeedsError, NothingKeptError
from tasks_app.explaining.rules import wishes
from tasks_app.explaining.rules.wishes import WISHES, WishError
from tasks_app.models import Task
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists.misspelt import takes

LONGEST: Final = 10_000
MOST_LINES: Final = 50
ROWS: Final = 100
WISHED: Final = ("changes", "again", *(wish.name for wish in WISHES))
"""Parameters of addresses that say what is asked for."""


@needs_right(Right.READ)
@require_safe
@takes(*WISHED)
def task_what_if(request: HttpRequest, task_id: int) -> HttpResponse:
    """The last decision on the jobs of a task, and what changes would make of it."""
    task = get_object_or_404(Task, pk=task_id)
    context: dict[str, Any] = {"section": "tasks", "task": task, "action": request.path}
    try:
        record = deciding_again.kept_of_task(task_id)
    except NothingKeptError as exc:
        return _page(request, context, str(exc), 200)
    return _decided(request, context, record)


@needs_right(Right.READ)
@require_safe
@takes("task", "decision", "needs", *WISHED)
def what_if(request: HttpRequest) -> HttpResponse:
    """The same for any task (`task=`), a decision (`decision=`), or needs that are pasted as JSON (`needs=`)."""
    given = {name: request.GET.get(name, "")[:LONGEST].strip() for name in ("task", "decision", "needs")}
    context: dict[str, Any] = {"section": "brokerage", "start": given, "action": reverse("dashboard:what-if")}
    try:
        record = _start(given)
    except WishError as exc:
        return _page(request, context, f"{exc}", 400)
    except NothingKeptError as exc:
        return _page(request, context, str(exc), 404)
    if record is None:
        return _page(request, context, "", 200)
    return _decided(request, context, record)


def _start(given: dict[str, str]) -> VerdictRecord | None:
    """The decision that is made again; None when nothing is asked. Raises WishError, NothingKeptError."""
    for name in ("decision", "task"):
        if given[name]:
            number = keyset_pages.number(given[name])
            if number is None:
                raise WishError(name, f"{given[name][:40]!r} is not a number")
            return deciding_again.kept(number) if name == "decision" else deciding_again.kept_of_task(number)
    if not given["needs"]:
        return None
    try:
        plain = strict_json(given["needs"].encode())
    except NotPlainJSONError as exc:
        raise WishError("needs", f"they are not plain JSON: {exc}") from exc
    if not isinstance(plain, dict):
        raise WishError("needs", "they are not a JSON object")
    try:
        return deciding_again.of_needs(plain)
    except NeedsError as exc:
        raise WishError("needs", str(exc)) from exc


def _decided(request: HttpRequest, context: dict[str, Any], record: VerdictRecord) -> HttpResponse:
    given = {wish.name: request.GET.get(wish.name, "")[:LONGEST] for wish in WISHES}
    text = request.GET.get("changes", "")[:LONGEST]
    needs: TaskNeeds = needs_of(record.needs)
    context |= {
        "record": record,
        "text": text,
        "needs_json": json.dumps(record.needs, indent=1, sort_keys=True),
        "fields": [(wish, wish.now(needs), given[wish.name]) for wish in WISHES],
    }
    try:
        lines = wishes.lines_of(given, needs) + [line for line in text.splitlines() if line.strip()]
        if len(lines) > MOST_LINES:
            raise WishError("changes", f"{len(lines)} changes were given; the maximum is {MOST_LINES}")
        if lines or request.GET.get("again") or not record.pk:
            result = deciding_again.again(record, lines)
            context |= {"found": Comparison(result), "lines": lines}
    except (ChangeError, WishError) as exc:
        return _page(request, context, str(exc), 400)
    return _page(request, context, "", 200)


def _page(request: HttpRequest, context: dict[str, Any], problem: str, status: int) -> HttpResponse:
    context |= {"problem": problem, "forms": FORMS, "now": timezone.now()}
    return render(request, "tasks_app/task_what_if.html", context, status=status)


@dataclass(frozen=True, slots=True)
class Row:
    """A site in both decisions: codes ("" is chosen), weights, and the sentence of the second."""

    site: str
    change: str
    before: str
    after: str
    weight_before: float | None
    weight_after: float | None
    sentence: str


CHANGES: Final = ("gained", "lost", "other weight", "other reason", "other numbers")
"""What may become of a site. Skipped for the same reason, it may lack another number, or it at another place."""


class Comparison:
    """Two decisions site by site and code by code."""

    def __init__(self, result: WhatIf) -> None:
        found = self.difference = result.difference
        self.before, self.after = result.before, result.after
        both = (result.before, result.after)
        weights = [{name: one.weight for name, one in verdict.chosen_queues().items()} for verdict in both]
        skips = [verdict.skipped_queues() for verdict in both]
        changed = (found.gained, found.lost, tuple(found.weights), tuple(found.reasons), tuple(found.numbers))
        self.rows = [
            Row(
                site,
                change,
                _said(site, weights[0], skips[0]),
                _said(site, weights[1], skips[1]),
                weights[0].get(site),
                weights[1].get(site),
                _sentence(site, found, skips[1]),
            )
            for change, sites in zip(CHANGES, changed, strict=True)
            for site in sites
        ][:ROWS]
        self.counts = [(change, len(sites)) for change, sites in zip(CHANGES, changed, strict=True)]
        self.total = max(len(chosen) + len(left) for chosen, left in zip(weights, skips, strict=True))
        self.unchanged = self.total - sum(n for _, n in self.counts)
        self.codes = _by_code(result)

    @property
    def more(self) -> int:
        return sum(n for _, n in self.counts) - len(self.rows)


def _said(site: str, weights: Mapping[str, float], skips: Mapping[str, Skip]) -> str:
    return "" if site in weights else skips[site].code if site in skips else "not asked"


def _sentence(site: str, found: Difference, after: Mapping[str, Skip]) -> str:
    """What is said after the change, and before where the code alone does not show the difference."""
    if site not in after:
        return ""
    said = after[site].detail
    return f"{said} (before: {found.numbers[site][0].detail})" if site in found.numbers else said


def _by_code(result: WhatIf) -> list[dict[str, Any]]:
    """Sites that each code skips, before and after, those that change most first."""
    old, new = result.before.counts(), result.after.counts()
    rows = [(code, old.get(code, 0), new.get(code, 0)) for code in old.keys() | new.keys()]
    rows.sort(key=lambda row: (-abs(row[2] - row[1]), -row[1], row[0]))
    return [{**stored_verdicts.explained(code), "before": a, "after": b, "more": b - a} for code, a, b in rows]
