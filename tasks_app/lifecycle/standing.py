"""The states in which tasks will be once they have obeyed the commands that wait for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tasks_app.domain import accepting
from tasks_app.models import Command, Task


def foreseen_states(task_ids: Collection[int]) -> dict[int, str]:
    """The states of those tasks that there are, once they have obeyed the commands that wait. Two statements."""
    # Read before the states: a command that is obeyed in between has changed that, and is not accepted a second time.
    waiting = Command.objects.waiting_of(task_ids)
    tasks = Task.objects.filter(pk__in=list(task_ids)).only("status", "old_status", "prod_source_label")
    return {task.id: standing_of(task, waiting.get(task.id, ())).foreseen.value for task in tasks}


def standing_of(task: Task, waiting: Sequence[str]) -> accepting.Standing:
    return accepting.Standing(task.id, task.status, task.old_status, task.prod_source_label or "", tuple(waiting))
