"""Resource types: a name for "so many cores with so much memory per core"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

UNDEFINED: Final = "Undefined"
HIGH_MEMORY_ABOVE_MB: Final = 2000


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One row of the table. Limits are inclusive; None is open. Memory in MB per core."""

    name: str
    min_cores: int | None = None
    max_cores: int | None = None
    min_memory_per_core_mb: int | None = None
    max_memory_per_core_mb: int | None = None

    def contains(self, cores: int, memory_per_core_mb: int) -> bool:
        return _within(cores, self.min_cores, self.max_cores) and _within(
            memory_per_core_mb, self.min_memory_per_core_mb, self.max_memory_per_core_mb
        )

    @property
    def is_high_memory(self) -> bool:
        limit = self.max_memory_per_core_mb
        return limit is None or limit > HIGH_MEMORY_ABOVE_MB

    @property
    def is_single_core(self) -> bool:
        return self.min_cores == 1 and self.max_cores == 1


DEFAULT_TABLE: Final = (
    ResourceType("SCORE", 1, 1, 0, 2000),
    ResourceType("SCORE_HIMEM", 1, 1, 2001, None),
    ResourceType("MCORE", 2, None, 0, 2000),
    ResourceType("MCORE_HIMEM", 2, None, 2001, None),
)
"""What a new installation starts with; the table of an installation is passed in."""


def _within(value: int, low: int | None, high: int | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)
