"""How many more jobs may be made now, and why not more.

The queue of not yet running jobs is kept near what the sites can start soon, so that priorities and the state of the
sites still count when a job is made.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokerage_app import codes
from jedisite import refusals


@dataclass(frozen=True, slots=True)
class JobCounts:
    """Jobs of one work queue and resource type. `queued` is assigned + activated + sent + starting."""

    running: int = 0
    queued: int = 0
    defined: int = 0


@dataclass(frozen=True, slots=True)
class ThrottleLimits:
    """Limits in jobs.

    threshold    queued jobs wanted for each running one
    min_queue    queued jobs that are always allowed, so that an idle queue can start
    bunch        most jobs made in one pass
    running_cap  no job is made while more than this run; None is no cap
    queue_cap    no more than this are ever queued; None is no cap
    """

    threshold: float = 2.0
    min_queue: int = 500
    bunch: int = 600
    running_cap: int | None = None
    queue_cap: int | None = None


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many jobs may be made now. `code` and `detail` say what set a limit of 0 and are empty otherwise.

    Raises UnknownRefusalError when the code is not registered.
    """

    max_jobs: int
    code: str = ""
    detail: str = ""

    def __post_init__(self) -> None:
        if self.code:
            refusals.checked(self.code)


def allowance(counts: JobCounts, limits: ThrottleLimits | None = None) -> Allowance:
    """Jobs that may be made now: as many as bring the queue to max(min_queue, threshold x running)."""
    limits = limits or ThrottleLimits()
    waiting = counts.queued + counts.defined
    if limits.running_cap is not None and counts.running > limits.running_cap:
        detail = f"{counts.running} jobs run, the cap is {limits.running_cap}"
        return Allowance(0, codes.THROTTLED_RUNNING_CAP, detail)
    if limits.queue_cap is not None and waiting >= limits.queue_cap:
        detail = f"{waiting} jobs are queued, the cap is {limits.queue_cap}"
        return Allowance(0, codes.THROTTLED_QUEUE_CAP, detail)
    target = max(limits.min_queue, int(limits.threshold * counts.running))
    if waiting >= target:
        detail = f"{waiting} jobs are queued, {target} are wanted with {counts.running} running"
        return Allowance(0, codes.THROTTLED_QUEUED, detail)
    if limits.queue_cap is not None:
        target = min(target, limits.queue_cap)
    return Allowance(min(target - waiting, limits.bunch))
