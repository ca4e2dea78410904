"""Watchdog: tasks whose files need many attempts pause between them; throttled tasks go on when their time is over."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.domain.states import TaskStatus
from tasks_app.lifecycle.claims import claim_tasks, for_each, states_in_use
from tasks_app.upkeep import attempt_throttling

ME = "throttle"
LIMIT = 200


@agent("throttle", every="60s", title="Throttles tasks whose files need many attempts")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Throttle tasks, then release those whose time is over."""
    if not states_in_use([TaskStatus.RUNNING, TaskStatus.THROTTLED]):
        return Pass()
    at = the_time(now)
    many, over = attempt_throttling.TO_THROTTLE, attempt_throttling.to_release(at)
    running = claim_tasks(owner(), [TaskStatus.RUNNING], limit, condition=many, even_waiting=True, agent=ME)
    items = for_each(running, partial(attempt_throttling.throttle, by=ME, now=at), by=ME)
    held = claim_tasks(owner(), [TaskStatus.THROTTLED], limit, condition=over, even_waiting=True, agent=ME)
    items += for_each(held, partial(attempt_throttling.release, by=ME, now=at), by=ME)
    return Pass(items, more=max(len(running), len(held)) == limit)
