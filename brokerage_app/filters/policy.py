"""Rules on the task's own conditions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from brokerage_app.cases.case import Case, GridCase
from brokerage_app.cases.production_case import ProductionCase
from brokerage_app.filters.asking import at
from brokerage_app.formulas import zeroshare
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import names_queue
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip

ONLY: Final = "only"
OPPORTUNISTIC: Final = -1
"""What stands for the pledge of a queue that has none."""


def preassigned(case: Case, site: SiteView) -> Skip | None:
    """Work that is bound to one queue, or to some, goes nowhere else."""
    return elsewhere(site, case.bound_to) if case.bound_to and not case.is_bound_to(site) else None


def elsewhere(site: SiteView, bound_to: Collection[str]) -> Skip:
    named = _listed(tuple(bound_to))
    if len(bound_to) == 1:
        return Skip(site.name, codes.NOT_PREASSIGNED, "the work is bound to {}", (named,))
    return Skip(site.name, codes.NOT_PREASSIGNED, "the work is bound to {:queue|queues}: {}", (len(bound_to), named))


def in_other_cloud(site: SiteView, cloud: str) -> Skip:
    says = "the task is for the cloud {}, the queue is in {}"
    return Skip(site.name, codes.OTHER_CLOUD, says, (cloud, site.cloud or "none"))


def not_excluded(case: Case, site: SiteView) -> Skip | None:
    """A queue on the task's list of excluded ones is left out; names with `*` stand for all that fit."""
    excluded = case.needs.excluded_sites
    if not excluded or not names_queue(excluded, site):
        return None
    return Skip(site.name, codes.EXCLUDED, "the task excludes {}", (_listed(excluded),))


def included(case: Case, site: SiteView) -> Skip | None:
    """When the task lists queues, only those, and the one to which it is bound."""
    if not case.wanted or case.is_preassigned(site) or names_queue(case.wanted, site):
        return None
    return Skip(site.name, codes.NOT_INCLUDED, "the task allows only {}", (_listed(case.wanted),))


def processing_type(case: Case, site: SiteView) -> Skip | None:
    """The queue takes the task's processing type: it is on the list of what it takes, or not on that of what it does not."""
    if not site.switches:
        return None
    kind, name = case.needs.processing_type or "none", site.name
    allowed = site.switches.get("allowed_processing", "")
    if allowed and kind not in allowed.split("|"):
        return Skip(name, codes.PROCESSING_TYPE, "the queue takes {} only, the task is {}", (allowed, kind))
    excluded = site.switches.get("excluded_processing", "")
    if excluded and kind in excluded.split("|"):
        return Skip(name, codes.PROCESSING_TYPE, "the queue does not take {}, the task is {}", (excluded, kind))
    return None


def not_taken_back(case: Case, site: SiteView) -> Skip | None:
    """Work that was taken back from a queue is tried elsewhere first."""
    avoided = case.needs.avoided_sites
    if not avoided or (site.name not in avoided and site.queue not in avoided):
        return None
    return Skip(site.name, codes.TAKEN_BACK, "jobs of this work were taken back from {}", (site.queue,))


def builds_fail(case: Case) -> bool:
    return bool(case.needs.failing_builds)


def can_build(case: Case, site: SiteView) -> Skip | None:
    """No more jobs for sites at which the task's sources cannot be built."""
    failed = case.needs.failing_builds.get(site.queue)
    if failed is None:
        return None
    return Skip(site.name, codes.BUILD_FAILS_THERE, "{:build|builds} of the task failed there", (failed,))


def not_opportunistic(case: GridCase, site: SiteView) -> Skip | None:
    """Urgent work goes to no queue that may take its slots back."""
    if site.pledged_cores != OPPORTUNISTIC:
        return None
    return Skip(
        site.name,
        codes.OPPORTUNISTIC,
        "the queue is opportunistic, the priority is {}{}",
        (case.needs.priority, ", first jobs of the task" if case.needs.scouting else ""),
    )


def within_pledge(case: GridCase, site: SiteView) -> Skip | None:
    """While work is short: only queues with a pledge that they do not exceed."""
    pledge = site.pledged_cores
    if not pledge:
        return None
    if pledge == OPPORTUNISTIC:
        return Skip(site.name, codes.NON_PLEDGED, "the queue has no pledge, and WORK_SHORTAGE is set")
    cores = case.totals(site).running_cores
    if cores <= pledge:
        return None
    return Skip(site.name, codes.OVER_PLEDGED, "{:core is|cores are} pledged, {:runs|run}", (pledge, cores))


def has_share(case: GridCase, site: SiteView) -> Skip | None:
    """The queue's policy gives this kind of work a share."""
    policy = site.policy
    if not policy:
        return None
    if policy not in case.policies:
        case.policies[policy] = zeroshare.refuses(zeroshare.parse(policy), case.work)
    return at(site, case.policies[policy])


def at_nucleus(case: GridCase, site: SiteView) -> Skip | None:
    """A task that stays at its nucleus uses its queues, and those that share its storage."""
    if case.is_of_nucleus(site):
        return None
    return Skip(
        site.name,
        codes.OUTSIDE_NUCLEUS,
        "the task stays at {}, the queue belongs to {}",
        (case.needs.nucleus, site.site),
    )


def full_chain(case: ProductionCase, site: SiteView) -> Skip | None:
    """Chains of tasks that stay at a nucleus use its queues; queues that are kept for such chains take nothing else."""
    if case.stays_in_chain:
        if case.sharing is None or case.sharing.owns(site):
            return None
        says = "the chain of tasks stays at {}, the queue belongs to {}"
        return Skip(site.name, codes.OUTSIDE_FULL_CHAIN, says, (case.needs.nucleus, site.site))
    if site.bare_nucleus != ONLY:
        return None
    return Skip(site.name, codes.FULL_CHAIN_ONLY, "the queue takes chains of tasks only (bareNucleus={})", (ONLY,))


def _listed(patterns: tuple[str, ...], most: int = 5) -> str:
    shown = ", ".join(patterns[:most])
    return f"{shown} and {len(patterns) - most} more" if len(patterns) > most else shown
