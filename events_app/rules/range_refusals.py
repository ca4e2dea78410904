"""The refusal codes of ranges of events. A code is never renamed or given a new meaning."""

from __future__ import annotations

from typing import Final

from tasks_app.domain.refusal_codes import code

GATE: Final = "ranges"
"""The gate of a task that refuses with these codes."""

RANGES_WITHOUT_ATTEMPTS: Final = code(
    "ranges_without_attempts",
    "Ranges without attempts",
    "events",
    "user",
    "Look at the errors of the ranges, correct their cause, and retry the task: its files then get new ranges.",
    severity="error",
)
RANGES_WITHOUT_CONSUMER: Final = code(
    "ranges_without_consumer",
    "Ranges without a consumer",
    "events",
    "expert",
    "Wait for the next pass of the job generator; if no job of the task is open then, look at the log of the agent.",
)
RANGES_NOT_MERGED: Final = code(
    "ranges_not_merged",
    "Outputs of ranges are not merged",
    "events",
    "expert",
    "Look at the merge jobs of the task; if there is none, retry the task.",
)
