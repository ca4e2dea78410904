"""Books that balance; where they do not, what happened to the tasks concerned is told with it."""

from __future__ import annotations

from collections.abc import Iterable

from tasks_app.audit import flow_invariants
from tasks_app.models import Command, TaskStatusLog

MOST_TOLD = 3
"""Tasks whose moves are told."""


def assert_books_balance(when: str = "") -> None:
    """Fails with the invariants that do not hold, and the moves and commands of the first tasks that break them."""
    broken = flow_invariants.find()
    assert not broken, "\n".join(filter(None, (when, *map(str, broken), *_histories(broken))))


def _histories(broken: Iterable[flow_invariants.Violation]) -> list[str]:
    tasks = dict.fromkeys(row["jeditaskid"] for found in broken for row in found.rows if row.get("jeditaskid"))
    return [line for task_id in list(tasks)[:MOST_TOLD] for line in _history(task_id)]


def _history(task_id: int) -> list[str]:
    moves = TaskStatusLog.objects.filter(task_id=task_id).values_list("at", "old_status", "status", "by", "reason")
    given = Command.objects.filter(task_id=task_id).values_list("created", "name", "owner", "parameters", "answer")
    told = [(at, f"{old} -> {new} by {by}: {reason}") for at, old, new, by, reason in moves]
    told += [(at, f"{owner} gave {name} {more or ''}: {answer}") for at, name, owner, more, answer in given]
    return [f"task {task_id}:", *(f"  {at:%H:%M:%S.%f} {line}" for at, line in sorted(told))]
