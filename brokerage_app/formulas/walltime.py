"""Expected walltime of one job.

Units of a task's `cpuTimeUnit`: `HS06sPerEvent` and `mHS06sPerEvent` (thousandth), `HS06sPerEventFixed` and
`mHS06sPerEventFixed` (the same, never changed by scouts). Core power is HS06 per core.

    walltime_s = cpu_time x events / (cores x core_power x efficiency) + base

The formula and the rule for an efficiency of zero are those of JEDI's brokerage. Whether a job fits in a queue is
tested on the other side of the formula, with the CPU time that the queue's time limit gives:

    cpu_time x events > (maxtime - base) x cores x core_power x efficiency    is too long
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip

LONGEST_S: Final = 2**31 - 1
WEAKEST_CORE: Final = 0.01
DAY_S: Final = 86400
CPU_UNIT: Final = "HS06 s"
WORTH_SAYING: Final = 10
"""The part of a time limit, one in so many, from which on the base of a walltime is said."""
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
    power = max(cores, 1) * _known(core_power) * efficiency_percent / 100
    return math.ceil(min(cpu_hs06s / power, LONGEST_S)) + base_s


def walltime_at(needs: TaskNeeds, site: SiteView) -> int:
    """Expected walltime (s) of a task's job at a site; 0 when it is not known."""
    if needs.cpu_hs06s <= 0:
        return needs.walltime_s
    return expected_walltime_s(
        needs.cpu_hs06s,
        cores=needs.cores_at(site),
        core_power=site.core_power,
        efficiency_percent=needs.cpu_efficiency_percent,
        base_s=needs.base_walltime_s,
    )


def _known(core_power: float) -> float:
    return core_power if core_power >= WEAKEST_CORE else 10.0


@dataclass(frozen=True, slots=True)
class WalltimeNeed:
    """The time of one job: `cpu_hs06s` or `wall_s`, whichever the task states; with neither it is not known.

    cpu_hs06s         CPU time in HS06 seconds of the smallest job
    wall_s            walltime on one core, for tasks whose CPU time has no HS06 unit: walltime x effective MB of input
    least_cpu_hs06s   of a task whose jobs take as many events as fit: CPU time of the fewest events that a job may have
    most_cpu_hs06s    and of the most that lie together
    """

    cpu_hs06s: float | None = None
    wall_s: float | None = None
    base_s: int = 0
    efficiency_percent: int = 90
    least_cpu_hs06s: float | None = None
    most_cpu_hs06s: float | None = None

    @property
    def is_known(self) -> bool:
        return self.cpu_hs06s is not None or self.wall_s is not None


def is_undefined(
    walltime: float | None, walltime_unit: str | None, cpu_time: float | None, cpu_time_unit: str | None
) -> bool:
    """Whether a task says nothing of how long its jobs run; a CPU time of 0 says that they run for the base alone."""
    if cpu_time_unit:
        return cpu_time is None
    return walltime is None and not walltime_unit


def is_ineffective(
    walltime: float | None, walltime_unit: str | None, cpu_time: float | None, cpu_time_unit: str | None
) -> bool:
    """Whether a walltime changes nothing on jobs whose events are known, since their time follows from the CPU time.

    One with a unit is for each MB of input and limits how much of it a job gets. A negative one is no time at all.
    """
    return bool(walltime and walltime > 0 and not walltime_unit and cpu_time and cpu_time_unit)


def capacity_hs06s(limit_s: int, *, cores: int, core_power: float, efficiency_percent: int, base_s: int = 0) -> int:
    """CPU time (HS06 seconds, whole) that a time limit (s) leaves for a job."""
    return int((limit_s - base_s) * max(cores, 1) * _known(core_power) * efficiency_percent / 100)


def too_long(need: WalltimeNeed | int, max_s: int, *, cores: int, core_power: float, min_s: int = 0) -> Skip | None:
    """None when a job is done within a queue's longest time (s; 0 is no limit, as is a time that is not known).

    At queues with a shortest time (`min_s`) jobs of a task that takes as many events as fit need only have the fewest.
    """
    if max_s <= 0:
        return None
    if isinstance(need, int):
        says = "needs {} s, the site allows {} s"
        return Skip("", codes.SHORT_WALLTIME, says, (need, max_s)) if need > max_s else None
    cpu = need.cpu_hs06s
    if min_s > 0 and need.least_cpu_hs06s is not None:
        cpu = need.least_cpu_hs06s
    asked, given, unit = _compared(need, cpu, max_s, cores, core_power)
    if asked is None or asked <= given:
        return None
    says = "needs {:.0f}, the site gives {} {} in {} s"
    values: tuple[object, ...] = (asked, max(given, 0), unit, max_s)
    if unit == CPU_UNIT and need.base_s * WORTH_SAYING >= max_s:
        says, values = f"{says}, {{}} s of which are the task's baseWalltime", (*values, min(need.base_s, max_s))
    return Skip("", codes.SHORT_WALLTIME, says, values)


def too_short(need: WalltimeNeed | int, min_s: int, *, cores: int, core_power: float) -> Skip | None:
    """None when a job runs for a queue's shortest time (s; 0 is no limit) at least; a time that is not known does not."""
    if min_s <= 0:
        return None
    if isinstance(need, int):
        says = "needs {} s, the site requires at least {} s"
        return Skip("", codes.LONG_WALLTIME, says, (need, min_s)) if need < min_s else None
    cpu = need.cpu_hs06s
    if need.least_cpu_hs06s is not None:
        cpu = max(need.least_cpu_hs06s, need.most_cpu_hs06s or 0)
    asked, given, unit = _compared(need, cpu, min_s, cores, core_power)
    if asked is None:
        return Skip("", codes.LONG_WALLTIME, "its time is not known, the site requires at least {} s", (min_s,))
    if asked >= given:
        return None
    says = "needs {:.0f}, the site requires at least {} {} in {} s"
    return Skip("", codes.LONG_WALLTIME, says, (asked, given, unit, min_s))


def _compared(
    need: WalltimeNeed, cpu: float | None, limit_s: int, cores: int, core_power: float
) -> tuple[float | None, int, str]:
    """What is asked, what a time limit gives, and their unit; the first is None where nothing is known."""
    if cpu is None:
        return need.wall_s, limit_s * max(cores, 1), "core seconds"
    efficiency, base = need.efficiency_percent, need.base_s
    if efficiency <= 0:
        return base, limit_s, "s"
    given = capacity_hs06s(limit_s, cores=cores, core_power=core_power, efficiency_percent=efficiency, base_s=base)
    return cpu, given, CPU_UNIT
