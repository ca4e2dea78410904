"""The page on what needs somebody, and the forms by which people say that they look after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from jedisite.identity.callers import Right, caller_of, needs
from jedisite.vocabulary.words import on_one_line
from tasks_app.attention import keeping
from tasks_app.attention.item_filters import STATES, AttentionFilter, in_state
from tasks_app.attention.rules.findings import KINDS
from tasks_app.models import AttentionItem
from tasks_app.web.frame import freshness, keyset_pages
from tasks_app.web.lists.misspelt import a_number, one_of, takes

REFRESH_S = 30
MOST: Final = 300
"""Items that are there are shown all at once up to here, the most urgent first; those that are gone, in pages."""
SNOOZES: Final = (("1", "1 hour"), ("8", "8 hours"), ("24", "1 day"), ("168", "7 days"))


@needs(Right.READ)
@require_safe
@takes(*AttentionFilter.base_filters, state=one_of(STATES), before=a_number())
def attention_list(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    filters = AttentionFilter(request.GET, queryset=AttentionItem.objects.all())
    state = request.GET.get("state", "") or "open"
    found = filters.qs if filters.is_valid() else AttentionItem.objects.none()
    page = None
    if state in ("gone", "all"):
        page = keyset_pages.keyset_page(request, found)
        items = list(page.rows)
    else:
        items = list(found.filter(in_state(state, now)).order_by("-rank", "id")[:MOST])
    # Items are few: the agents find so many of a kind at most, and what is gone is kept for a week.
    counts = AttentionItem.objects.aggregate(**{name: Count("id", filter=in_state(name, now)) for name in STATES[:-1]})
    context = {
        "section": "attention",
        "items": items,
        "fresh": freshness.read(now),
        "page": page,
        "state": state,
        "filters": filters,
        "kinds": [(name, kind.title) for name, kind in KINDS.items()],
        "tabs": [(name, keyset_pages.address(request, state=name, before=None), counts.get(name)) for name in STATES],
        "may_operate": caller_of(request).may(Right.OPERATE),
        "snoozes": SNOOZES,
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/attention.html", context)


@needs(Right.OPERATE)
@require_POST
def attention_action(request: HttpRequest, item_id: int) -> HttpResponse:
    """Acknowledge an item, put it off, link a ticket to it, or take that back."""
    get_object_or_404(AttentionItem, pk=item_id)
    form, who = request.POST, caller_of(request).name
    action, reason = form.get("action", ""), on_one_line(form.get("reason", ""))
    try:
        if action == "acknowledge":
            keeping.acknowledge(item_id, by=who, reason=reason)
            done = "Acknowledged; no longer counted at the bell."
        elif action == "snooze":
            until = _end_of_snooze(form.get("hours", ""), form.get("until", ""))
            keeping.snooze(item_id, until, by=who, reason=reason)
            done = f"Snoozed until {until:%Y-%m-%d %H:%M} UTC."
        elif action == "ticket":
            keeping.link_ticket(item_id, form.get("ticket", ""), by=who, reason=reason)
            done = "Ticket linked."
        elif action == "reopen":
            keeping.reopen(item_id, by=who, reason=reason)
            done = "Reopened."
        else:
            raise keeping.AttentionError("action", f"There is no action {action[:50]!r}.")
        messages.success(request, done)
    except keeping.AttentionError as exc:
        messages.error(request, f"{exc.field}: {exc}" if exc.field else str(exc))
    back = form.get("next", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}):
        back = reverse("dashboard:attention")
    return redirect(back)


def _end_of_snooze(hours: str, until: str) -> datetime:
    """In some of the hours that are offered, or at a moment in UTC. Raises AttentionError."""
    if until:
        try:
            moment = datetime.fromisoformat(until)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError) as exc:
            raise keeping.AttentionError("until", "Enter a time such as 2026-01-31T08:00, in UTC.") from exc
    if hours not in dict(SNOOZES):
        raise keeping.AttentionError("hours", f"Choose one of {', '.join(dict(SNOOZES))}, or enter an end.")
    return timezone.now() + timedelta(hours=int(hours))
