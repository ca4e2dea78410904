"""Watchdog: jobs that were being made while their task was paused are held back or ended too."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.configured import timeout_limits
from tasks_app.upkeep import paused_jobs

ME = "paused_tasks"
LIMIT = 5000


@agent("paused_tasks", every="60s", title="Holds back or ends waiting jobs of paused tasks")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Hold back activated jobs of tasks that have been paused for a while, and end those that are not activated yet."""
    before = the_time(now) - timeout_limits.limit("task.paused_jobs")
    held = paused_jobs.hold_back(before, limit, by=ME)
    ended, more = paused_jobs.end_unready(before, limit, by=ME)
    return Pass(held + ended, more=more or held >= limit)
