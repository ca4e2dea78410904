"""Classes of queues and of tasks in analysis: how soon a queue starts jobs, how much a user has already. Pure.

A queue is `hi` where jobs of analysis start soon, `lo` where they wait long, `mid` in between. A task is S when it is to
end soon, A when its user runs little on hi queues, C when its user runs much, B in between (JEDI documents on
classification; limits of the analysis brokerage parameters).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Final

from brokerage_app.formulas.quantiles import percentile, student_t
from brokerage_app.policy.configuration import Configuration

HALF_LIFE: Final = timedelta(hours=6)
"""After this time a measured wait counts half."""
HISTORY: Final = timedelta(days=4)
"""Jobs that started earlier are not looked at."""
SITES_VALID: Final = timedelta(minutes=60)
TASKS_VALID: Final = timedelta(minutes=15)
USERS_VALID: Final = timedelta(minutes=20)
HI_WAIT_S: Final = 3600.0
LO_WAIT_S: Final = 10_800.0
HI_PART: Final = 0.33
LO_PART: Final = 0.67
LONG_WAITING: Final = 3
"""From so many jobs that wait longer than the mean a queue is not hi."""
CONFIDENCE: Final = 0.95


class SiteClass(IntEnum):
    HI = 1
    MID = 0
    LO = -1


class TaskClass(IntEnum):
    S = 2
    A = 1
    B = 0
    C = -1


@dataclass(frozen=True, slots=True)
class Waits:
    """Sums over jobs that have started at a queue, each with its weight w: 0.5 ^ (age / HALF_LIFE), and its wait x (s)."""

    w: float = 0.0
    wx: float = 0.0
    wxx: float = 0.0

    @property
    def mean_s(self) -> float | None:
        return self.wx / self.w if self.w > 0 else None

    @property
    def upper_s(self) -> float | None:
        """The wait that 95 % of jobs do not exceed (Student's t, with the sum of weights as number of jobs).

        None where the jobs are too few or too long ago to say: their weights add up to 1 or less.
        """
        mean = self.mean_s
        if mean is None or self.w <= 1:
            return None
        deviation = math.sqrt(max(self.wxx / self.w - mean * mean, 0.0))
        return mean + deviation * student_t(CONFIDENCE, round(self.w - 1, 3) or 0.001)


@dataclass(frozen=True, slots=True)
class SiteWaits:
    """What is known of the waits at one queue; queues of which too little is known are left out, and count as mid.

    upper_s        wait that 95 % of jobs do not exceed
    long_queued    jobs that have waited longer than the mean so far; `long_mean_s` is the mean of what they waited
    active         a job of analysis started in the last 24 h
    grid           the queue is of a grid site: only those give the percentiles
    """

    upper_s: float
    long_queued: int = 0
    long_mean_s: float = 0.0
    active: bool = True
    grid: bool = True


def classify_sites(sites: Mapping[str, SiteWaits]) -> dict[str, SiteClass]:
    """The class of each queue. Waits are compared with an hour, three hours, and what is usual on the grid."""
    uppers = [waits.upper_s for waits in sites.values() if waits.grid]
    low = percentile(uppers, HI_PART) if uppers else 0.0
    high = percentile(uppers, LO_PART) if uppers else 0.0
    return {name: site_class(waits, low_s=low, high_s=high) for name, waits in sites.items()}


def site_class(waits: SiteWaits, *, low_s: float, high_s: float) -> SiteClass:
    """The class of a queue; `low_s` and `high_s` are the 33rd and the 67th percentile of `upper_s` of all."""
    wait = max(waits.upper_s, waits.long_mean_s)
    if wait < max(HI_WAIT_S, low_s) and waits.long_queued < LONG_WAITING and waits.active:
        return SiteClass.HI
    if wait > max(LO_WAIT_S, high_s):
        return SiteClass.LO
    return SiteClass.MID


@dataclass(frozen=True, slots=True)
class TaskClassLimits:
    """
    slots_a          running slots on hi queues up to which a user's tasks are of class A
    slots_b          running slots on hi and mid queues up to which they are of class B
    percent_*        part of a task done from which it is of class S; `remaining_*` jobs that may remain then
    """

    slots_a: float = 1000.0
    slots_b: float = 8000.0
    percent_a: float = 90.0
    percent_b: float = 95.0
    remaining_a: int = 500
    remaining_b: int = 200

    @classmethod
    def from_configuration(cls, configuration: Configuration, *, vo: str = "") -> TaskClassLimits:
        def read(key: str) -> float:
            return float(configuration.get("analy_eval", key, vo=vo))

        return cls(
            slots_a=read("USER_USAGE_THRESHOLD_A"),
            slots_b=read("USER_USAGE_THRESHOLD_B"),
            percent_a=read("PROGRESS_TO_BOOST_A"),
            percent_b=read("PROGRESS_TO_BOOST_B"),
            remaining_a=int(read("MAX_REM_JOBS_TO_BOOST_A")),
            remaining_b=int(read("MAX_REM_JOBS_TO_BOOST_B")),
        )


def user_class(slots_hi: float, slots_mid: float, limits: TaskClassLimits) -> TaskClass:
    """The class of all tasks of a user with so many running slots on hi and on mid queues."""
    if slots_hi <= limits.slots_a:
        return TaskClass.A
    return TaskClass.B if slots_hi + slots_mid <= limits.slots_b else TaskClass.C


def task_class(
    of_user: TaskClass, *, percent_done: float, remaining: int, express: bool, limits: TaskClassLimits
) -> TaskClass:
    """The class of one task: that of its user, or S when it is in the express share or nearly done.

    remaining: jobs that are not done, as far as they can be told; a task with none left is not nearly done.
    """
    if express:
        return TaskClass.S
    if of_user is TaskClass.A:
        nearly = percent_done >= limits.percent_a and 1 <= remaining <= limits.remaining_a
    elif of_user is TaskClass.B:
        nearly = percent_done >= limits.percent_b and 1 <= remaining <= limits.remaining_b
    else:
        nearly = False
    return TaskClass.S if nearly else of_user


def slots_by_class(slots: Iterable[tuple[str, int]], classes: Mapping[str, SiteClass]) -> dict[SiteClass, int]:
    """Running slots (queue, cores) summed by class of the queue; a queue of no class counts as mid."""
    found = dict.fromkeys(SiteClass, 0)
    for queue, cores in slots:
        found[classes.get(queue, SiteClass.MID)] += cores
    return found
