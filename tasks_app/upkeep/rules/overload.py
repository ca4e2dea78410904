"""Queues that hold more jobs of a share than they can start soon: the excess is brokered again. Pure.

Fast rebrokerage of the JEDI brokerage document. Jobs of work queues that keep their own counts (Resource) are left out by
who counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.domain import job_refusal_codes
from tasks_app.domain.killcodes import Kill
from tasks_app.domain.reasons import Reason

_HAIR: Final = 1e-6
"""What products of limits may be off by rounding."""


@dataclass(frozen=True, slots=True)
class ShareAtQueue:
    """Jobs of one global share at one queue, and those of the share queued at all queues.

    slots_set   the queue is told how many slots to have, so that it is meant to hold many queued jobs
    """

    share: str
    queue: str
    queued: int
    running: int
    queued_everywhere: int
    slots_set: bool = False


@dataclass(frozen=True, slots=True)
class FastLimits:
    """FAST_REBRO_THRESHOLD_NQNR_RATIO, _NQUEUE_FRAC (0 to 1) and _NQUEUE_<share>; a share without the last has none."""

    queued_to_running: float = 3.0
    part_of_share: float = 0.3
    most_queued: int | None = None


@dataclass(frozen=True, slots=True)
class FastRebrokerage:
    """So many queued jobs, the oldest first, are to be brokered again."""

    share: str
    queue: str
    excess: int
    reason: Reason
    kill: Kill = Kill.FAST_REBROKERAGE


def fast_rebrokerage(seen: ShareAtQueue, limits: FastLimits) -> FastRebrokerage | None:
    """Take back the jobs that a queue holds in excess of all three limits, if it is over all of them.

    Only for shares that define their own limit on queued jobs, and not at queues that are told their number of slots.
    """
    if limits.most_queued is None or seen.slots_set:
        return None
    by_running = limits.queued_to_running * seen.running
    by_share = limits.part_of_share * seen.queued_everywhere
    over = seen.queued - max(by_running, limits.most_queued, by_share)
    if over <= _HAIR:
        return None
    excess = math.ceil(over - _HAIR)
    queued = plural(seen.queued, f"job of {seen.share} is", f"jobs of {seen.share} are")
    detail = (
        f"{queued} queued at {seen.queue} with {seen.running} running; "
        f"{limits.queued_to_running:g} x {seen.running}, {limits.most_queued} and {limits.part_of_share:g} x "
        f"{seen.queued_everywhere} are the limits, so {plural(excess, 'is', 'are')} made again"
    )
    return FastRebrokerage(seen.share, seen.queue, excess, Reason(job_refusal_codes.JOB_QUEUE_OVERLOADED, detail))
