"""Watchdog: exhausted tasks that nobody has acted on are finished with their present outputs."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents import troubles
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.upkeep import finishing_unasked

ME = "exhausted"
LIMIT = 100


@agent("exhausted", every="5m", title="Finishes exhausted tasks that nobody has acted on")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Give the command to finish to tasks that have been exhausted for too long."""
    at = the_time(now)
    tasks = finishing_unasked.exhausted_for_long(at, limit)
    done = troubles.each(ME, tasks, lambda task_id: finishing_unasked.finish_exhausted(tasks[task_id], at, by=ME))
    return Pass(done, more=done == limit)
