"""Numbers that several decisions need: percentiles, and CPU time with the unit that fits. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

SAFETY: Final = 1.5
"""The safety factor of CPU time and walltime."""
SMALL_CPU_TIME: Final = 10
"""Below this many HS06 seconds an event, CPU time is stored in thousandths."""
SHORTEST_TOLD_S: Final = 10
"""CPU time is told in whole seconds: of shorter jobs (walltime times cores) it does not say how well they used their cores."""
SHORTEST_UNUSED_S: Final = 100
"""The same for jobs of which it is told as 0, which means less than a second."""
TELLS_EFFICIENCY: Final = (
    f"{{cpu}} IS NOT NULL AND {{core_s}} >= CASE WHEN {{cpu}} < 1 THEN {SHORTEST_UNUSED_S} ELSE {SHORTEST_TOLD_S} END"
)
"""`tells_efficiency` as SQL on the expressions `cpu` and `core_s`."""
JOB_SCORE_HOURS: Final = """extract(epoch FROM j.endtime - j.starttime) / 3600 * coalesce(j.actualcorecount, j.corecount, 1)
    * coalesce(q.core_power, 10)"""
"""HS23 hours of a job `j` at its queue `q` as SQL: its time, its cores and the power of one."""
MOST: Final = 999_999_999
"""Largest number that the tasks' columns hold."""
USUAL_UNITS: Final = {"ram_count": "MB", "cpu_time": "HS06sPerEvent", "out_disk_count": "kB", "work_disk_count": "MB"}
"""Units of a task's numbers where it names none, by its attributes."""


def tells_efficiency(cpu_s: float | None, core_s: float) -> bool:
    """Whether CPU time in whole seconds says how well a job used its cores for so many seconds, cores times walltime."""
    return cpu_s is not None and core_s >= (SHORTEST_UNUSED_S if cpu_s < 1 else SHORTEST_TOLD_S)


def percentile(values: Sequence[float], rank: float) -> float:
    """The `rank`-th percentile (0 to 100), by linear interpolation between the sorted neighbours of (n − 1) × rank.

    Raises ValueError without values and for a rank outside 0 to 100.
    """
    if not values or not 0 <= rank <= 100:
        raise ValueError(f"no {rank:g}th percentile of {len(values)} values")
    ordered = sorted(values)
    place = (len(ordered) - 1) * rank / 100
    below = math.floor(place)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    return min(low + (high - low) * (place - below), high)


def event_cpu_time(hs06s_per_event: float, unit: str = "HS06sPerEvent") -> tuple[int, str]:
    """CPU time of an event × 1.5, rounded up, with its unit: small values become `mHS06sPerEvent` (thousandths).

    The source is the HS06sPerEvent section of the JEDI document; the thousandths are the running system's.
    """
    value = hs06s_per_event * SAFETY
    if value < SMALL_CPU_TIME:
        return math.ceil(round(value * 1000, 6)), "m" + unit
    return math.ceil(round(min(value, MOST), 6)), unit
