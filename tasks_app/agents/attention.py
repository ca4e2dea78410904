"""Agents: what needs somebody. Rules that ask small tables run often; those that look at all open tasks, less often."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

import structlog

from jedisite import troubles
from jedisite.agents import Pass
from jedisite.logs import sentence_of
from jedisite.sql import the_time
from jedisite.words import plural
from tasks_app import timeouts
from tasks_app.accounting.failing_nodes import find_black_holes
from tasks_app.attention import keeping, reading
from tasks_app.attention.rules import machinery, sites, tasks
from tasks_app.attention.rules.found import Found

log = structlog.get_logger(__name__)
TROUBLES_KEPT: Final = timedelta(days=1)
Rule = Callable[[datetime], Iterable[Found]]
NODES_SEEN: Final = timedelta(hours=3)
"""How far back failures on worker nodes count."""
QUICK: Final[dict[str, Rule]] = {
    "late_agent": lambda now: machinery.late_agents(reading.agents(now)),
    "trouble": lambda now: machinery.troubles(reading.troubles(now)),
    "backlog": lambda now: machinery.full_queues(reading.backlogs(now)),
    "all_closed": lambda now: sites.all_closed(reading.queues_by_status(), reading.grid(now)),
    "nothing_runs": lambda now: sites.nothing_runs(reading.grid(now), now),
    "no_calls": lambda now: sites.no_calls(reading.grid(now), now),
    "failures": lambda now: sites.failure_spikes(reading.failure_rates(now)),
    "no_pilots": lambda now: sites.no_pilots(reading.sites_with_work(), now),
    "offline": lambda now: sites.closed(reading.closed_queues(now), now),
    "asks": lambda now: tasks.asks_a_person(reading.asking_tasks(), now),
}
SLOW: Final[dict[str, Rule]] = {
    "stuck_task": lambda now: tasks.stuck(reading.stuck_tasks(now), now),
    "data": lambda now: tasks.data_stalls(reading.tasks_waiting_for_data(), now),
    "black_hole": lambda now: sites.black_holes(find_black_holes(now - NODES_SEEN, now)),
    "share": lambda now: sites.starved_shares(reading.shares_of_a_day(now)),
}
"""By the kind of what they find."""


def run(now: datetime | None = None) -> Pass:
    return _pass(QUICK, now)


def run_slow(now: datetime | None = None) -> Pass:
    """The slower rules; and items that have been gone for long are deleted, which is what the pass counts."""
    moment = the_time(now)
    done = _pass(SLOW, moment)
    troubles.forget(moment - TROUBLES_KEPT)
    return Pass(keeping.forget(moment - timeouts.limit("attention.gone")), done.note)


def _pass(rules: dict[str, Rule], now: datetime | None) -> Pass:
    """A rule that fails unexpectedly keeps none of the others from looking; what it found last is left as it is."""
    moment = the_time(now)
    looked, found, notes = [], list[Found](), []
    for kind, rule in rules.items():
        try:
            found += list(rule(moment))
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
