"""Rules on the way from a queue to the nucleus at which outputs are gathered. Asked only when there is one."""

from __future__ import annotations

from brokerage_app.cases.production_case import ProductionCase
from brokerage_app.formulas.network import express_floor
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import EXPRESS_PRIORITY
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import BLOCKED


def nucleus_writable(case: ProductionCase, site: SiteView) -> Skip | None:
    """The nucleus takes files from outside; its own queues need not ask."""
    if not case.nucleus_down or (case.sharing is not None and case.sharing.owns(site)):
        return None
    says = "writing from outside (write_wan) is blacklisted at {} of the nucleus {}"
    return Skip(site.name, codes.NUCLEUS_NOT_WRITABLE, says, (case.nucleus_down, case.needs.nucleus))


def nucleus_not_flooded(case: ProductionCase, site: SiteView) -> Skip | None:
    """Not too many files wait for the nucleus, from everywhere; its own queues need not ask."""
    most, queued = case.settings.nqueued_nuc_cap_for_jobs, case.queued_to_nucleus
    if queued < most or (case.sharing is not None and case.sharing.owns(site)):
        return None
    says = "{1:file waits|files wait} for {2}, fewer than {0} are allowed"
    return Skip(site.name, codes.LINKS_FULL, says, (most, queued, case.needs.nucleus))


def link_open(case: ProductionCase, site: SiteView) -> Skip | None:
    """The link is not blocked."""
    if case.link(site).closeness != BLOCKED:
        return None
    return Skip(
        site.name,
        codes.LINK_BLOCKED,
        "the link from {} to {} is blocked",
        (case.storage(site).site, case.needs.nucleus),
    )


def link_not_full(case: ProductionCase, site: SiteView) -> Skip | None:
    """Not too many files wait on the link."""
    most, queued = case.settings.nqueued_sat_cap, case.link(site).queued.get(case.activity, 0)
    if queued < most:
        return None
    return Skip(
        site.name,
        codes.LINK_FULL,
        "{1:file waits|files wait} on the link from {2} to {3}, fewer than {0} are allowed",
        (most, queued, case.storage(site).site, case.needs.nucleus),
    )


def fast_enough(case: ProductionCase, site: SiteView) -> Skip | None:
    """Express work needs a good link."""
    found = case.weighed(site).network
    least = express_floor(case.settings.nw_threshold, case.settings.nw_weight_multiplier)
    if found is None or found >= least:
        return None
    needs, says = (
        case.needs,
        "express work needs a network weight of {:.3g}, it is {:.3g}; the task is express work because of its {}",
    )
    why = (
        f"priority of {needs.priority} ({EXPRESS_PRIORITY} or more)"
        if needs.priority >= EXPRESS_PRIORITY
        else "processingType"
    )
    return Skip(site.name, codes.SLOW_NETWORK, says, (least, found, why))
