"""The resource type of a task, by the table of this installation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from brokerage_app.formulas.resource_type_of import type_of_task
from brokerage_app.models import ResourceType as Row
from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE, ResourceType
from tasks_app.models import Task

DECISIVE: Final = ("core_count", "ram_count", "ram_unit", "base_ram_count")
"""Attributes of a task that its type follows from."""


def resource_table() -> tuple[ResourceType, ...]:
    """The rows in their order; what a new installation starts with while the table is empty."""
    names = ("name", "min_cores", "max_cores", "min_ram_per_core_mb", "max_ram_per_core_mb")
    rows = Row.objects.order_by("position", "name").values_list(*names)
    return tuple(ResourceType(*row) for row in rows) or DEFAULT_TABLE


def resource_type(cores: int | None, ram: int | None, unit: str | None, base_mb: int | None) -> str:
    """The type for these columns of a task. Raises ValueError for an unknown unit of memory."""
    return type_of_task(cores, ram or 0, unit or "MB", base_mb=base_mb or 0, table=resource_table())


def with_type(task: Task, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes that change on a task, with its type where that follows from one of them.

    Raises ValueError for an unknown unit of memory.
    """
    if not changes.keys() & set(DECISIVE):
        return dict(changes)
    return {**changes, "resource_type": resource_type(*(changes.get(name, getattr(task, name)) for name in DECISIVE))}
