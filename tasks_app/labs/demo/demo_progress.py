"""Which progress of the demonstration's tasks is written to a log: what has changed, and once that all have ended. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tasks_app.domain.states import TASK_FINAL

EACH_S: Final = 10.0
"""Seconds between two looks whose changes are said; that all have ended is said at once."""


class Progress:
    """Rows as `watching.progress_of` gives them, one look after the other."""

    def __init__(self) -> None:
        self._said: dict[int, dict[str, Any]] = {}
        self._next_s = 0.0
        self._has_ended = False

    def changed(self, rows: Sequence[dict[str, Any]], now_s: float) -> list[dict[str, Any]]:
        """The rows to be written now. `now_s`: seconds of a clock that never goes back."""
        if now_s < self._next_s and not _all_ended(rows):
            return []
        found = [row for row in rows if self._said.get(row["id"]) != row]
        if found:
            self._said |= {row["id"]: row for row in found}
            self._next_s = now_s + EACH_S
        return found

    def ends(self, rows: Sequence[dict[str, Any]]) -> bool:
        """Whether this is the first look at which all have ended."""
        if self._has_ended or not _all_ended(rows):
            return False
        self._has_ended = True
        return True


def _all_ended(rows: Sequence[dict[str, Any]]) -> bool:
    return bool(rows) and all(row["status"] in TASK_FINAL for row in rows)
