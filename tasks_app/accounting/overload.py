"""Queues that hold more jobs of a share than they can start soon: the excess is brokered again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tasks_app import codes
from tasks_app.accounting.killcodes import Kill
from tasks_app.accounting.reasons import Reason


@dataclass(frozen=True, slots=True)
class ShareAtQueue:
    """Jobs of one global share at one queue, and those of the share queued at all queues.

    slots_set   the queue has a fixed number of slots, so that it is meant to hold many queued jobs
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
    """So many queued jobs, the latest first, are to be brokered again."""

    share: str
    queue: str
    excess: int
    reason: Reason
    kill: Kill = Kill.FAST_REBROKERAGE


def fast_rebrokerage(seen: ShareAtQueue, limits: FastLimits) -> FastRebrokerage | None:
    """Take back the jobs that a queue holds in excess: those beyond the largest of the three limits.

    Only for shares that define their own limit on queued jobs, and not at queues with a fixed number of slots.
    """
    if limits.most_queued is None or seen.slots_set:
        return None
    kept = int(
        max(
            limits.most_queued,
            limits.queued_to_running * seen.running,
            limits.part_of_share * seen.queued_everywhere,
        )
    )
    excess = seen.queued - kept
    if excess <= 0:
        return None
    detail = (
        f"{seen.queued} jobs of {seen.share} are queued at {seen.queue} with {seen.running} running; {kept} may stay"
    )
    return FastRebrokerage(seen.share, seen.queue, excess, Reason(codes.JOB_QUEUE_OVERLOADED, detail))
