"""Which queues a broker of jobs asks at all, before its rules."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final, NamedTuple

from brokerage_app.cases.case import Case
from brokerage_app.filters import policy, state
from brokerage_app.filters.asking import Asking, Filter
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import ONLINE, SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid

ANALYSIS: Final = "analysis"
PRODUCTION: Final = "production"
UNIFIED_SWITCH: Final = "grandly_unified"
ANYWHERE: Final = ("", "WORLD")
UNCHANGED: Final = timedelta(hours=24)
PUT_ASIDE: Final = timedelta(hours=6)
"""Merging goes elsewhere when its files have not changed for so long, and nobody has taken them for so long."""
_WISHES: Final[tuple[Filter[Case, SiteView], ...]] = (policy.not_excluded, policy.included)


class Candidates(NamedTuple):
    """Queues to ask, in the order of their names, and why others are not.

    is_single   the work is bound to the one queue that is left; `is_bound`: to those that are left
    """

    sites: list[SiteView]
    skipped: list[Skip]
    is_single: bool
    is_bound: bool


def candidates(needs: TaskNeeds, grid: Grid, *, kind: str = PRODUCTION, without_tests: bool = True) -> Candidates:
    """The queues for production (or analysis) jobs.

    Work that is bound uses the queues that are named, where a queue that is divided into pseudo queues stands for
    these. Other work uses all queues of its kind in its cloud, without those named test. Queues that are divided are
    never used themselves, and nothing is said of them.
    """
    bound = bound_queues(needs, grid)
    other_kind = PRODUCTION if kind == ANALYSIS else ANALYSIS
    cloud = cloud_of(needs, grid)
    case, kept, skipped = Case(needs, grid), [], []
    wishes = [wish for wish in _WISHES if _is_asked(wish, needs, is_bound=bool(bound))]
    for name in in_order(grid):
        site = grid.sites[name]
        if site.is_parent:
            continue
        if bound:
            if name not in bound:
                skipped.append(policy.elsewhere(site, case.bound_to or needs.listed_sites))
                continue
        elif site.type == other_kind and UNIFIED_SWITCH not in site.switches:
            skipped.append(Skip(name, codes.OTHER_KIND, "the queue takes only {} jobs", (site.type,)))
            continue
        elif without_tests and "test" in name.lower():
            skipped.append(Skip(name, codes.TEST_QUEUE, "the name of the queue contains test"))
            continue
        elif cloud and site.cloud != cloud:
            skipped.append(policy.in_other_cloud(site, cloud))
            continue
        skip = next((one for wish in wishes if (one := wish(case, site)) is not None), None)
        if skip is None:
            kept.append(site)
        else:
            skipped.append(skip)
    is_single = len(bound) == 1 and not needs.merging and (bool(needs.preassigned_site) or len(needs.listed_sites) == 1)
    return Candidates(kept, skipped, is_single, bool(bound))


def in_order(grid: Grid) -> tuple[str, ...]:
    """Names of all queues in alphabetical order."""
    names: tuple[str, ...] | None = grid.derived.get("names")
    if names is None or len(names) != len(grid.sites):
        names = grid.derived["names"] = tuple(sorted(grid.sites))
    return names


def bound_queues(needs: TaskNeeds, grid: Grid) -> frozenset[str]:
    """Names of the queues to which work is bound; empty when it is to none. Merging is bound where its files are."""
    given = (needs.preassigned_site,) if needs.preassigned_site else needs.listed_sites
    if not given or (needs.merging and waited_long(needs)):
        return frozenset()
    named = frozenset(given)
    found = {s.name for s in grid.sites.values() if not s.is_parent and (s.name in named or s.parent in named)}
    if needs.merging:
        # Where the queue is gone whose jobs have written the files, they may be merged anywhere.
        return frozenset(found | _reading(grid, found))
    # A name that nobody knows still binds.
    return frozenset(found) or named


def waited_long(needs: TaskNeeds) -> bool:
    """Whether merging has waited so long for the queue that has the files that it may go elsewhere."""
    unchanged_s, put_aside_s = needs.unchanged_s or 0, needs.frozen_s or 0
    return unchanged_s > UNCHANGED.total_seconds() and put_aside_s > PUT_ASIDE.total_seconds()


def _reading(grid: Grid, queues: Collection[str]) -> set[str]:
    """Online queues that read from the storage to which these write."""
    written = {grid.sites[name].outputs[0] for name in queues if grid.sites[name].outputs}
    return {
        site.name
        for site in grid.sites.values()
        if not site.is_parent and site.status == ONLINE and not written.isdisjoint(site.inputs)
    }


def cloud_of(needs: TaskNeeds, grid: Grid) -> str:
    """The cloud in which work has to stay; a name that no queue has means all."""
    if needs.cloud in ANYWHERE:
        return ""
    clouds: frozenset[str] | None = grid.derived.get("clouds")
    if clouds is None:
        clouds = grid.derived["clouds"] = frozenset(site.cloud for site in grid.sites.values())
    return needs.cloud if needs.cloud in clouds else ""


def _is_asked(wish: Filter[Case, SiteView], needs: TaskNeeds, *, is_bound: bool) -> bool:
    if wish is policy.not_excluded:
        return bool(needs.excluded_sites)
    return bool(needs.included_sites) and not is_bound


def elsewhere_first(case: Case, sites: list[SiteView]) -> tuple[list[SiteView], list[Skip]]:
    """Leave out the sites from which jobs of the work were taken back, if there is another one; and of those that are left
    the ones at which pilots have stopped asking.
    """
    kept, left = others_first(case, sites, policy.not_taken_back) if case.needs.avoided_sites else (sites, [])
    kept, silent = others_first(case, kept, state.pilots_ask)
    return kept, [*left, *silent]


def others_first(
    case: Asking, sites: list[SiteView], objects: Filter[Asking, SiteView]
) -> tuple[list[SiteView], list[Skip]]:
    """Leave out the sites that are objected to, if there is another one."""
    skips = [objects(case, site) for site in sites]
    others = [site for site, skip in zip(sites, skips, strict=True) if skip is None]
    return (others, [skip for skip in skips if skip is not None]) if others else (sites, [])
