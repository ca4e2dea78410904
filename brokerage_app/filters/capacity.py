"""Rules on how full a site is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from brokerage_app.cases.case import Case, GridCase
from brokerage_app.filters.asking import Filter
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.snapshot import Grid, SiteView
from brokerage_app.vocabulary.verdict import Choice, Skip

if TYPE_CHECKING:
    from brokerage_app.brokers.generic import GenericCase
    from brokerage_app.cases.production_case import ProductionCase

MIN_QUEUE: Final = 20
QUEUED_TO_RUNNING: Final = 2
ALWAYS: Final = 5
"""Jobs that a user may always have queued at a site that has places, however many users there are."""


def queue_cap(running: int, min_queue: int = MIN_QUEUE) -> int:
    """How many jobs may be queued at a site that runs so many: twice as many, and never fewer than `min_queue`."""
    return max(min_queue, QUEUED_TO_RUNNING * running)


def room_at(site: SiteView, min_queue: int = MIN_QUEUE) -> int:
    """How many more jobs may be queued at a site."""
    return max(0, queue_cap(site.running, min_queue) - site.queued - site.defined)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Users who want places in queues, and the queued jobs of the one for whom the broker decides, by queue."""

    users: int = 1
    queued: Mapping[str, int] = field(default_factory=dict)

    def room_at(self, site: SiteView, min_queue: int = MIN_QUEUE) -> int:
        """How many more jobs of the user may be queued at a site, as far as there are places."""
        part = part_of(queue_cap(site.running, min_queue), self.users)
        return max(0, part - self.queued.get(site.queue, 0))

    def on(self, grid: Grid, usual: Grid) -> Crowd:
        """The same where fewer jobs wait at a queue than in the usual grid: of the user no more than of all.

        Elsewhere the usual grid may have been read before the user's jobs were counted.
        """

        def waiting(grid: Grid, queue: str) -> int:
            return grid.sites[queue].queued + grid.sites[queue].defined if queue in grid.sites else 0

        fewer = {
            queue: min(jobs, now) if (now := waiting(grid, queue)) < waiting(usual, queue) else jobs
            for queue, jobs in self.queued.items()
        }
        return replace(self, queued=fewer)


ALONE: Final = Crowd()


def room_of(choice: Choice, site: SiteView, min_queue: int, crowd: Crowd) -> int:
    """How many more jobs of a task a chosen site takes: as the broker says, or by what waits there now."""
    if choice.cap is not None:
        return max(0, choice.cap - choice.queued)
    return min(room_at(site, min_queue), crowd.room_at(site, min_queue))


def part_of(places: int, users: int) -> int:
    """How many of the places in a queue one of so many users may have: an even part, and always a few.

    A user who is alone may have all of them.
    """
    return places if users < 2 else max(-(-places // users), min(places, ALWAYS))


def user_has_part(min_queue: int = MIN_QUEUE) -> Filter:
    """The rule that users who have their part of the places in a queue leave the others to those who have less."""

    def user_queue_long(case: GenericCase, site: SiteView) -> Skip | None:
        if case.crowd.users < 2 or case.crowd.room_at(site, min_queue):
            return None
        part = part_of(queue_cap(site.running, min_queue), case.crowd.users)
        return Skip(
            site.name,
            codes.USER_QUEUE_LONG,
            "{:job of the user is|jobs of the user are} queued, {} may be while {} users want places",
            (case.crowd.queued.get(site.queue, 0), part, case.crowd.users),
        )

    return user_queue_long


def queue_not_full(min_queue: int = MIN_QUEUE) -> Filter:
    """The rule that a site with enough queued jobs (defined ones included) gets no more."""

    def queue_full(case: Case, site: SiteView) -> Skip | None:
        cap, queued = queue_cap(site.running, min_queue), site.queued + site.defined
        if queued < cap:
            return None
        return Skip(
            site.name,
            codes.QUEUE_FULL,
            "{:job is|jobs are} queued, {} may be with {} running",
            (queued, cap, site.running),
        )

    return queue_full


TRANSFERRING: Final = 2000


def not_too_many_transferring(case: GridCase, site: SiteView) -> Skip | None:
    """Not too many outputs are being transferred, without those that wait for nuclei which take no files.

    At most the queue's own limit (2000 where it states none), or twice the running jobs.
    """
    counts = case.totals(site)
    limit = site.transferring_limit or TRANSFERRING
    if counts.transferring <= limit or case.is_of_nucleus(site):
        return None
    stuck = sum(jobs for nucleus, jobs in site.transferring_to.items() if nucleus in case.nuclei_down)
    most, found = max(limit, QUEUED_TO_RUNNING * counts.running), counts.transferring - stuck
    if found <= most:
        return None
    return Skip(
        site.name,
        codes.TOO_MANY_TRANSFERRING,
        "at most {:job|jobs} may be transferring, {:is|are} with {} running",
        (most, found, counts.running),
    )


def not_locked(case: ProductionCase, site: SiteView) -> Skip | None:
    if site.name not in case.locked and site.queue not in case.locked:
        return None
    return Skip(site.name, codes.LOCKED, "another broker has locked {}", (site.queue,))


def under_cap(case: ProductionCase, site: SiteView) -> Skip | None:
    """Not more than twice as many jobs wait as run, with the defined and assigned ones and without.

    Where the input is there, jobs that are only assigned do not count: they wait for transfers that the new ones do not need.
    """
    found = case.weighed(site)
    waiting, cap = found.queued + found.defined, found.cap
    if waiting <= cap:
        return None
    return Skip(
        site.name,
        codes.QUEUE_FULL,
        "at most {} may be queued, {:is|are} with {} running",
        (cap, waiting, found.running),
    )


def under_cap_of_type(case: ProductionCase, site: SiteView) -> Skip | None:
    """The same for the jobs of the resource type."""
    kind = case.type_at(site)
    if kind is None:
        return None
    weighed, counts = case.weighed(site), case.counts_of_type(site, kind)
    waiting = counts.defined + counts.activated + counts.starting + (0 if weighed.is_local else counts.assigned)
    floor = case.settings.queue_floor
    if waiting <= floor:
        return None
    # Slots and workers that stand for running jobs are not divided by type.
    running = counts.running if weighed.running == case.counts(site).running else max(counts.running, weighed.running)
    cap = queue_cap(running, floor)
    if waiting <= cap:
        return None
    return Skip(
        site.name,
        codes.QUEUE_FULL_OF_TYPE,
        "at most {} may be queued, {:is|are}, of type {} with {} running",
        (cap, waiting, kind, running),
    )
