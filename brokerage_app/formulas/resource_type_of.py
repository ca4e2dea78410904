"""Which resource type a task or a job has."""

from __future__ import annotations

from collections.abc import Iterable

from brokerage_app.formulas.memory import cores_for_typing, memory_per_core_mb
from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE, UNDEFINED, ResourceType


def type_of(cores: int, memory_per_core_mb: int, table: Iterable[ResourceType] = DEFAULT_TABLE) -> str:
    """Name of the first row that contains both values, in the order of the table; `Undefined` when none does."""
    return next((row.name for row in table if row.contains(cores, memory_per_core_mb)), UNDEFINED)


def type_of_task(
    cores: int | None, ram: int, unit: str, *, base_mb: int = 0, table: Iterable[ResourceType] = DEFAULT_TABLE
) -> str:
    """Resource type of a task from its `coreCount` (None: 1, 0: 8), `ramCount`, `ramUnit` and `baseRamCount` (MB)."""
    per_core = memory_per_core_mb(ram, unit, base_mb=base_mb, cores=cores)
    return type_of(cores_for_typing(cores), per_core, table)


def type_of_job(cores: int, memory_mb: int, table: Iterable[ResourceType] = DEFAULT_TABLE) -> str:
    """Resource type of a job from its cores and its whole memory (MB), which is compensated already."""
    count = max(cores, 1)
    return type_of(count, round(memory_mb / count), table)
