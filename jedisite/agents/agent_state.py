"""The state of an agent: whether its passes are in time and succeed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.db.models import Q

from jedisite.models import Agent, AuditEntry

LATE_AFTER_PERIODS: Final = 3
STUCK_AFTER_S: Final = 300
"""A pass that has begun and not ended for so long is over its limit, and those begun since have not ended either."""
LATE_AFTER_S: Final = 10
"""Lateness that is never worth a warning, whatever the period."""
DRIVING_PERIOD_S: Final = 5.0
"""Agents that run as often as this, or more often, are those that bring tasks and jobs on."""
STANDSTILL_S: Final = 60.0
"""When all of them are overdue by more than this, nothing is brought on."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent with its present state: ok, working, late, paused or error.

    `late_s` are the seconds by which it is overdue; `late` says that these are more than three periods.
    """

    agent: Agent
    state: str
    tone: str
    late_s: float
    late: bool = False


def is_stuck(agent: Agent, now: datetime) -> bool:
    """Whether passes begin and none ends: a pass that never ends loses its lease, so that others begin and stick as well."""
    since = agent.unended_since
    if agent.paused or since is None:
        return False
    return (now - since).total_seconds() > max(STUCK_AFTER_S, LATE_AFTER_PERIODS * agent.period_s)


def rows(agents: Iterable[Agent], now: datetime) -> list[AgentRow]:
    return [judge(agent, now) for agent in agents]


def judge(agent: Agent, now: datetime) -> AgentRow:
    """The state of an agent: red when its last pass failed, or it is overdue by more than three periods."""
    working = agent.lease_until is not None and agent.lease_until > now
    if agent.paused:
        return AgentRow(agent, "paused", "warn", 0.0)
    late_s = 0.0 if working else max((now - agent.due_at).total_seconds(), 0.0)
    late = late_s > max(LATE_AFTER_PERIODS * agent.period_s, LATE_AFTER_S)
    if agent.last_error:
        return AgentRow(agent, "error", "bad", late_s, late)
    if working:
        return AgentRow(agent, "working", "run", 0.0)
    return AgentRow(agent, "late", "bad", late_s, True) if late else AgentRow(agent, "ok", "ok", late_s)


@dataclass(frozen=True, slots=True)
class Lateness:
    """Agents that are late, by name, of how many that are not paused, and when the first of them was due."""

    names: list[str]
    of: int
    since: datetime


def lateness(judged: Iterable[AgentRow]) -> Lateness | None:
    """None when no agent is late."""
    asked = [row for row in judged if row.state != "paused"]
    late = [row for row in asked if row.late]
    if not late:
        return None
    return Lateness([row.agent.name for row in late], len(asked), min(row.agent.due_at for row in late))


def standstill(judged: Iterable[AgentRow]) -> list[AgentRow]:
    """The agents that bring work on, when all of them are overdue by more than a minute; empty when one is not."""
    driving = [row for row in judged if row.state != "paused" and row.agent.period_s <= DRIVING_PERIOD_S]
    return driving if all(row.late_s > STANDSTILL_S for row in driving) else []


@dataclass(frozen=True, slots=True)
class Pause:
    """Who paused an agent, when (UTC) and why, as typed."""

    by: str
    at: datetime
    reason: str

    @property
    def words(self) -> str:
        """It follows "is paused"."""
        said = f"by {self.by} since {self.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        return f"{said} (“{self.reason.rstrip('.')[:200]}”)" if self.reason else said


def pauses(names: Iterable[str]) -> dict[str, Pause]:
    """The last time that somebody paused each of these agents, on a page or in the admin. One query; none without names."""
    if not (paused := list(names)):
        return {}
    was_paused = Q(action="agent.pause") | Q(action="admin.change", details__changed__paused__1=True)
    rows = AuditEntry.objects.filter(was_paused, object_type="agent", object_id__in=paused)
    last = rows.order_by("object_id", "-id").distinct("object_id")
    return {row.object_id: Pause(row.actor, row.at, " ".join(row.reason.split())) for row in last}
