"""Watchdog: jobs whose pilot sends no heartbeats fail, so that their files are tried again."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.domain.job_timeouts import SILENCE
from tasks_app.upkeep.expiring import expire_jobs

ME = "lost_jobs"
LIMIT = 1000


@agent("lost_jobs", every="5s", title="Fails jobs whose pilot sends no heartbeats")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Fail jobs without heartbeats: handed out and not started, or started and silent. By the database's clock."""
    done, more = expire_jobs(SILENCE, the_time(now), by=ME, limit=limit)
    return Pass(done, more=more)
