"""The resource type of a task, by the table of this installation."""

from __future__ import annotations

from brokerage_app.models import ResourceType as Row
from brokerage_app.resource_types import DEFAULT_TABLE, ResourceType, type_of_task


def resource_table() -> tuple[ResourceType, ...]:
    """The rows in their order; what a new installation starts with while the table is empty."""
    names = ("name", "min_cores", "max_cores", "min_ram_per_core_mb", "max_ram_per_core_mb")
    rows = Row.objects.order_by("position", "name").values_list(*names)
    return tuple(ResourceType(*row) for row in rows) or DEFAULT_TABLE


def resource_type(cores: int | None, ram: int | None, unit: str | None, base_mb: int | None) -> str:
    """The type for these columns of a task. Raises ValueError for an unknown unit of memory."""
    return type_of_task(cores, ram or 0, unit or "MB", base_mb=base_mb or 0, table=resource_table())
