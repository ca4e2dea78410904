"""Watch dog: tasks that were set aside return to what they did before, when their wait is over."""

from __future__ import annotations

from jedisite.agents import Pass, owner
from tasks_app import moves
from tasks_app.models import Task
from tasks_app.states import TaskStatus

ME = "pending"
LIMIT = 200


def run(limit: int = LIMIT) -> Pass:
    claimed = moves.claim_tasks(owner(), [TaskStatus.PENDING], limit, condition="t.oldstatus IS NOT NULL")
    return Pass(moves.for_each(claimed, _return, by=ME), more=len(claimed) == limit)


def _return(task_id: int, fence: int) -> None:
    task = Task.objects.get(pk=task_id)
    # The clock of how long the task has been stuck runs on until something works.
    moves.move_task(
        task_id, task.old_status or TaskStatus.READY, by=ME, reason="tries again", fence=fence, old_status=None,
        frozen_time=task.frozen_time,
    )  # fmt: skip
