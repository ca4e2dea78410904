"""Watchdog: raises the priority of jobs of users who have had less than other users."""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from jedisite.vocabulary.words import plural
from tasks_app.configured import timeout_limits
from tasks_app.upkeep.user_priorities import raise_priorities, steps_for_users


@agent(
    "user_priorities",
    every=timeout_limits.limit("task.crowding"),
    title="Raises job priorities of users below their part",
)
def run(now: datetime | None = None) -> Pass:
    """Compare all users once, and raise the jobs of those who lack."""
    steps = steps_for_users(the_time(now))
    if not steps:
        return Pass()
    done = raise_priorities(steps)
    return Pass(done, f"{plural(done, 'job')} of {plural(len({step.who for step in steps}), 'user')}")
