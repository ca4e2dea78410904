"""The task broker: gives tasks of production the nucleus at which their outputs are gathered."""

from __future__ import annotations

import random
from datetime import datetime

from django.utils import timezone

from brokerage_app.grid import configured
from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from jedisite.vocabulary.words import plural
from tasks_app.counts.statistics import current_grid
from tasks_app.domain.states import TaskStatus
from tasks_app.generation.nucleus_turns import ME, Draw, Round
from tasks_app.lifecycle import claims, nucleus_waits

LIMIT = 50
COUNTS_AGE_S = 60.0
"""Job counts may be so old: they decide where jobs run now, and only whether some could at the nucleus at all."""


@agent("task_broker", every="5s", title="Chooses the nucleus that gathers a task's outputs")
def run(limit: int = LIMIT, now: datetime | None = None, draw: Draw = random.random) -> Pass:
    """Choose a nucleus for tasks that wait for one, the most urgent first. A task without one waits, with the reason."""
    claimed = claims.claim_tasks(
        owner(),
        [TaskStatus.ASSIGNING],
        limit,
        condition=nucleus_waits.DUE,
        values=nucleus_waits.due_values(),
        even_waiting=True,
        agent=ME,
    )
    if not claimed:
        return Pass()
    now = now or timezone.now()
    # Taken before anything is read: whatever changes from here on is a reason to look again.
    read_at = the_time()
    configured.forget()
    this = Round(current_grid(now, COUNTS_AGE_S), now, draw, read_at)
    claims.for_each(claimed, this.turn, by=ME)
    return Pass(
        this.assigned, f"{this.assigned} of {plural(len(claimed), 'task')} got a nucleus", more=len(claimed) == limit
    )
