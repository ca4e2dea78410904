"""Agents: what needs somebody. Rules that ask small tables run often; those that look at all open tasks, less often."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

import structlog

from jedisite.agents import troubles
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from jedisite.processes.logs import sentence_of
from jedisite.vocabulary.words import plural
from tasks_app.attention import keeping, reading
from tasks_app.attention.rules import machinery_rules, site_rules, task_rules
from tasks_app.attention.rules.attention_facts import AgentFact, GridFact
from tasks_app.attention.rules.findings import Found
from tasks_app.configured import timeouts
from tasks_app.failures.failing_nodes import find_black_holes

log = structlog.get_logger(__name__)
TROUBLES_KEPT: Final = timedelta(days=1)


class Look:
    """What the rules of one pass look at. What several of them ask for is read once, so that all say the same of it."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    @cached_property
    def grid(self) -> GridFact:
        return reading.grid(self.now)

    @cached_property
    def agents(self) -> list[AgentFact]:
        return reading.agents(self.now)


Rule = Callable[[Look], Iterable[Found]]
NODES_SEEN: Final = timedelta(hours=3)
"""How far back failures on worker nodes count."""
QUICK: Final[dict[str, Rule]] = {
    "late_agent": lambda look: machinery_rules.late_agents(look.agents),
    "paused_agent": lambda look: machinery_rules.paused_agents(look.agents),
    "trouble": lambda look: machinery_rules.troubles(reading.troubles(look.now)),
    "backlog": lambda look: machinery_rules.full_queues(reading.backlogs(look.now)),
    "all_closed": lambda look: site_rules.all_closed(reading.queues_by_status(), look.grid),
    "nothing_runs": lambda look: site_rules.nothing_runs(look.grid, look.now),
    "no_calls": lambda look: site_rules.no_calls(look.grid, look.now),
    "failures": lambda look: site_rules.failure_spikes(reading.failure_rates(look.now)),
    "no_pilots": lambda look: site_rules.no_pilots(reading.sites_with_work(), look.now),
    "offline": lambda look: site_rules.closed(reading.closed_queues(look.now), look.now),
    "full_storage": lambda look: site_rules.full_storage(reading.full_stores()),
    "asks": lambda look: task_rules.asks_a_person(reading.asking_tasks(), look.now),
}
SLOW: Final[dict[str, Rule]] = {
    "stuck_task": lambda look: task_rules.stuck(reading.stuck_tasks(look.now), look.now),
    "data": lambda look: task_rules.data_stalls(reading.tasks_waiting_for_data(), look.now),
    "black_hole": lambda look: site_rules.black_holes(find_black_holes(look.now - NODES_SEEN, look.now)),
    "share": lambda look: site_rules.starved_shares(reading.shares_of_a_day(look.now)),
}
"""By the kind of what they find."""


@agent("attention", every="30s", title="Finds problems of sites and services that need attention")
def run(now: datetime | None = None) -> Pass:
    return _pass(QUICK, now)


@agent("attention_tasks", every="5m", title="Finds stalled tasks, starved shares and bad worker nodes")
def run_slow(now: datetime | None = None) -> Pass:
    """The slower rules; and items that have been gone for long are deleted, which is what the pass counts."""
    moment = the_time(now)
    done = _pass(SLOW, moment)
    troubles.forget(moment - TROUBLES_KEPT)
    return Pass(keeping.forget(moment - timeouts.limit("attention.gone")), done.note)


def _pass(rules: dict[str, Rule], now: datetime | None) -> Pass:
    """A rule that fails unexpectedly keeps none of the others from looking; what it found last is left as it is."""
    moment = the_time(now)
    look = Look(moment)
    looked, found, notes = [], list[Found](), []
    for kind, rule in rules.items():
        try:
            found += list(rule(look))
        except troubles.CIRCUMSTANCES:
            raise
        except Exception as exc:
            log.exception("attention.rule_failed", rule=kind)
            notes.append(f"the rule {kind} failed: {sentence_of(exc)}")
        else:
            looked.append(kind)
    kept = keeping.keep(looked, found, moment)
    if kept:
        notes.insert(0, f"{plural(kept, 'item needs', 'items need')} attention")
    return Pass(0, "; ".join(notes))
