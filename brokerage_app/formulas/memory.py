"""Memory of one job, from what the task asks for.

Units of a task's `ramUnit`: `MB` (for the whole job), `MBPerCore` and `MBPerCoreFixed` (for each core; *Fixed*
only says that scouts never change it). All values are in MB (2**20 bytes).
"""

from __future__ import annotations

from typing import Final

from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.skip import Skip, Words

UNITS: Final = ("MB", "MBPerCore", "MBPerCoreFixed")
COMPENSATION_PERCENT: Final = 90
"""Sites allow a little more than they state, so production asks for nine tenths of the declared memory."""
CORES_OF_ANY: Final = 8
"""`coreCount` 0 means "any number of cores"; for memory and resource types it counts as eight."""


def is_per_core(unit: str) -> bool:
    """Whether a `ramUnit` is for each core. Raises ValueError for a unit that does not exist; empty means MB."""
    if unit and unit not in UNITS:
        raise ValueError(f"memory unit {unit!r} is not one of {', '.join(UNITS)}")
    return unit in UNITS[1:]


def production_need_mb(ram: int, unit: str, *, base_mb: int = 0, cores: int = 1, merging: bool = False) -> int:
    """Memory (MB) that a production job asks of a slot with `cores` cores (fewer than one count as one).

    0.9 x (base + ram x cores), and 0.9 x ram for a plain unit. Merge jobs have one core and no base.
    """
    if merging or not is_per_core(unit):
        return _compensated(ram)
    return _compensated(base_mb + ram * max(cores, 1))


def analysis_need_mb(ram: int, unit: str, *, base_mb: int = 0, cores: int = 1, merging: bool = False) -> int:
    """The same for an analysis job, for which the base counts with a plain unit too."""
    if merging:
        return _compensated(ram)
    return _compensated(base_mb + (ram * max(cores, 1) if is_per_core(unit) else ram))


def _compensated(mb: int) -> int:
    return mb * COMPENSATION_PERCENT // 100


def outside(need_mb: int, least_mb: int, most_mb: int, how: Words = ("", ())) -> Skip | None:
    """None when a need lies within the limits of a slot, both inclusive; a limit of 0 is none, a need of 0 fits.

    `how`: what is said of how the need comes about.
    """
    if need_mb <= 0:
        return None
    more, values = how
    if most_mb and need_mb > most_mb:
        return Skip("", codes.LOW_MEMORY, f"needs {{}} MB, the site gives {{}} MB{more}", (need_mb, most_mb, *values))
    if least_mb and need_mb < least_mb:
        says = f"needs {{}} MB, the site requires at least {{}} MB{more}"
        return Skip("", codes.HIGH_MEMORY, says, (need_mb, least_mb, *values))
    return None


def memory_per_core_mb(ram: int, unit: str, *, base_mb: int = 0, cores: int | None = 1) -> int:
    """Memory per core (MB) by which a task gets its resource type: compensated and truncated.

    `cores` None counts as 1 and 0 ("any") as 8.
    """
    count = cores_for_typing(cores)
    total = ram * count + base_mb if is_per_core(unit) else ram + base_mb
    return total * COMPENSATION_PERCENT // (100 * count)


def cores_for_typing(cores: int | None) -> int:
    """Number of cores that stands for a task's `coreCount` (None: 1, 0: 8)."""
    if cores is None:
        return 1
    return cores if cores > 0 else CORES_OF_ANY
