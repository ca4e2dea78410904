"""Watchdog: the last jobs of nearly complete tasks are hurried: priority 900 and the share Express."""

from __future__ import annotations

from functools import partial

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from tasks_app.domain.states import TaskStatus
from tasks_app.lifecycle import claims
from tasks_app.upkeep.nearly_complete import ME, hurry, limits_in_force, may_be_hurried

LIMIT = 100


@agent("boost", every="60s", title="Raises the priority of nearly complete tasks")
def run(limit: int = LIMIT) -> Pass:
    """Hurry running tasks that are nearly complete, and their queued jobs. Each task once."""
    if not claims.states_in_use([TaskStatus.RUNNING]):
        return Pass()
    given = limits_in_force()
    condition = may_be_hurried(given)
    claimed = claims.claim_tasks(owner(), [TaskStatus.RUNNING], limit, condition=condition, even_waiting=True, agent=ME)
    return Pass(claims.for_each(claimed, partial(hurry, given=given), by=ME))
