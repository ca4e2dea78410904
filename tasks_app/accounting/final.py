"""The final status of a task and the sentence about its errors. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tasks_app.states import TaskStatus


@dataclass(frozen=True, slots=True)
class Books:
    """Files of the master inputs, how many finished, and the status of the parent task if there is one."""

    files: int
    finished: int
    parent: str | None = None


def final_status(books: Books) -> TaskStatus:
    """done: every file was processed; finished: some were; failed: none was.

    With a parent that did not reach done, a complete task is only finished, since its input may be incomplete;
    with a parent that failed it has failed.
    """
    if books.finished == 0:
        return TaskStatus.FAILED
    if books.finished < books.files:
        return TaskStatus.FINISHED
    if books.parent in (TaskStatus.FAILED, TaskStatus.BROKEN, TaskStatus.ABORTED):
        return TaskStatus.FAILED
    if books.parent is not None and books.parent != TaskStatus.DONE:
        return TaskStatus.FINISHED
    return TaskStatus.DONE


def error_summary(errors: Iterable[tuple[str, int, str | None, int]], status: str) -> str | None:
    """One sentence from (component, code, example text, jobs) rows; None when no job failed."""
    rows = list(errors)
    if not rows:
        return None
    total = sum(row[3] for row in rows)
    parts = [
        f"{jobs} × {component}:{code} ({(diag or 'no text').strip()[:200]})" for component, code, diag, jobs in rows
    ]
    jobs_failed = "1 job failed" if total == 1 else f"{total} jobs failed"
    ending = "; all files were processed in the end" if status == TaskStatus.DONE else ""
    return f"{jobs_failed}: {'; '.join(parts)}{ending}"
