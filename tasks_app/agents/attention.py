"""What needs attention: rules that read small tables run often, those that read all open tasks less often."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from jedisite.agents import troubles
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.attention import keeping
from tasks_app.attention.rounds import QUICK, round_of, slow_rules
from tasks_app.configured import timeout_limits

TROUBLES_KEPT: Final = timedelta(days=1)


@agent("attention", every="30s", title="Finds problems of sites and services that need attention")
def run(now: datetime | None = None) -> Pass:
    return Pass(0, round_of(QUICK, the_time(now)))


@agent("attention_tasks", every="5m", title="Finds stalled tasks, starved shares and bad worker nodes")
def run_slow(now: datetime | None = None) -> Pass:
    """The slower rules; and items that have been gone for long are deleted, which is what the pass counts."""
    moment = the_time(now)
    note = round_of(slow_rules(), moment)
    troubles.forget(moment - TROUBLES_KEPT)
    return Pass(keeping.forget(moment - timeout_limits.limit("attention.gone")), note)
