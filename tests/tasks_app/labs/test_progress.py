"""A log of the demonstration grows only while something changes, and says once that all has ended."""

from __future__ import annotations

from typing import Any

from tasks_app.labs.demo.demo_progress import EACH_S, Progress


def row(number: int, status: str, finished: int = 0) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"t{number}",
        "status": status,
        "says": "",
        "files": 4,
        "finished": finished,
        "failed": 0,
        "jobs": {"finished": finished} if finished else {},
    }


def test_only_what_has_changed_is_said_and_not_each_second() -> None:
    progress = Progress()
    first = [row(1, "running"), row(2, "registered")]
    assert progress.changed(first, 50) == first
    later = [row(1, "running", 3), row(2, "registered")]
    assert progress.changed(later, 51) == []
    assert progress.changed(later, 50 + EACH_S) == [later[0]]
    assert [progress.changed(later, 100 + n) for n in range(1000)] == [[]] * 1000


def test_the_end_is_said_once_and_at_once() -> None:
    progress = Progress()
    assert not progress.ends([])
    before, after = [row(1, "done", 4), row(2, "running", 3)], [row(1, "done", 4), row(2, "finished", 3)]
    progress.changed(before, 0)
    assert not progress.ends(before)
    assert progress.changed(after, 1) == [after[1]] and progress.ends(after)
    assert progress.changed(after, 99) == [] and not progress.ends(after)
