"""Rules on how full a site is."""

from __future__ import annotations

from typing import Final

from brokerage_app import codes
from brokerage_app.case import Case
from brokerage_app.rules import Filter
from brokerage_app.snapshot import SiteView
from brokerage_app.verdict import Skip

MIN_QUEUE: Final = 20
QUEUED_TO_RUNNING: Final = 2


def queue_cap(running: int, min_queue: int = MIN_QUEUE) -> int:
    """How many jobs may be queued at a site that runs so many: twice as many, and never fewer than `min_queue`."""
    return max(min_queue, QUEUED_TO_RUNNING * running)


def room_at(site: SiteView, min_queue: int = MIN_QUEUE) -> int:
    """How many more jobs may be queued at a site."""
    return max(0, queue_cap(site.running, min_queue) - site.queued - site.defined)


def queue_not_full(min_queue: int = MIN_QUEUE) -> Filter:
    """The rule that a site with enough queued jobs (defined ones included) gets no more."""

    def queue_full(case: Case, site: SiteView) -> Skip | None:
        cap, queued = queue_cap(site.running, min_queue), site.queued + site.defined
        if queued < cap:
            return None
        return Skip(
            site.name, codes.QUEUE_FULL, "{} jobs are queued, {} may be with {} running", (queued, cap, site.running)
        )

    return queue_full
