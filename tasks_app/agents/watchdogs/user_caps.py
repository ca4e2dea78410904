"""Watchdog: no user and no working group takes all slots, nor all of the network."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.configured import timeout_limits
from tasks_app.domain.states import TaskStatus
from tasks_app.lifecycle import claims
from tasks_app.upkeep.user_limits import ME, free_forgotten_jobs, hold_back, limits_in_force, read_work, release_or_hold

LIMIT = 500


@agent(
    "user_caps",
    every=timeout_limits.limit("task.crowding"),
    title="Keeps users and groups below their limits on jobs and data",
)
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Throttle the tasks of whoever is over a limit, release the others', hold queued jobs back and let them go."""
    now, limits = the_time(now), limits_in_force()
    work = read_work(limits)
    items = hold_back(work, limits, now, limit)
    held = claims.claim_tasks(
        owner(),
        [TaskStatus.THROTTLED],
        limit,
        condition="position('type=' in coalesce(t.errordialog, '')) > 0",
        even_waiting=True,
        agent=ME,
    )
    items += claims.for_each(held, partial(release_or_hold, work=work, limits=limits, now=now), by=ME)
    return Pass(items + free_forgotten_jobs(work))
