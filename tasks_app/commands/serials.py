"""Serial numbers of output files: no two tasks make files of the same names.

A file is known by its scope and name, to storage and to pilots, whatever dataset it is in. So tasks whose files have the
same template of names, in one scope, share one row of numbers. A name with the number of the task or job in it is the
task's own, and its numbers begin where the task says.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    if any(mark in template for mark in OWN_NUMBERS):
        return Others(0, None)
    scope = scope_of(dataset, task.user)
    same = OutputTemplate.objects.filter(file_name_template=template).exclude(task_id=task.id)
    same = same.select_related("dataset__task")
    rows = [row for row in same if scope_of(row.dataset.name, row.dataset.task.user) == scope]
    running = Task.objects.open().filter(pk__in=[row.task_id for row in rows]).first() if rows else None
    return Others(max((row.serial or 0 for row in rows), default=0), running)


def open_tasks_with(names: Mapping[str, str], user: str) -> dict[str, Task]:
    """Tasks that have not ended and make files of these templates of names, in the scope of the dataset that each goes to.

    Scopes are those of datasets that this user makes.
    """
    scopes = {name: scope_of(dataset, user) for name, dataset in names.items() if not any(mark in name for mark in OWN_NUMBERS)}
    if not scopes:
        return {}
    rows = OutputTemplate.objects.filter(file_name_template__in=list(scopes), task_id__in=Task.objects.open().values("id"))
    return {
        row.file_name_template: row.dataset.task
        for row in rows.select_related("dataset__task").order_by("id")
        if scope_of(row.dataset.name, row.dataset.task.user) == scopes[row.file_name_template]
    }


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
