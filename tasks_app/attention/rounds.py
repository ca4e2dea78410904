"""The rules that find items that need attention, and a round that applies them and stores the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

import structlog

from jedisite.agents import troubles
from jedisite.processes.logs import sentence_of
from jedisite.vocabulary.words import plural
from tasks_app.attention import added_rules, keeping, reading, reading_data
from tasks_app.attention.rules import machinery_rules, site_rules, task_rules
from tasks_app.attention.rules.attention_facts import AgentFact, GridFact
from tasks_app.attention.rules.findings import Found
from tasks_app.failures.failing_nodes import find_black_holes

log = structlog.get_logger(__name__)


class Facts:
    """The facts that the rules of one pass judge. Facts that several rules need are read once, so that the rules agree."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    @cached_property
    def grid(self) -> GridFact:
        return reading.grid(self.now)

    @cached_property
    def agents(self) -> list[AgentFact]:
        return reading.agents(self.now)


Rule = Callable[[Facts], Iterable[Found]]
NODES_SEEN: Final = timedelta(hours=3)
"""How far back failures on worker nodes count."""
QUICK: Final[dict[str, Rule]] = {
    "late_agent": lambda facts: machinery_rules.late_agents(facts.agents),
    "paused_agent": lambda facts: machinery_rules.paused_agents(facts.agents),
    "trouble": lambda facts: machinery_rules.troubles(reading.troubles(facts.now)),
    "backlog": lambda facts: machinery_rules.full_queues(reading.backlogs(facts.now)),
    "all_closed": lambda facts: site_rules.all_closed(reading.queues_by_status(), facts.grid),
    "nothing_runs": lambda facts: site_rules.nothing_runs(facts.grid, facts.now),
    "no_calls": lambda facts: site_rules.no_calls(facts.grid, facts.now),
    "failures": lambda facts: site_rules.failure_spikes(reading.failure_rates(facts.now)),
    "no_pilots": lambda facts: site_rules.no_pilots(reading.sites_with_work(), facts.now),
    "offline": lambda facts: site_rules.closed(reading.closed_queues(facts.now), facts.now),
    "away_storage": lambda facts: site_rules.away_storage(reading.away_stores()),
    "full_storage": lambda facts: site_rules.full_storage(reading.full_stores()),
    "asks": lambda facts: task_rules.asks_a_person(reading.asking_tasks(), facts.now),
}
SLOW: Final[dict[str, Rule]] = {
    "stuck_task": lambda facts: task_rules.stuck(reading.stuck_tasks(facts.now), facts.now),
    "data": lambda facts: task_rules.data_stalls(
        reading_data.tasks_waiting_for_data(), reading_data.copies_that_wait(facts.now), facts.now
    ),
    "black_hole": lambda facts: site_rules.black_holes(find_black_holes(facts.now - NODES_SEEN, facts.now)),
    "share": lambda facts: site_rules.starved_shares(reading.shares_of_a_day(facts.now)),
}
"""By the kind of what they find."""


def slow_rules() -> dict[str, Rule]:
    """The rules that are applied less often, those of other apps among them."""

    def at_the_time(rule: added_rules.AddedRule) -> Rule:
        return lambda facts: rule(facts.now)

    return {**SLOW, **{kind: at_the_time(rule) for kind, rule in added_rules.ADDED.items()}}


def round_of(rules: dict[str, Rule], now: datetime) -> str:
    """Apply the rules, and return a note. One that fails unexpectedly stops none of the others; what it found last stays."""
    facts = Facts(now)
    looked, found, notes = [], list[Found](), []
    for kind, rule in rules.items():
        try:
            found += list(rule(facts))
        except troubles.CIRCUMSTANCES:
            raise
        except Exception as exc:
            log.exception("attention.rule_failed", rule=kind)
            notes.append(f"the rule {kind} failed: {sentence_of(exc)}")
        else:
            looked.append(kind)
    kept = keeping.keep(looked, found, now)
    if kept:
        notes.insert(0, f"{plural(kept, 'item needs', 'items need')} attention")
    return "; ".join(notes)
