"""Pages on agents: are they making their passes, and what do those do? With buttons to run, pause and set them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from jedisite.agents import agent_orders
from jedisite.agents.agent_state import AgentRow, judge, rows
from jedisite.agents.registry import REGISTRY
from jedisite.identity.callers import Right, caller_of, needs
from jedisite.models import Agent, AgentPass, AuditEntry
from jedisite.web.reasons import ReasonFormField
from tasks_app.domain import words
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists.misspelt import a_number, one_of, takes
from tasks_app.web.machinery import backlogs, passes
from tasks_app.web.machinery.backlogs import Backlog, Machinery
from tasks_app.web.machinery.passes import Series

REFRESH_S = 3
PAGE_REFRESH_S = 10
PLOTTED = 200
LONGEST_REASON = 1000
ORDERS_SHOWN = 10
STATES = ("error", "late", "working", "ok", "paused")
KINDS = {"": "all recorded", "errors": "failed", "items": "with items"}
WAITING_TOO_LONG_S = 60
"""Age of an entry of django-q2's queue, or of a transaction in minutes, from which somebody should look."""


@dataclass(frozen=True, slots=True)
class AgentLine:
    """An agent in the list: what to think of it, its passes, and what waits for it (None: it has no backlog)."""

    row: AgentRow
    series: Series
    backlog: Backlog | None


@needs(Right.READ)
@require_safe
@takes()
def agent_list(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    judged = rows(Agent.objects.all(), now)
    judged.sort(key=lambda row: row.tone != "bad")  # those in trouble first, by name
    found, waiting = passes.series(), backlogs.backlogs()
    lines = [AgentLine(row, found[row.agent.name], waiting.get(row.agent.name)) for row in judged]
    machinery = backlogs.machinery()
    context = {
        "section": "agents",
        "lines": lines,
        "sentence": sentence(judged),
        "tone": "bad" if any(row.tone == "bad" for row in judged) else "ok",
        "tiles": tiles(machinery),
        "passes": AgentPass.objects.defer("error").annotate(failed=~Q(error="")).order_by("-id")[:20],
        "may_operate": caller_of(request).may(Right.OPERATE),
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/agents.html", context)


def sentence(judged: list[AgentRow]) -> str:
    """How the agents are, in a sentence; those in trouble by name."""
    if not judged:
        return "No agent is registered."
    by_state = {state: [row.agent.name for row in judged if row.state == state] for state in STATES}
    parts = [f"{len(by_state[state])} {state}" for state in STATES if by_state[state]]
    trouble = [
        f"{word}: {', '.join(by_state[state][:8])}{' …' if len(by_state[state]) > 8 else ''}"
        for state, word in (("error", "last pass failed"), ("late", "late"), ("paused", "paused"))
        if by_state[state]
    ]
    ending = f" ({'; '.join(trouble)})." if trouble else "."
    return f"{words.plural(len(judged), 'agent')}: {', '.join(parts)}{ending}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the machinery; `more` stands behind it in smaller letters."""

    value: str
    label: str
    more: str = ""
    tone: str = "wait"


def tiles(found: Machinery) -> list[Figure]:
    full = found.connections > 0.9 * found.most_connections
    return [
        Figure(
            words.count(found.queued),
            f"{'pass' if found.queued == 1 else 'passes'} queued in django-q2",
            f"oldest {words.duration(found.oldest_queued_s)}" if found.queued else "",
            "warn" if found.oldest_queued_s > WAITING_TOO_LONG_S else "wait",
        ),
        Figure(
            words.count(found.in_work),
            f"{'pass' if found.in_work == 1 else 'passes'} in workers",
            "",
            "run" if found.in_work else "wait",
        ),
        Figure(
            words.count(found.waiting_locks), "waits for database locks", "", "warn" if found.waiting_locks else "ok"
        ),
        Figure(
            words.count(found.connections),
            "database connections",
            f"of {found.most_connections}, {found.active} busy",
            "bad" if full else "ok",
        ),
        Figure(
            words.duration(found.oldest_transaction_s),
            "oldest transaction",
            "",
            "warn" if found.oldest_transaction_s > 60 * WAITING_TOO_LONG_S else "ok",
        ),
        Figure(words.size(found.database_bytes), "database"),
    ]


@needs(Right.READ)
@require_safe
@takes(only=one_of(KINDS), before=a_number())
def agent_page(request: HttpRequest, name: str) -> HttpResponse:
    """One agent: its state, what waits for it, its passes page by page, and what people ordered it to do."""
    agent = get_object_or_404(Agent, pk=name)
    kind = request.GET.get("only", "")
    listed = AgentPass.objects.filter(agent=name).defer("error").annotate(failed=~Q(error=""))
    if kind == "errors":
        listed = listed.exclude(error="")
    elif kind == "items":
        listed = listed.filter(items__gt=0)
    now = timezone.now()
    page = keyset_pages.keyset_page(request, listed)
    spec = REGISTRY.get(name)
    context = {
        "section": "agents",
        "row": judge(agent, now),
        "agent": agent,
        "usual_period_s": spec.period_s if spec else None,
        "series": passes.series(name, PLOTTED)[name],
        "backlog": backlogs.backlogs().get(name),
        "page": page,
        "passes": page.rows,
        "kinds": KINDS.items(),
        "kind": kind,
        "orders": AuditEntry.objects.filter(object_type="agent", object_id=name).order_by("-id")[:ORDERS_SHOWN],
        "may_operate": caller_of(request).may(Right.OPERATE),
        "longest_reason": LONGEST_REASON,
        "shortest": agent_orders.SHORTEST_PERIOD_S,
        "longest": agent_orders.LONGEST_PERIOD_S,
        "seconds": PAGE_REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/agent_page.html", context)


@needs(Right.READ)
@require_safe
@takes()
def pass_page(request: HttpRequest, name: str, pass_id: int) -> HttpResponse:
    """One recorded pass with all that it said, and the ones before and after it."""
    of_agent = AgentPass.objects.filter(agent=name)
    if pass_id > keyset_pages.LARGEST_ID:
        raise Http404
    context = {
        "section": "agents",
        "pass": get_object_or_404(of_agent, pk=pass_id),
        "earlier": of_agent.filter(pk__lt=pass_id).order_by("-pk").values_list("pk", flat=True).first(),
        "later": of_agent.filter(pk__gt=pass_id).order_by("pk").values_list("pk", flat=True).first(),
        "now": timezone.now(),
    }
    return render(request, "tasks_app/agent_pass.html", context)


class OrderForm(forms.Form):
    """An order to an agent. All but to run once need a reason; to change the period needs one."""

    action = forms.ChoiceField(choices=[(name, name) for name in ("run", "pause", "resume", "period")])
    period_s = forms.FloatField(required=False, label="Period in seconds")
    reason = ReasonFormField(required=False, max_length=LONGEST_REASON, label="Why")

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        action = given.get("action")
        if action and action != "run" and not given.get("reason") and "reason" not in self.errors:
            self.add_error("reason", "Please give a reason.")
        if action == "period" and given.get("period_s") is None and "period_s" not in self.errors:
            self.add_error("period_s", "Please enter the number of seconds.")
        return given


@needs(Right.OPERATE)
@require_POST
def agent_action(request: HttpRequest, name: str) -> HttpResponse:
    """Run an agent once, pause it, let it go on, or change its period."""
    agent = get_object_or_404(Agent, pk=name)
    form = OrderForm(request.POST)
    if form.is_valid():
        try:
            messages.success(request, _obey(agent, form.cleaned_data, caller_of(request).name))
        except agent_orders.PeriodError as exc:
            messages.error(request, str(exc))
    else:
        for field, faults in form.errors.items():
            label = form.fields[field].label or field.capitalize()
            messages.error(request, f"{label}: {' '.join(str(fault) for fault in faults)}")
    if request.POST.get("back") == "list":
        return redirect("dashboard:agents")
    return redirect("dashboard:agent", name=name)


def _obey(agent: Agent, given: dict[str, Any], by: str) -> str:
    """Carry out an order and say what became of it. Raises PeriodError."""
    action, reason = given["action"], given["reason"]
    if action == "run":
        agent_orders.run_once(agent, by=by, reason=reason)
        return f"One pass of {agent.name} is queued."
    if action == "period":
        agent_orders.set_period(agent, given["period_s"], by=by, reason=reason)
        return f"{agent.name} now runs every {words.duration(given['period_s'])}."
    changed = agent_orders.set_paused(agent, action == "pause", by=by, reason=reason)
    now = "paused" if action == "pause" else "active"
    return f"{agent.name} is now {now}." if changed else f"{agent.name} is {now} already."
