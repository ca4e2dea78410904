"""How good the network from a site to the nucleus is: a factor of the site's weight between 1 and 2.5.

    weight = q x queued weight + (1 - q) x throughput weight

Nothing that is not known is a reason to refuse a site: it counts as a link of medium quality. The formulas and the plot
behind the steps are those of the JEDI brokerage document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

QUEUE_IMPORTANCE: Final = 0.5
EXPRESS_THRESHOLD: Final = 1.7

BEST: Final = 2.0
WORST: Final = 1.0
LONGEST_CLOSENESS: Final = 11
CLOSENESS_UNKNOWN: Final = 7.7

Steps = tuple[tuple[float, float], ...]
STEPS: Final[Steps] = (
    (200, 2.0),
    (100, 1.9),
    (75, 1.8),
    (50, 1.7),
    (20, 1.5),
    (10, 1.3),
    (2, 1.2),
    (1, 1.1),
)
"""(MB/s, weight): the first step that the throughput is above gives the weight; on or below all of them it is 1."""


@dataclass(frozen=True, slots=True)
class NetworkWeight:
    """The weight and the two parts of it."""

    total: float
    queued: float
    throughput: float


SAME_STORAGE: Final = NetworkWeight(2.5, 2.5, 2.5)
"""The site writes to the storage of the nucleus, so nothing is transferred at all."""


def queued_weight(queued_files: int, cap: int) -> float:
    """2 on an empty link, falling to 1 when `cap` files wait (NQUEUED_SAT_CAP), and 1 beyond."""
    if queued_files <= 0:
        return BEST
    return max(BEST - queued_files / cap, WORST) if cap > 0 else WORST


def throughput_weight(mbps: float | None, closeness: float | None, steps: Steps = STEPS) -> float:
    """From the throughput in MB/s; where that is not known from closeness, 0 (2.0) to 11 (1.0); 1.3 without either.

    A blocked link (closeness -1) counts as the farthest, where a site gets work in spite of it.
    """
    if mbps is not None:
        for above, weight in steps:
            if mbps > above:
                return weight
        return WORST
    distance = CLOSENESS_UNKNOWN if closeness is None else closeness
    if not 0 <= distance <= LONGEST_CLOSENESS:
        distance = LONGEST_CLOSENESS
    return 1 + (LONGEST_CLOSENESS - distance) / LONGEST_CLOSENESS


def most_recent(*mbps: float | None) -> float | None:
    """The first value that is known; give the means of the last hour, day and week in this order."""
    for value in mbps:
        if value is not None:
            return value
    return None


def network_weight(
    *,
    queued_files: int = 0,
    cap: int,
    mbps: float | None = None,
    closeness: float | None = None,
    importance: float = QUEUE_IMPORTANCE,
    same_storage: bool = False,
    steps: Steps = STEPS,
) -> NetworkWeight:
    """The weight of a link with so many files waiting for transfer.

    `importance` is the part of the queued weight, 0 to 1 (NW_QUEUE_IMPORTANCE); values outside are cut. `same_storage`:
    the site writes to the storage of the nucleus.
    """
    if same_storage:
        return SAME_STORAGE
    q = min(max(importance, 0.0), 1.0)
    queued, throughput = queued_weight(queued_files, cap), throughput_weight(mbps, closeness, steps)
    return NetworkWeight(q * queued + (1 - q) * throughput, queued, throughput)


def express_floor(threshold: float = EXPRESS_THRESHOLD, multiplier: float = 1.0) -> float:
    """The network weight that express work asks for at least (NW_THRESHOLD x NW_WEIGHT_MULTIPLIER)."""
    return threshold * multiplier
