"""The job broker for whoever has no rules of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from brokerage_app.case import Case, grid_of
from brokerage_app.filters import capacity, policy, resources, state
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
    resources.walltime,
    resources.cores,
    resources.memory,
)
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

    Each site is skipped by the first filter that objects, so a verdict has one reason a site. Ties go by name and
    sites are asked by name: the same input gives the same answer whatever its order.
    """
    case = Case(needs, sites if isinstance(sites, Grid) else grid_of(sites))
    in_order = sorted(case.grid.sites.values(), key=lambda site: site.name)
    found = sift(case, in_order, [Rule(one) for one in filters])
    kept, left = _elsewhere_first(case, found.kept)
    chosen = [weigh(case, site) for site in kept]
    chosen.sort(key=lambda choice: (-choice.weight, choice.site))
    return Verdict(tuple(chosen), tuple([*found.out, *left]))


def _elsewhere_first(case: Case, sites: list[SiteView]) -> tuple[list[SiteView], list[Skip]]:
    """Leave out the sites from which jobs of the work were taken back, if there is another one."""
    if not case.needs.avoided_sites:
        return sites, []
    skips = [policy.not_taken_back(case, site) for site in sites]
    others = [site for site, skip in zip(sites, skips, strict=True) if skip is None]
    return (others, [skip for skip in skips if skip is not None]) if others else (sites, [])
