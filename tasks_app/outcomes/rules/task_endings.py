"""How a task ends: status, reason, and the sentence that its page shows. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tasks_app.domain import refusal_codes
from tasks_app.domain.final import Books, final_verdict
from tasks_app.domain.states import TaskStatus

PREPROCESSING_FAILED: Final = "its preprocessing step failed"
"""Begins the dialog of a task that ends for that."""
_SHOWN = (refusal_codes.TASK_GOAL_MISSED, refusal_codes.TASK_PARENT_INCOMPLETE, refusal_codes.TASK_PARENT_NOT_DONE)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a task ends: status, reason, and what of it the task's page is to show besides its errors."""

    status: str
    reason: str
    remark: str = ""

    def dialog(self, said: str | None, wrong: str, errors: str | None) -> str | None:
        """The sentence that the page of the ended task shows.

        `said` is what it showed before, `wrong` what the check of the outputs found, `errors` the summary of its jobs' errors.
        """
        if self.status == TaskStatus.BROKEN:
            return said
        return ". ".join(filter(None, (self.remark, wrong, errors))) or (
            said if self.status != TaskStatus.DONE else None
        )


def ending_of(status: str, said: str, books: Callable[[], Books]) -> Ending:
    """How a task in this status with this dialog ends. The books are asked only when files decide."""
    if status == TaskStatus.TOBROKEN:
        return Ending(TaskStatus.BROKEN, said)
    if status == TaskStatus.TOABORT:
        return Ending(TaskStatus.ABORTED, said or "killed", said)
    found = books()
    verdict = final_verdict(found)
    remark = (
        verdict.reason.detail
        if verdict.reason.code in _SHOWN or found.missing or found.removed or found.given_up or found.left_out
        else ""
    )
    if said.startswith(PREPROCESSING_FAILED):
        remark = said
    return Ending(verdict.status, verdict.reason.detail, remark)
