"""The job broker for whoever has no rules of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from brokerage_app import codes
from brokerage_app.brokers.candidates import cloud_of, elsewhere_first, other_cloud
from brokerage_app.brokers.candidates import in_order as names_in_order
from brokerage_app.case import Case, grid_of
from brokerage_app.filters import capacity, data, policy, resources, state
from brokerage_app.needs import TaskNeeds
from brokerage_app.rules import Filter, Rule, Weigh, sift
from brokerage_app.snapshot import Grid, SiteView
from brokerage_app.verdict import Choice, Skip, Verdict

RULES: Final[tuple[Filter, ...]] = (
    policy.preassigned,
    state.online,
    policy.not_excluded,
    policy.included,
    resources.scratch_disk,
    data.space_of_queue,
    resources.walltime,
    resources.cores,
    resources.memory,
    policy.processing_type,
    state.has_pilots_for_queued,
)
MOST: Final = 5
"""Queues that the jobs of a task go to at a time."""
FILTERS: Final[tuple[Filter, ...]] = (*RULES, capacity.queue_not_full())


def filters(min_queue: int) -> tuple[Filter, ...]:
    """The filters with another floor for the number of queued jobs a site may have."""
    return (*RULES, capacity.queue_not_full(min_queue))


def weigh(case: Case, site: SiteView) -> Choice:
    """Weight (running + 1) / (queued + defined + 1) / (defined + 1): busy sites with short queues first."""
    factors = (
        ("running + 1", float(site.running + 1)),
        ("1 / (queued + defined + 1)", 1 / (site.queued + site.defined + 1)),
        ("1 / (defined + 1)", 1 / (site.defined + 1)),
    )
    weight = (site.running + 1) / (site.queued + site.defined + 1) / (site.defined + 1)
    return Choice(site.name, weight, factors, queued=site.queued + site.defined)


def broker(
    needs: TaskNeeds,
    sites: Iterable[SiteView] | Grid,
    filters: Iterable[Filter] = FILTERS,
    weigh: Weigh = weigh,
) -> Verdict:
    """Choose sites for the jobs of a task, best first, and say of every other site why not.

    Each site is skipped by the first filter that objects, so a verdict has one reason a site. Of those that are left the
    best five are taken, those first that have had jobs of the task. Ties go by name and sites are asked by name: the same
    input gives the same answer whatever its order. Pseudo queues are not asked: their parent is.
    """
    case = Case(needs, sites if isinstance(sites, Grid) else grid_of(sites))
    cloud = cloud_of(needs, case.grid)
    in_order = [case.grid.sites[name] for name in names_in_order(case.grid)]
    asked, elsewhere = [], []
    for site in in_order:
        if site.parent:
            continue
        if cloud and site.cloud != cloud and not needs.preassigned_site:
            elsewhere.append(other_cloud(site, cloud))
        else:
            asked.append(site)
    found = sift(case, asked, [Rule(one) for one in filters])
    kept, left = elsewhere_first(case, found.kept)
    chosen = [weigh(case, site) for site in kept]
    chosen.sort(key=lambda choice: (choice.site not in needs.used_sites, -choice.weight, choice.site))
    most = chosen[:MOST]
    says = "a weight of {:.3g} is the least of the best, it is {:.3g}; {} queues are used at a time"
    least = min((choice.weight for choice in most), default=0.0)
    rest = [Skip(one.site, codes.LOW_WEIGHT, says, (least, one.weight, MOST)) for one in chosen[MOST:]]
    return Verdict(tuple(most), (*elsewhere, *found.out, *left, *rest))
