"""Watchdog: an input that waits to be fed, of a task that does not, is fed after all: the task returns to defined.

This happens when an input was changed or added while the task went on. Without it the task would wait for ever, since
the job generator uses only inputs that are ready and the post-processor waits for the others.
"""

from __future__ import annotations

from datetime import datetime

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time
from tasks_app.domain.states import TASK_GENERATING, TaskStatus
from tasks_app.inputs import awaited_inputs
from tasks_app.lifecycle import claims, task_moves

ME = "restart_contents"
LIMIT = 100


@agent("restart_contents", every="5m", title="Resumes reading of inputs that were left waiting")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """One pass over tasks that make jobs while an input of theirs has not been fed for long."""
    condition = awaited_inputs.forgotten(the_time(now))
    claimed = claims.claim_tasks(
        owner(), sorted(TASK_GENERATING), limit, condition=condition, even_waiting=True, agent=ME
    )
    return Pass(claims.for_each(claimed, _restart, by=ME), more=len(claimed) == limit)


def _restart(task_id: int, fence: int) -> None:
    reason = "an input waits to be read, and no feeder has read it"
    task_moves.move_task(task_id, TaskStatus.DEFINED, by=ME, reason=reason, fence=fence)
