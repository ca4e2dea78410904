"""The log of a task's states for people: attempts of a pending task that came to nothing are one line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tasks_app.states import TaskStatus

AGENT: Final = "pending"
"""The agent that lets pending tasks try again."""


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of the log; of a folded one the latest. `tries`: how often it was tried again in vain since `since`."""

    at: datetime
    status: str
    by: str
    reason: str
    tries: int = 0
    since: datetime | None = None


def folded(lines: Sequence[Line]) -> list[Line]:
    """The lines, the latest first, with those that only say "pending, tried again, pending" as the latest of them."""
    found, place = [], 0
    while place < len(lines):
        line, tries = lines[place], 0
        while _again(lines, place):
            place, tries = place + 2, tries + 1
        since = lines[place].at if tries else None
        found.append(Line(line.at, line.status, line.by, line.reason, tries, since))
        place += 1
    return found


def _again(lines: Sequence[Line], place: int) -> bool:
    """The agent had let the task try again before it became pending at this place, and it was pending by the same before."""
    if place + 2 >= len(lines):
        return False
    now, left, before = lines[place : place + 3]
    is_pending = now.status == before.status == TaskStatus.PENDING
    return is_pending and left.by == AGENT and now.by == before.by
