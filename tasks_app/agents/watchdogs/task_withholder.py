"""Watchdog: tasks with high I/O wait while their input is only at full queues or unreadable storage."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import numbers, the_time
from jedisite.vocabulary.words import plural
from tasks_app.configured import timeout_limits
from tasks_app.counts import statistics
from tasks_app.domain.states import TASK_GENERATING, TaskStatus
from tasks_app.lifecycle import claims
from tasks_app.upkeep.withheld_tasks import ME, hold_or_free, readers, reasons_to_hold

LIMIT: Final = 500


@agent(
    "task_withholder",
    every=timeout_limits.limit("task.withheld"),
    title="Holds tasks whose input is only at busy sites",
)
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Hold back tasks, those with the highest I/O first, and release those that no longer need it."""
    now, tasks = the_time(now), readers(limit)
    if not tasks:
        return Pass()
    reasons = reasons_to_hold(tasks, statistics.current_grid(now))
    claimed = claims.claim_tasks(
        owner(),
        sorted({*TASK_GENERATING, TaskStatus.PENDING}),
        len(tasks),
        condition="t.jeditaskid = ANY(%(ids)s::bigint[])",
        values={"ids": numbers(sorted(tasks))},
        even_waiting=True,
        agent=ME,
    )
    done = claims.for_each(claimed, lambda task_id, fence: hold_or_free(task_id, fence, reasons.get(task_id)), by=ME)
    return Pass(done, f"{plural(len(reasons), 'task is', 'tasks are')} held")
