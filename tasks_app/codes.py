"""The refusal codes of tasks, their inputs and their states. A code is never renamed or given a new meaning."""

from __future__ import annotations

from typing import Final

from jedisite.refusals import Fixer, Group, Severity, register


def _code(code: str, title: str, group: Group, who: Fixer, advice: str, *, severity: Severity = "warning") -> str:
    return register(code, title, group, severity=severity, who_can_fix=who, advice=advice).code


TASK_PAUSED: Final = _code(
    "task_paused", "Task is paused", "state", "user",
    "Resume the task.",
)  # fmt: skip
TASK_THROTTLED: Final = _code(
    "task_throttled", "Task is throttled", "throttle", "nobody",
    "Wait until the period is over, or release the task from the throttle.", severity="info",
)  # fmt: skip
PARENT_NOT_FINISHED: Final = _code(
    "parent_not_finished", "Parent task has not finished", "input", "nobody",
    "Wait for the parent task; its outputs are the inputs of this one.", severity="info",
)  # fmt: skip
PARENT_FAILED: Final = _code(
    "parent_failed", "Parent task failed", "input", "user",
    "Retry the parent task, or submit this one with other inputs.", severity="error",
)  # fmt: skip
DATASET_UNKNOWN: Final = _code(
    "dataset_unknown", "Dataset is not known", "input", "user",
    "Check the name and the scope of the input dataset.", severity="error",
)  # fmt: skip
DATASET_EMPTY: Final = _code(
    "dataset_empty", "Dataset has no files", "input", "user",
    "Wait until files are added to the dataset, or give another one.",
)  # fmt: skip
INPUT_MISSING: Final = _code(
    "input_missing", "Input files are missing", "input", "user",
    "Make the missing files available again, or allow the task to go on without them.",
)  # fmt: skip
INPUT_NOT_STAGED: Final = _code(
    "input_not_staged", "Input is being staged", "input", "nobody",
    "Wait until the input has been copied from tape.", severity="info",
)  # fmt: skip
INPUT_USED_UP: Final = _code(
    "input_used_up", "All inputs are in jobs or done", "input", "nobody",
    "No new job is needed at the moment.", severity="info",
)  # fmt: skip
