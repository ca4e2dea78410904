"""Gates of other apps that a task has to pass. They add them in `AppConfig.ready()`; the answer to why asks them last."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from tasks_app.models import Task

if TYPE_CHECKING:  # what a gate is made of takes a tenth of the start of a command, and most ask none
    from tasks_app.explaining.rules.answers import Gate

AskTask = Callable[[Task, datetime], "Gate | None"]
"""What a gate answers now; None where it is no question to the task."""
ASKED: Final[dict[str, AskTask]] = {}


def add(name: str, ask: AskTask) -> None:
    """Ask tasks at a gate of this name; the same once more changes nothing."""
    ASKED[name] = ask


def of_task(task: Task, now: datetime) -> list[Gate]:
    """The answers of the gates that are questions to this task."""
    found = (ask(task, now) for ask in ASKED.values())
    return [gate for gate in found if gate is not None]
