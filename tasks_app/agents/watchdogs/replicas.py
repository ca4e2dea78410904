"""Watchdog: looks up the replicas of open tasks' inputs again when the stored answer is old.

Inputs that were set aside since nobody had them are taken up again when somebody has."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.passes import renew_lease
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from jedisite.vocabulary.words import plural
from tasks_app.inputs import locality
from tasks_app.outcomes import inputs_back

LIMIT = 500
AT_ONCE = 50


@agent("replicas", every="5m", title="Refreshes where replicas of task inputs are")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """One pass over inputs that were asked for an hour ago or never; answers that nobody needs any more are deleted."""
    now = the_time(now)
    inputs_back.take_back()
    names = locality.stale(now, limit)
    for start in range(0, len(names), AT_ONCE):
        renew_lease()
        locality.ask(names[start : start + AT_ONCE], now)
    locality.forget_old(now)
    return Pass(len(names), f"{plural(len(names), 'dataset')}", more=len(names) == limit)
