"""The tasks that make an input: what became of them, why it is empty or not there, and who reads what their parent makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from tasks_app.domain.scopes import CONTAINER_MARK
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.lifecycle import standing
from tasks_app.models import Dataset, PlannedOutput, Task
from tasks_app.models.dataset import MADE_TYPES

_HAS_ENDED = {TaskStatus.FAILED: "has failed", TaskStatus.ABORTED: "was aborted"}


def how_they_ended(names: Collection[str]) -> dict[str, str]:
    """For each dataset or container that tasks make or made, all of which have ended, how the last one did.

    The end of a sentence: `task 7, which makes it, has failed`. The slash of a container may be left out. Two statements, and
    two more when some have ended: one that is told to run again has not.
    """
    found, coming = _makers_of(names)
    over = {
        name: tasks for name, tasks in found.items() if name not in coming and TASK_FINAL.issuperset(tasks.values())
    }
    again = _told_to_run_again(over.values())
    return {name: _said(tasks) for name, tasks in over.items() if not again & tasks.keys()}


def still_at_it(names: Collection[str], reader: int | None = None) -> dict[str, int]:
    """For each dataset or container that another task than its reader is to fill: that task. It has not ended, or is told
    to run again. Two statements, and two more when some have ended."""
    found, coming = _makers_of(names)
    again = _told_to_run_again(found.values())
    at_work = {
        name: {task for task, status in tasks.items() if status not in TASK_FINAL or task in again} - {reader}
        for name, tasks in found.items()
    }
    for name, tasks in coming.items():
        at_work[name] = at_work.get(name, set()) | tasks - {reader}
    return {name: max(tasks) for name, tasks in at_work.items() if tasks}


@dataclass(frozen=True, slots=True)
class NotDone:
    """How a task ended that made something, as the end of a sentence, when, and in which state."""

    how: str
    ended: datetime | None
    status: TaskStatus


@dataclass(frozen=True, slots=True)
class MakerOfFile:
    """A task that makes a file, which is not there yet."""

    lfn: str
    status: TaskStatus
    ended: datetime | None


def not_done(names: Collection[str]) -> NotDone | None:
    """Of these datasets and containers, the last task that made one, ended, and was not done: the rest of what it was to make
    is missing. Where several made the same, the last one counts. Two statements, and one more when there is such a task."""
    found, _ = _makers_of(names)
    last = {name: max(tasks) for name, tasks in found.items()}
    short = {last[name]: name for name, tasks in found.items() if tasks[last[name]] in TASK_FINAL - {TaskStatus.DONE}}
    if not short:
        return None
    task = Task.objects.only("status", "end_time").get(pk=max(short))
    which = TaskStatus(task.status)
    return NotDone(
        f"task {task.id}, which makes {short[task.id]}, {_HAS_ENDED.get(which, f'is only {which}')}",
        task.end_time,
        which,
    )


def of_files(lfns: Collection[str]) -> dict[int, MakerOfFile]:
    """The tasks that make files of these names: a task makes the dataset with whose name and a dot the name of a file begins.

    One statement.
    """
    whose: dict[str, str] = {}
    for lfn in lfns:
        for at, letter in enumerate(lfn):
            if letter == ".":
                whose.setdefault(lfn[:at], lfn)
    rows = Dataset.objects.filter(name__in=list(whose), type__in=MADE_TYPES).order_by("-task_id")
    found = rows.values_list("name", "task_id", "task__status", "task__end_time")
    return {task: MakerOfFile(whose[name], TaskStatus(status), ended) for name, task, status, ended in found}


def not_done_of(makers: Mapping[int, MakerOfFile]) -> NotDone | None:
    """Of tasks that make files the last one that ended and was not done."""
    short = {task: one for task, one in makers.items() if one.status in TASK_FINAL - {TaskStatus.DONE}}
    if not short:
        return None
    last = max(short)
    one = short[last]
    return NotDone(
        f"task {last}, which makes {one.lfn}, {_HAS_ENDED.get(one.status, f'is only {one.status}')}",
        one.ended,
        one.status,
    )


def _makers_of(names: Collection[str]) -> tuple[dict[str, dict[int, str]], dict[str, set[int]]]:
    """For each of these names the tasks that make or made it, with their states, and those that will when they are refined."""
    given: dict[str, list[str]] = defaultdict(list)
    for name in names:
        given[name.rstrip(CONTAINER_MARK)].append(name)
    both = [*given, *(name + CONTAINER_MARK for name in given)]
    # Read before what is made: refining turns one into the other.
    planned = PlannedOutput.objects.filter(dataset__in=list(given), task__in=Task.objects.open())
    coming: dict[str, set[int]] = defaultdict(set)
    for bare, task_id in planned.values_list("dataset", "task_id"):
        for name in given[bare]:
            coming[name].add(task_id)
    made = Dataset.objects.of_container(*both).filter(type__in=MADE_TYPES)
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for dataset, container, task_id, status in made.values_list("name", "container_name", "task_id", "task__status"):
        for bare in {(text or "").rstrip(CONTAINER_MARK) for text in (dataset, container)} & given.keys():
            for name in given[bare]:
                found[name][task_id] = status
    return found, coming


def _told_to_run_again(found: Iterable[Mapping[int, str]]) -> set[int]:
    """Those of these tasks that have ended, and go on when they have obeyed the commands that wait."""
    ended = {task for tasks in found for task, status in tasks.items() if status in TASK_FINAL}
    foreseen = standing.foreseen_states(ended) if ended else {}
    return {task for task, status in foreseen.items() if status not in TASK_FINAL}


def _said(makers: Mapping[int, str]) -> str:
    last = max(makers)
    return f"task {last}, which makes it, {_HAS_ENDED.get(TaskStatus(makers[last]), f'is {makers[last]}')}"


def reads_parent(task: Task) -> bool:
    """Whether the parent task makes an input of this one: a dataset, or what lies in the container that is read."""
    return bool(reading_parents([task]))


def reading_parents(tasks: Sequence[Task]) -> set[int]:
    """The ids of those of these tasks that read what their parents make. Two queries."""
    parents = {task.parent_id for task in tasks}
    theirs = _named(Dataset.objects.filter(task_id__in=parents, type__in=MADE_TYPES))
    ours = _named(Dataset.objects.filter(task_id__in=[task.id for task in tasks], type="input"))
    return {task.id for task in tasks if not ours[task.id].isdisjoint(theirs[task.parent_id])}


def _named(rows: QuerySet[Dataset]) -> defaultdict[int | None, set[str]]:
    """The names of datasets and of the containers in which they lie, for each task."""
    found = defaultdict[int | None, set[str]](set)
    for task_id, *names in rows.values_list("task_id", "name", "container_name"):
        found[task_id] |= {name.rstrip("/") for name in names if name}
    return found
