"""Periodic tasks: at each due time of a task's schedule its input grows, and the generator makes jobs of it."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.utils import timezone

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from tasks_app.domain.states import TASK_GENERATING
from tasks_app.inputs.schedules import ME, due_by, end_with_tasks, make_due
from tasks_app.lifecycle import claims

LIMIT = 100


@agent("periodic", every="10s", title="Creates input for tasks that run on a schedule")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Make what is due. Tasks that are paused, pending or throttled are left out until they go on."""
    now = now or timezone.now()
    end_with_tasks(now)
    claimed = claims.claim_tasks(
        owner(), sorted(TASK_GENERATING), limit, condition=due_by(now), even_waiting=True, agent=ME
    )
    return Pass(claims.for_each(claimed, partial(make_due, now=now), by=ME), more=len(claimed) == limit)
