"""What a simulation is made of: sites with slots, the tree of shares, and what each share wants over time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from brokerage_app.policy.shares import Share
from brokerage_app.policy.workqueues import IS_PARTITION, QueueRow

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
ENDLESS: Final = math.inf

Demand = Callable[[float], float]
"""Slots that the work which arrives would keep busy, from the time in seconds; ENDLESS is more than there are."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """Endless work between two days, without those in the gap; what is not made into jobs by its end is dropped."""

    start: float
    end: float
    gap: tuple[float, float] = (0.0, 0.0)

    def __call__(self, t: float) -> float:
        day = t / DAY
        return ENDLESS if self.start <= day < self.end and not self.gap[0] <= day < self.gap[1] else 0.0


@dataclass(frozen=True, slots=True)
class SimSite:
    """A site with its slots of one core."""

    name: str
    slots: int
    core_power: float


@dataclass(frozen=True, slots=True)
class SimShare:
    """A leaf of the tree: its demand, its label, and how long its jobs take (mean and spread of the logarithm)."""

    name: str
    demand: Demand
    label: str = "managed"
    mean_job_s: float = 3 * HOUR
    spread: float = 0.5


@dataclass(frozen=True, slots=True)
class World:
    """Everything that is given. `shares` are the rows of the tree or, where `queues` are given instead, these are the work
    queues; `leaves` is what the leaves, or the queues, want.

    Tasks have so many jobs; those of shares whose demand is not endless are `arriving_jobs` large.
    """

    sites: tuple[SimSite, ...]
    shares: tuple[Share, ...]
    leaves: tuple[SimShare, ...]
    days: float = 7.0
    tasks_of_jobs: tuple[int, int] = (200, 2000)
    arriving_jobs: tuple[int, int] = (20, 400)
    queues: tuple[QueueRow, ...] = ()
    changes: tuple[float, ...] = field(default=())
    """Times at which the demand of a share begins or ends."""

    @property
    def rows(self) -> tuple[Share, ...] | tuple[QueueRow, ...]:
        return self.queues or self.shares


def _daily(mean: float, swing: float) -> Demand:
    """Demand, in slots, that is larger by day than by night."""
    return lambda t: mean * (1 + swing * math.sin(2 * math.pi * (t / DAY - 0.25)))


def _bursts(slots: float, every_h: float, for_h: float) -> Demand:
    return lambda t: slots if t % (every_h * HOUR) < for_h * HOUR else 0.0


SHARES: Final = (
    Share("Production", 70),
    Share("MC", 60, parent="Production"),
    Share("MC simul", 75, parent="MC"),
    Share("MC merge", 25, parent="MC"),
    Share("Reprocessing", 40, parent="Production"),
    Share("Analysis", 20),
    Share("User Analysis", 90, parent="Analysis"),
    Share("Group Analysis", 10, parent="Analysis"),
    Share("Express", 10),
)


QUEUES: Final = (
    QueueRow(1, "MC", "managed", "atlas", share=60, partition_id=IS_PARTITION),
    QueueRow(2, "simul", "managed", "atlas", share=75, partition_id=1),
    QueueRow(3, "merge", "managed", "atlas", share=25, partition_id=1, stretchable=True),
    QueueRow(4, "reprocessing", "managed", "atlas", share=20),
    QueueRow(5, "group", "managed", "atlas", share=15, stretchable=True),
    QueueRow(6, "express", "managed", "atlas", share=5),
)


def world_of_queues(rng: Random, *, sites: int = 50, slots: int = 20_000, days: float = 7.0) -> World:
    """The same sites with work queues in place of the tree: a partition, and queues that stretch in it and beside it.

    Simulation pauses on the third day, reprocessing comes on the second and ends on the sixth, express work comes in bursts.
    """
    grid = _sites(rng, sites, slots)
    off = (2.0, 3.0)
    leaves = (
        SimShare("simul", Campaign(0.0, days, gap=off), mean_job_s=2 * HOUR),
        SimShare("merge", Campaign(0.0, days), mean_job_s=HOUR),
        SimShare("reprocessing", Campaign(1.0, 5.0), mean_job_s=2 * HOUR),
        SimShare("group", Campaign(0.0, days), mean_job_s=2 * HOUR),
        SimShare("express", _bursts(0.04 * slots, 36, 14), mean_job_s=HOUR),
    )
    changes = tuple(sorted({0.0, DAY, 5 * DAY, off[0] * DAY, off[1] * DAY, *_of_bursts(days)}))
    return World(grid, (), leaves, days, queues=QUEUES, changes=changes)


def _of_bursts(days: float) -> list[float]:
    """The times at which bursts begin and end."""
    return [h * HOUR for start in range(0, int(days * 24), 36) for h in (start, start + 14)]


def _sites(rng: Random, sites: int, slots: int) -> tuple[SimSite, ...]:
    """Sites of very different size."""
    raw = [math.exp(rng.gauss(0, 0.9)) for _ in range(sites)]
    sizes = [max(20, round(slots * part / sum(raw))) for part in raw]
    sizes[sizes.index(max(sizes))] += slots - sum(sizes)
    width = len(str(sites))
    return tuple(
        SimSite(f"SITE_{n:0{width}}", size, round(rng.uniform(8, 16), 1)) for n, size in enumerate(sizes, start=1)
    )


def usual_world(rng: Random, *, sites: int = 50, slots: int = 20_000, days: float = 7.0) -> World:
    """Sites of very different size, six shares: some always have work, others come and go.

    Simulation has endless work. Merging pauses on the third day, reprocessing comes on the second and ends on the sixth,
    users follow the day, groups want more than their small part, and express work comes in bursts.
    """
    grid = _sites(rng, sites, slots)
    merge_off = (2.0, 3.0)
    leaves = (
        SimShare("MC simul", Campaign(0.0, days), mean_job_s=5 * HOUR),
        SimShare("MC merge", Campaign(0.0, days, gap=merge_off), mean_job_s=HOUR),
        SimShare("Reprocessing", Campaign(1.0, 5.0), mean_job_s=4 * HOUR),
        SimShare("User Analysis", _daily(0.15 * slots, 0.5), label="user", mean_job_s=1.5 * HOUR),
        SimShare("Group Analysis", Campaign(0.0, days), label="user", mean_job_s=2 * HOUR),
        SimShare("Express", _bursts(0.06 * slots, 36, 14), mean_job_s=HOUR),
    )
    changes = tuple(sorted({0.0, DAY, 5 * DAY, merge_off[0] * DAY, merge_off[1] * DAY, *_of_bursts(days)}))
    return World(grid, SHARES, leaves, days, changes=changes)
