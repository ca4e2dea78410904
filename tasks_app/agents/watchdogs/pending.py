"""Watch dog: tasks that were set aside return to what they did before, when their wait is over."""

from __future__ import annotations

from jedisite.agents import Pass
from tasks_app import moves
from tasks_app.models import Task
from tasks_app.states import TaskStatus

ME = "pending"
LIMIT = 200


def run(limit: int = LIMIT) -> Pass:
    claimed = moves.claim_tasks(ME, [TaskStatus.PENDING], limit, condition="t.oldstatus IS NOT NULL")
    back = dict(Task.objects.filter(pk__in=[t for t, _ in claimed]).values_list("id", "old_status"))
    frozen = dict(Task.objects.filter(pk__in=[t for t, _ in claimed]).values_list("id", "frozen_time"))
    for task_id, fence in claimed:
        # The clock of how long the task has been stuck runs on until something works.
        moves.move_task(
            task_id,
            back[task_id],
            by=ME,
            reason="tries again",
            fence=fence,
            old_status=None,
            frozen_time=frozen[task_id],
        )
    return Pass(len(claimed), more=len(claimed) == limit)
