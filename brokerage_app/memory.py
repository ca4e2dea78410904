"""Memory of one job, from what the task asks for.

Units of a task's `ramUnit`: `MB` (for the whole job), `MBPerCore` and `MBPerCoreFixed` (for each core; *Fixed*
only says that scouts never change it). All values are in MB (2**20 bytes).
"""

from __future__ import annotations

from typing import Final

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


def job_memory_mb(ram: int, unit: str, *, base_mb: int = 0, cores: int = 1) -> int:
    """Memory (MB) of one job on `cores` cores, as the generic job broker counts it.

    Per-core units: ram x cores + base. Plain MB: ram alone. No compensation.
    """
    if is_per_core(unit):
        return ram * max(cores, 1) + base_mb
    return ram


def compensated_job_memory_mb(ram: int, unit: str, *, base_mb: int = 0, cores: int = 1) -> int:
    """Memory (MB) of one job with the compensation of production brokerage, base included for both kinds of unit."""
    total = ram * max(cores, 1) if is_per_core(unit) else ram
    return (total + base_mb) * COMPENSATION_PERCENT // 100


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
