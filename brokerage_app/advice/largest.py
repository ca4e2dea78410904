"""The highest limits of slots that are advised. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MOST_OF: Final[Mapping[str, int]] = {
    "max_memory_mb": 8 * 1024 * 1024,
    "min_memory_mb": 8 * 1024 * 1024,
    "max_walltime_s": 14 * 86_400,
    "min_walltime_s": 14 * 86_400,
    "work_dir_mb": 100 * 1024 * 1024,
    "core_count": 1024,
}
"""What a slot of any real site has at most. A limit beyond is no advice: the task is described wrongly."""
MOST_A_CORE: Final[Mapping[str, int]] = dict.fromkeys(("max_memory_mb", "min_memory_mb"), 64 * 1024)
"""And for each core of the slot, where it has a number of cores."""


def most_of(field: str, cores: int) -> int:
    """The highest limit to advise for a slot with this number of cores; 0 or less: any number of cores."""
    most = MOST_OF[field]
    return min(most, MOST_A_CORE[field] * cores) if cores > 0 and field in MOST_A_CORE else most
