"""Input files that a command took out of a task: how many there are of each dataset, and who removed them."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Count, QuerySet

from tasks_app.domain.states import FileStatus
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.models import Command, File


def counts(task_id: int) -> dict[int, int]:
    """How many files were removed, by dataset; of those with any. One query, and another where a command has removed some."""
    if not commands_on([task_id]).exists():
        return {}
    removed = File.objects.filter(task_id=task_id, status=FileStatus.REMOVED).order_by()
    return dict(removed.values_list("dataset_id").annotate(n=Count("pk")))


def all_removed(tasks: Collection[int]) -> dict[int, str]:
    """Of those of these tasks, which have no files left, that had some: `all of its input was removed by ada`. Two queries."""
    if not tasks:
        return {}
    removed = File.objects.filter(task_id__in=list(tasks), status=FileStatus.REMOVED)
    found = set(removed.order_by().values_list("task_id", flat=True).distinct())
    if not found:
        return {}
    who: dict[int, dict[str, None]] = {task: {} for task in found}
    for task, owner in commands_on(found).order_by("id").values_list("task_id", "owner"):
        who[task][owner] = None
    said = "all of its input was removed"
    return {task: f"{said} by {', '.join(names)}" if names else said for task, names in who.items()}


def commands_on(tasks: Collection[int]) -> QuerySet[Command]:
    """The commands by which files were removed."""
    return Command.objects.filter(task_id__in=list(tasks), name=TaskCommand.REMOVE_FILES, status="done")
