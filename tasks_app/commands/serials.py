"""Serial numbers of output files: no two tasks make files of the same names."""

from __future__ import annotations

from typing import NamedTuple

from tasks_app.models import OutputTemplate, Task
from tasks_app.scopes import scope_of

OWN_NUMBERS = ("$JEDITASKID", "$PANDAID")


class Others(NamedTuple):
    """Other tasks that make files of the same names: the next number behind all of theirs, and one that has not ended."""

    serial: int
    running: Task | None


def others_with(template: str, dataset: str, task: Task) -> Others:
    """The other tasks whose files have this template of names, in the scope of this dataset."""
    scope = scope_of(dataset, task.user)
    same = OutputTemplate.objects.filter(file_name_template=template).exclude(task_id=task.id)
    same = same.select_related("dataset__task")
    rows = [row for row in same if scope_of(row.dataset.name, row.dataset.task.user) == scope]
    running = None
    if rows and not any(mark in template for mark in OWN_NUMBERS):
        running = Task.objects.open().filter(pk__in=[row.task_id for row in rows]).first()
    return Others(max((row.serial or 0 for row in rows), default=0), running)


class NamesTakenError(ValueError):
    """Another task that has not ended makes files of the same names; the sentence names both."""


def taken_by(other: Task, template: str) -> str:
    return f"task {other.id}, which is {other.status}, makes files of the same names ({template})"


def go_on_after_others(task: Task) -> None:
    """A task that runs again numbers its files behind those of tasks that ran since. Raises NamesTakenError."""
    for row in OutputTemplate.objects.filter(task_id=task.id).select_related("dataset"):
        others = others_with(row.file_name_template, row.dataset.name, task)
        if others.running is not None:
            raise NamesTakenError(taken_by(others.running, row.file_name_template))
        if others.serial > (row.serial or 0):
            OutputTemplate.objects.filter(pk=row.pk).update(serial=others.serial)
