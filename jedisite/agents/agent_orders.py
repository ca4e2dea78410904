"""Manual control of agents: run once, pause, resume, change the period. Each change is audited."""

from __future__ import annotations

from typing import Final

from django.db import connection, transaction
from django_q.tasks import async_task

from jedisite import audit
from jedisite.models import Agent

SHORTEST_PERIOD_S: Final = 0.2
LONGEST_PERIOD_S: Final = 86_400.0


class PeriodError(ValueError):
    """A period that no agent may have; the sentence says which are allowed."""


@transaction.atomic
def run_once(agent: Agent, *, by: str, reason: str = "") -> None:
    """Hand one pass to django-q2, even of an agent that is paused."""
    audit.record(by, "agent.run", "agent", agent.name, reason=reason)
    options = {"task_name": agent.name, "group": agent.name, "ack_failure": True, "save": False}
    async_task("jedisite.agents.passes.run_agent", agent.name, even_if_paused=True, **options)


@transaction.atomic
def set_paused(agent: Agent, paused: bool, *, by: str, reason: str) -> bool:
    """Pause or resume an agent. Returns whether that changed anything; if not, nothing is recorded."""
    if not Agent.objects.filter(pk=agent.name, paused=not paused).update(paused=paused):
        return False
    audit.record(by, "agent.pause" if paused else "agent.resume", "agent", agent.name, reason=reason)
    return True


@transaction.atomic
def set_period(agent: Agent, period_s: float, *, by: str, reason: str) -> None:
    """Change the seconds between two passes; the next is due no later than that from now. Raises PeriodError."""
    if not SHORTEST_PERIOD_S <= period_s <= LONGEST_PERIOD_S:  # also refuses what is not a number
        raise PeriodError(f"A period lies between {SHORTEST_PERIOD_S:g} and {LONGEST_PERIOD_S:g} seconds.")
    before = Agent.objects.select_for_update().get(pk=agent.name).period_s
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE agents SET period_s = %s, due_at = least(due_at, clock_timestamp() + %s * interval '1 second')
                WHERE name = %s""",
            [period_s, period_s, agent.name],
        )
    changed = {"period_s": [before, period_s]}
    audit.record(by, "agent.period", "agent", agent.name, reason=reason, details={"changed": changed})
