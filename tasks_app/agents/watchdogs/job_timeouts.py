"""Watchdog: jobs that stay in a state for too long end; queued ones are made anew, possibly elsewhere.

A job that is ended for being assigned anew is closed, its files return with one attempt more but no failure, and the
job generator makes a new job of them, whose retry history names this one.
"""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.configured import timeout_table
from tasks_app.upkeep.expiring import expire_jobs

ME = "job_timeouts"
LIMIT = 5000


@agent("job_timeouts", every="60s", title="Ends jobs that exceed the time-out of their state")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Apply every time-out of jobs but silence, which has a quicker watchdog of its own."""
    done, more = expire_jobs(timeout_table.SLOW_JOB_RULES, the_time(now), by=ME, limit=limit)
    return Pass(done, more=more)
