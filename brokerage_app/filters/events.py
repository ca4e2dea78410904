"""Rules on event service and jumbo jobs."""

from __future__ import annotations

from typing import Final

from brokerage_app.cases.case import Case
from brokerage_app.cases.weights import URGENT_AT_NUCLEUS as URGENT
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip

STANDARD: Final = ("", "std")


def jumbo(case: Case, site: SiteView) -> Skip | None:
    """Queues for jumbo jobs take nothing else, and such jobs go nowhere else: where enough events wait for one."""
    needs, least = case.needs, site.min_events_for_jumbo
    if not needs.jumbo:
        return Skip(site.name, codes.JUMBO_QUEUE, "the queue takes jumbo jobs only") if site.jumbo else None
    if not site.jumbo:
        return Skip(site.name, codes.NO_JUMBO_QUEUE, "the queue takes no jumbo jobs")
    if needs.ready_events < least:
        return Skip(
            site.name, codes.FEW_EVENTS, "needs {:event|events}, of the task {} wait", (least, needs.ready_events)
        )
    return None


def event_service(case: Case, site: SiteView) -> Skip | None:
    """The queue takes event service, or only that, or only urgent one; single-core slots of a divided queue take none.

    A queue without jobseed has not been set up for event service, and takes none.
    """
    seed = site.job_seed
    if not case.needs.event_service:
        return Skip(site.name, codes.EVENT_SERVICE_ONLY, "jobseed of the queue is es") if seed == "es" else None
    if seed in STANDARD:
        return Skip(site.name, codes.NO_EVENT_SERVICE, "jobseed of the queue is {}", (seed or "not set",))
    if seed == "eshigh" and not (case.needs.priority >= URGENT or case.needs.scouting):
        priority = case.needs.priority
        return Skip(site.name, codes.EVENT_SERVICE_HIGH_ONLY, "needs priority {}, the task has {}", (URGENT, priority))
    if site.parent and site.cores <= 1:
        return Skip(
            site.name,
            codes.EVENT_SERVICE_NEEDS_CORES,
            "needs {:core|cores}, these slots have {}",
            (2, max(site.cores, 1)),
        )
    return None


def channel(case: Case, site: SiteView) -> Skip | None:
    """Payloads of the queue reach the channel through which their pilots hand out ranges: without it no work can be done, bound
    to the queue or not."""
    if case.needs.event_service and site.no_channel:
        return Skip(site.name, codes.NO_EVENT_CHANNEL, "{}", (site.no_channel,))
    return None
