"""Watchdog: pending tasks return to their earlier state, or become exhausted after too long."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.domain.states import TaskStatus
from tasks_app.lifecycle import claims, site_waits
from tasks_app.lifecycle.turn_order import Turns
from tasks_app.upkeep import pending_tasks

ME = "pending"
LIMIT = 200


@agent("pending", every="5s", title="Retries pending tasks when their wait is over")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """One pass over tasks whose wait is over, and over those that are stuck for too long."""
    if not claims.states_in_use([TaskStatus.PENDING]):
        return Pass()
    now, changed = the_time(now), site_waits.last_change().first()
    claimed = claims.claim_tasks(
        owner(),
        [TaskStatus.PENDING],
        limit,
        condition=pending_tasks.due(now),
        values=site_waits.values(changed),
        even_waiting=True,
        agent=ME,
        turns=Turns(),
    )
    work = partial(pending_tasks.leave, by=ME, now=now, changed=changed)
    return Pass(claims.for_each(claimed, work, by=ME), more=len(claimed) == limit)
