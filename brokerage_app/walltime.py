"""Expected walltime of one job.

Units of a task's `cpuTimeUnit`: `HS06sPerEvent` and `mHS06sPerEvent` (thousandth), `HS06sPerEventFixed` and
`mHS06sPerEventFixed` (the same, never changed by scouts). Core power is HS06 per core.

    walltime_s = cpu_time x events / (cores x core_power x efficiency) + base

The formula and the rule for an efficiency of zero are those of JEDI's brokerage.
"""

from __future__ import annotations

import math
from typing import Final

LONGEST_S: Final = 2**31 - 1
WEAKEST_CORE: Final = 0.01
_PER_EVENT = ("HS06sPerEvent", "HS06sPerEventFixed")


def hs06s_per_event(cpu_time: float, unit: str) -> float:
    """CPU time of one event in HS06 seconds. Raises ValueError for a unit that does not exist; empty means HS06s."""
    plain = unit or _PER_EVENT[0]
    scale = 1.0
    if plain.startswith("m"):
        plain, scale = plain[1:], 0.001
    if plain not in _PER_EVENT:
        raise ValueError(f"CPU time unit {unit!r} is not one of {', '.join(_PER_EVENT)}, with or without a leading m")
    return cpu_time * scale


def expected_walltime_s(
    cpu_hs06s: float,
    *,
    cores: int = 1,
    core_power: float = 10.0,
    efficiency_percent: int = 90,
    base_s: int = 0,
) -> int:
    """Walltime (s) of a job that needs `cpu_hs06s` in all, rounded up.

    An efficiency of 0 means that CPU time says nothing about walltime, so only the base remains. A core power that
    is not known (0, or too small to be one) counts as 10, and fewer than one core as one. The part that follows from
    CPU time is LONGEST_S at most.
    """
    if efficiency_percent <= 0 or cpu_hs06s <= 0:
        return base_s
    power = max(cores, 1) * (core_power if core_power >= WEAKEST_CORE else 10.0) * efficiency_percent / 100
    return math.ceil(min(cpu_hs06s / power, LONGEST_S)) + base_s
