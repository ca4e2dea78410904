"""The task that a person names on the command line: by its number or its name."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import CommandError, OutputWrapper

from jedisite.vocabulary.words import differ_little, nearest
from tasks_app.domain.scopes import CONTAINER_MARK
from tasks_app.models import Task

MOST_NAMES = 2000
"""Tasks with whose names one that is none's is compared: the newest."""
MOST_TOLD = 5


def add_task(parser: ArgumentParser, *, optional: bool = False) -> None:
    says = "the number of a task, or its name (a slash at its end may be left out); the newest counts if several have the name"
    parser.add_argument("task", help=says, nargs="?" if optional else None)


def task_named(given: str, stderr: OutputWrapper) -> Task:
    """The task of a number or name; others of the name are told of on `stderr`. Raises CommandError."""
    others: list[int] = []
    if given.isdecimal():
        found = Task.objects.filter(pk=int(given[:18])).first()
    else:
        name = given.replace("\0", "")
        # Tasks of PanDA's clients have the slash of their output container at the end of their names.
        bare = name.rstrip(CONTAINER_MARK)
        rows = list(Task.objects.filter(name__in=[name, bare, bare + CONTAINER_MARK]).order_by("id"))
        named = {task.name: task for task in rows}
        found = named.get(name) or next(iter(named.values()), None)
        others = [task.id for task in reversed(rows) if found and task.name == found.name and task.id != found.id]
    if found is None:
        newest = () if given.isdecimal() else Task.objects.order_by("-id").values_list("name", flat=True)[:MOST_NAMES]
        near = nearest(given, {name for name in newest if name and differ_little(given, name)})
        raise CommandError(f"there is no task {given}." + (f" Did you mean {near}?" if near else ""))
    if others:
        more = ", ".join(map(str, others[:MOST_TOLD])) + (" …" if len(others) > MOST_TOLD else "")
        stderr.write(f"using task {found.id}, the newest of this name; the others are {more}")
    return found
