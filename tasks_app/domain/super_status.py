"""The coarse state of a task, which production systems and PanDA's clients show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tasks_app.domain.states import TASK_FINAL, TaskStatus

OTHERS: Final = "running"
"""The coarse state of all states that have no other."""
SUPER_STATUS: Final[Mapping[TaskStatus, str]] = {
    TaskStatus.REGISTERED: "registered",
    TaskStatus.READY: "ready",
    **{
        status: "submitting"
        for status in (
            TaskStatus.DEFINED,
            TaskStatus.ASSIGNING,
            TaskStatus.STAGING,
            TaskStatus.STAGED,
            TaskStatus.TOPREPROCESS,
            TaskStatus.PREPROCESSING,
            TaskStatus.SCOUTING,
            TaskStatus.SCOUTED,
        )
    },
    TaskStatus.EXHAUSTED: "exhausted",
    **{status: status.value for status in TASK_FINAL},
}


def super_status(status: str) -> str:
    """The coarse state: registered, submitting (no result of scouts yet), ready, running, exhausted, or how it ended.

    pbook's "active" tasks are those of the first four, so everything that can still change by itself is one of them.
    """
    return SUPER_STATUS.get(TaskStatus(status), OTHERS)


STATES_OF: Final[Mapping[str, list[str]]] = {
    coarse: sorted(s.value for s in TaskStatus if super_status(s) == coarse)
    for coarse in {super_status(s) for s in TaskStatus}
}
"""States by coarse state."""
