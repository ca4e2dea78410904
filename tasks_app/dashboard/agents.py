"""The page on agents: are they making their passes, and what do those do? With buttons to run and pause them."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from django_q.tasks import async_task

from jedisite import audit
from jedisite.agent_state import rows
from jedisite.identity import Right, caller_of, needs
from jedisite.models import Agent, AgentPass

REFRESH_S = 3


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
