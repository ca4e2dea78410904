"""The page on agents: are they making their passes, and what do those do? With buttons to run and pause them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from django_q.tasks import async_task

from jedisite import audit
from jedisite.identity import Right, caller_of, needs
from jedisite.models import Agent, AgentPass

REFRESH_S = 3
LATE_AFTER_PERIODS = 3
LATE_AFTER_S = 10
"""Lateness that is never worth a warning, whatever the period."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent with what its times mean now. `state` is ok, working, late, paused or error.

    `late_s` are the seconds by which it is overdue.
    """

    agent: Agent
    state: str
    tone: str
    late_s: float


def rows(agents: Iterable[Agent], now: datetime) -> list[AgentRow]:
    return [judge(agent, now) for agent in agents]


def judge(agent: Agent, now: datetime) -> AgentRow:
    """What to think of an agent: red when its last pass failed or it is overdue by more than three periods."""
    late_s = max((now - agent.due_at).total_seconds(), 0.0) if not agent.paused else 0.0
    working = agent.lease_until is not None and agent.lease_until > now
    if agent.paused:
        return AgentRow(agent, "paused", "warn", late_s)
    if agent.last_error:
        return AgentRow(agent, "error", "bad", late_s)
    if working:
        return AgentRow(agent, "working", "run", 0.0)
    if late_s > max(LATE_AFTER_PERIODS * agent.period_s, LATE_AFTER_S):
        return AgentRow(agent, "late", "bad", late_s)
    return AgentRow(agent, "ok", "ok", late_s)


@needs(Right.READ)
@require_safe
def agent_list(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    context = {
        "section": "agents",
        "rows": rows(Agent.objects.all(), now),
        "passes": AgentPass.objects.order_by("-id")[:40],
        "may_operate": caller_of(request).may(Right.OPERATE),
        "seconds": REFRESH_S,
        "now": now,
    }
    return render(request, "tasks_app/agents.html", context)


@needs(Right.OPERATE)
@require_POST
def agent_action(request: HttpRequest, name: str) -> HttpResponse:
    """Run an agent once, pause it, or let it go on."""
    agent = get_object_or_404(Agent, pk=name)
    action = request.POST.get("action", "")
    who = caller_of(request).name
    if action == "run":
        audit.record(who, "agent.run", "agent", name)
        options = {"task_name": name, "group": name, "ack_failure": True, "save": False}
        async_task("jedisite.agents.run_agent", name, even_if_paused=True, **options)
        messages.success(request, f"A pass of {name} was handed to the workers.")
    elif action in ("pause", "resume"):
        with transaction.atomic():
            Agent.objects.filter(pk=name).update(paused=action == "pause")
            audit.record(who, f"agent.{action}", "agent", name)
        messages.success(request, f"{agent.name} is paused." if action == "pause" else f"{agent.name} goes on.")
    else:
        messages.error(request, f"There is no action {action!r}.")
    return redirect("dashboard:agents")
