"""Rules on how full a site is."""

from __future__ import annotations

from typing import Final

from brokerage_app.cases.case import Case, GridCase
from brokerage_app.cases.generic_case import GenericCase
from brokerage_app.cases.production_case import ProductionCase
from brokerage_app.filters.asking import Filter
from brokerage_app.formulas.queue_room import MIN_QUEUE, QUEUED_TO_RUNNING, part_of, queue_cap
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip


def user_has_part(min_queue: int = MIN_QUEUE) -> Filter[GenericCase, SiteView]:
    """The rule that a user who has an even share of a queue's places gets no more while other users have less."""

    def user_queue_long(case: GenericCase, site: SiteView) -> Skip | None:
        if case.queue_users.users < 2 or case.queue_users.room_at(site, min_queue):
            return None
        part = part_of(queue_cap(site.running, min_queue), case.queue_users.users)
        return Skip(
            site.name,
            codes.USER_QUEUE_LONG,
            "{:job of the user is|jobs of the user are} queued, the limit is {} while {} users have jobs there",
            (case.queue_users.queued.get(site.queue, 0), part, case.queue_users.users),
        )

    return user_queue_long


def queue_not_full(min_queue: int = MIN_QUEUE) -> Filter[Case, SiteView]:
    """The rule that a site with enough queued jobs (defined ones included) gets no more."""

    def queue_full(case: Case, site: SiteView) -> Skip | None:
        cap, queued = queue_cap(site.running, min_queue), site.queued + site.defined
        if queued < cap:
            return None
        return Skip(
            site.name,
            codes.QUEUE_FULL,
            "{:job is|jobs are} queued, the limit is {} with {} running",
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
        "{1:job is|jobs are} transferring, the limit is {0} with {2} running",
        (most, found, counts.running),
    )


def not_locked(case: ProductionCase, site: SiteView) -> Skip | None:
    if site.name not in case.locked and site.queue not in case.locked:
        return None
    return Skip(site.name, codes.LOCKED, "another broker has locked {}", (site.queue,))


def under_cap(case: ProductionCase, site: SiteView) -> Skip | None:
    """At most twice as many jobs may wait as run, counted with the defined and assigned ones and without.

    Where the input is there, jobs that are only assigned do not count: they wait for transfers that the new ones do not need.
    """
    found = case.weighed(site)
    waiting, cap = found.queued + found.defined, found.cap
    if waiting <= cap:
        return None
    return Skip(
        site.name,
        codes.QUEUE_FULL,
        "{1:job is|jobs are} queued, the limit is {0} with {2} running",
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
        "{1:job|jobs} of type {2} queued, the limit is {0} with {3} running",
        (cap, waiting, kind, running),
    )
