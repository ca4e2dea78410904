"""What became of the tasks that were to make an input: why it is empty, or not there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from django.db.models import Q

from tasks_app import moves
from tasks_app.models import Dataset, PlannedOutput, Task
from tasks_app.models.dataset import MADE_TYPES
from tasks_app.params.made import CONTAINER_MARK
from tasks_app.states import TASK_FINAL, TaskStatus

_HAS_ENDED = {TaskStatus.FAILED: "has failed", TaskStatus.ABORTED: "was aborted"}


def how_they_ended(names: Collection[str]) -> dict[str, str]:
    """For each dataset or container that tasks make or made, all of which have ended, how the last one did.

    The end of a sentence: `task 7, which makes it, has failed`. The slash of a container may be left out. Two statements, and
    two more when some have ended: one that is told to run again has not.
    """
    bare = {name.rstrip(CONTAINER_MARK) for name in names}
    both = [*bare, *(name + CONTAINER_MARK for name in bare)]
    made = Dataset.objects.filter(Q(name__in=both) | Q(container_name__in=both), type__in=MADE_TYPES)
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for name, container, task_id, status in made.values_list("name", "container_name", "task_id", "task__status"):
        for one in {(text or "").rstrip(CONTAINER_MARK) for text in (name, container)} & bare:
            found[one][task_id] = status
    planned = PlannedOutput.objects.filter(dataset__in=bare, task__in=Task.objects.open())
    coming = set(planned.values_list("dataset", flat=True))
    over = {one: tasks for one, tasks in found.items() if one not in coming and TASK_FINAL.issuperset(tasks.values())}
    foreseen = moves.foreseen_states({task for tasks in over.values() for task in tasks}) if over else {}
    return {
        name: _said(over[one])
        for name in names
        if (one := name.rstrip(CONTAINER_MARK)) in over and all(foreseen.get(task) in TASK_FINAL for task in over[one])
    }


def _said(makers: dict[int, str]) -> str:
    last = max(makers)
    return f"task {last}, which makes it, {_HAS_ENDED.get(TaskStatus(makers[last]), f'is {makers[last]}')}"
