"""How old what the pages on what needs attention show is. It is measured by agents: so a page looks whether they work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from jedisite.agents.agent_state import LATE_AFTER_PERIODS, Lateness, lateness, rows
from jedisite.models import Agent
from tasks_app.attention.rounds import QUICK, SLOW

LOOKS: Final = {"attention": len(QUICK), "attention_tasks": len(SLOW)}
"""The agents that look whether something needs attention, with the number of their rules."""
NAMED: Final = 3
RECENT: Final = timedelta(minutes=2)
"""A look that is no older says how things are now, however often the agent is to look."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """When what needs attention was looked for last, and which agents are late now.

    looks   for each agent that looks: the number of its rules, and when it ended its last look; None: it never has
    old     one of them looked so long ago that what it found says nothing of now, or never has
    """

    looks: list[tuple[int, datetime | None]]
    late: Lateness | None
    old: bool

    @property
    def oldest(self) -> datetime | None:
        """The older look; None: one of the agents has never looked."""
        looks = [at for _, at in self.looks if at is not None]
        return min(looks) if len(looks) == len(self.looks) else None

    @property
    def as_of(self) -> datetime | None:
        """When the quick rules looked last."""
        return self.looks[0][1]

    @property
    def named(self) -> str:
        """The late agents, when they are few."""
        return ", ".join(self.late.names) if self.late is not None and len(self.late.names) <= NAMED else ""


def read(now: datetime) -> Freshness:
    """One query on a table with one row for each agent."""
    agents = list(Agent.objects.defer("title"))
    looking = {agent.name: agent for agent in agents if agent.name in LOOKS}
    looks = [(number, looking[name].last_ended_at if name in looking else None) for name, number in LOOKS.items()]
    old = len(looking) < len(LOOKS) or any(_is_old(agent, now) for agent in looking.values())
    return Freshness(looks, lateness(rows(agents, now)), old)


def _is_old(agent: Agent, now: datetime) -> bool:
    at, periods = agent.last_ended_at, LATE_AFTER_PERIODS * timedelta(seconds=agent.period_s)
    return at is None or now - at > max(periods, RECENT)
