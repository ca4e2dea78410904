"""What a task has now of that which an act may change, beside the fields of its form: so that it can be given again."""

from __future__ import annotations

from typing import Any, Final

from tasks_app.domain import words
from tasks_app.domain.units import USUAL_UNITS
from tasks_app.models import Task
from tasks_app.params.acts import NEEDS, Change
from tasks_app.submission.parameter_changes import ATTRIBUTES

UNIT_OF: Final = {
    "ram_count": "ram_unit",
    "cpu_time": "cpu_time_unit",
    "work_disk_count": "work_disk_unit",
    "out_disk_count": "out_disk_unit",
}
"""The attribute that holds the unit of another one; those of others are in the words of their fields."""
OF_EACH: Final = {"ram_count": "job", "work_disk_count": "job", "out_disk_count": "MB of input"}
SIZES: Final = frozenset({"B", "kB", "MB", "GB"})
"""Units that do not say themselves of what they are."""
COLUMNS: Final = {
    (Change.PRIORITY.value, "priority"): "current_priority",
    (Change.SHARE.value, "share"): "gshare",
    **{(Change.NEEDS.value, name): ATTRIBUTES[name] for name in NEEDS},
}


def now_of(act: str, name: str, task: Task) -> str:
    """The unit of a parameter of an act, and what the task has of it; "" for what tasks do not have."""
    column = COLUMNS.get((act, name))
    if column is None:
        return ""
    unit = _unit(task, column)
    return (f"In {unit}. " if unit else "") + f"Now: {_value(getattr(task, column))}."


def _value(value: Any) -> str:
    """As it would be typed into the field."""
    return "nothing is set" if value in (None, "") else str(value)


def _unit(task: Task, column: str) -> str:
    if column not in UNIT_OF:
        return ""
    unit = words.unit(getattr(task, UNIT_OF[column]) or USUAL_UNITS[column])
    return f"{unit} per {OF_EACH[column]}" if unit in SIZES else unit
