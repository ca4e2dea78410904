"""Serial numbers of output files: no two tasks make files of the same names.

A file is known by its scope and name, to storage and to pilots, whatever dataset it is in. So tasks whose files have the
same template of names, in one scope, share one row of numbers. A name with the number of the task or job in it is the
task's own, and its numbers begin where the task says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from django.db import connection

from tasks_app.ddm import data_management
from tasks_app.ddm.base import Named
from tasks_app.domain.scopes import scope_of
from tasks_app.models import OutputTemplate, PlannedOutput, Task
from tasks_app.params.made import made_by
from tasks_app.params.rules import output_items
from tasks_app.params.schema import TaskParams

OWN_NUMBERS = ("$JEDITASKID", "$PANDAID")


class Others(NamedTuple):
    """Other tasks that make files of the same names: the next number behind all of theirs, and one that has not ended."""

    serial: int
    running: Task | None


class _Made(NamedTuple):
    """A template of names of files, as a task has it or will have it when it is refined."""

    template: str
    scope: str
    serial: int
    task_id: int


def others_with(names: Iterable[tuple[str, str]], task: Task) -> list[Others]:
    """For each template of names and dataset: the other tasks whose files have that template, in the scope of the dataset."""
    wanted = [(template, scope_of(dataset, task.user)) for template, dataset in names]
    shared = {template for template, _ in wanted if not _is_own(template)}
    rows = [made for made in _making(shared) if made.task_id != task.id]
    ids = {made.task_id for made in rows}
    running = list(Task.objects.open().filter(pk__in=ids).order_by("id")) if rows else []

    def others(template: str, scope: str) -> Others:
        same = [made for made in rows if (made.template, made.scope) == (template, scope)]
        serial = max((made.serial for made in same), default=0)
        makers = {made.task_id for made in same}
        return Others(serial, next((other for other in running if other.id in makers), None))

    return [others(template, scope) for template, scope in wanted]


def open_tasks_with(names: Mapping[str, str], user: str) -> dict[str, Task]:
    """Tasks that have not ended and make files of these templates of names, in the scope of the dataset that each goes to.

    Scopes are those of datasets that this user makes. Nobody else takes one of these names until the transaction ends.
    """
    scopes = {name: scope_of(dataset, user) for name, dataset in names.items() if not _is_own(name)}
    if not scopes:
        return {}
    _keep_to_this_transaction((scope, name) for name, scope in scopes.items())
    rows = [made for made in _making(scopes, open_only=True) if made.scope == scopes[made.template]]
    tasks = Task.objects.in_bulk({made.task_id for made in rows})
    return {made.template: tasks[made.task_id] for made in rows}


def files_there(names: Mapping[str, str], user: str) -> set[str]:
    """Those of these whole names of files, each with the dataset that it is to go to, that a file has in that scope."""
    fixed = {(scope_of(dataset, user), name) for name, dataset in names.items() if "$" not in name}
    held = data_management().others_of_these_names(Named("", scope, name, -1, "") for scope, name in fixed)
    return {name for _, name in held}


def plan(task_id: int, params: TaskParams) -> None:
    """Keep what a task that was just submitted will make, for those that are submitted before it is refined."""
    files = {(item.datasets[0].rstrip("/"), item.file_name) for item in output_items(params) if item.datasets}
    others = {made.rows[0] for made in made_by(params)} - {dataset for dataset, _ in files}
    rows = [*sorted(files), *((dataset, "") for dataset in sorted(others))]
    PlannedOutput.objects.bulk_create(
        [PlannedOutput(task_id=task_id, dataset=dataset, file_name_template=name) for dataset, name in rows]
    )


def _is_own(template: str) -> bool:
    return any(mark in template for mark in OWN_NUMBERS)


def _making(templates: Collection[str], *, open_only: bool = False) -> Iterator[_Made]:
    """All that tasks make or will make by these templates. Two queries."""
    if not templates:
        return
    made = OutputTemplate.objects.filter(file_name_template__in=list(templates))
    planned = PlannedOutput.objects.filter(file_name_template__in=list(templates))
    if open_only:
        made = made.filter(task_id__in=Task.objects.open().values("id"))
        planned = planned.filter(task__in=Task.objects.open())
    columns = ("file_name_template", "dataset__name", "dataset__task__user", "serial", "dataset__task_id")
    for template, dataset, user, serial, task_id in made.order_by("id").values_list(*columns):
        yield _Made(template, scope_of(dataset, user), serial or 0, task_id)
    for template, dataset, user, task_id in planned.order_by("id").values_list(
        "file_name_template", "dataset", "task__user", "task_id"
    ):
        yield _Made(template, scope_of(dataset, user), 0, task_id)


def _keep_to_this_transaction(names: Iterable[tuple[str, str]]) -> None:
    """Wait until nobody else is taking one of these names, by scope, and let nobody do so before this transaction ends."""
    keys = sorted(f"names of files {scope} {name}" for scope, name in names)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(k, 0)) FROM unnest(%s::text[]) k", [keys])


class NamesTakenError(ValueError):
    """Another task that has not ended makes files of the same names; the sentence names both."""


def taken_by(other: Task, template: str) -> str:
    return f"task {other.id}, which is {other.status}, makes files of the same names ({template})"


def go_on_after_others(task: Task) -> None:
    """A task that runs again numbers its files behind those of tasks that ran since. Raises NamesTakenError.

    Nobody else takes one of these names until the transaction ends.
    """
    rows = list(OutputTemplate.objects.filter(task_id=task.id).select_related("dataset"))
    _keep_to_this_transaction(
        (scope_of(row.dataset.name, task.user), row.file_name_template)
        for row in rows
        if not _is_own(row.file_name_template)
    )
    found = others_with([(row.file_name_template, row.dataset.name) for row in rows], task)
    for row, others in zip(rows, found, strict=True):
        if others.running is not None:
            raise NamesTakenError(taken_by(others.running, row.file_name_template))
        if others.serial > (row.serial or 0):
            OutputTemplate.objects.filter(pk=row.pk).update(serial=others.serial)
