"""How old what the pages on what needs attention show is. It is measured by agents: so a page looks whether they work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from jedisite.agent_state import Lateness, lateness, rows
from jedisite.models import Agent
from tasks_app.agents.attention import QUICK, SLOW

LOOKS: Final = {"attention": len(QUICK), "attention_tasks": len(SLOW)}
"""The agents that look whether something needs attention, with the number of their rules."""
NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Freshness:
    """When what needs attention was looked for last, and which agents are late now.

    looks   for each agent that looks: the number of its rules, and when it ended its last look; None: it never has
    """

    looks: list[tuple[int, datetime | None]]
    late: Lateness | None

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
    ended = {agent.name: agent.last_ended_at for agent in agents}
    return Freshness([(number, ended.get(name)) for name, number in LOOKS.items()], lateness(rows(agents, now)))
