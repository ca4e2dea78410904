"""How many of the next jobs go to which of the chosen sites. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from brokerage_app.brokers import generic
from brokerage_app.needs import TaskNeeds
from brokerage_app.snapshot import SiteView
from brokerage_app.verdict import Weigh

SLAB = 25
"""Jobs that go to one site before the weights are looked at again."""


@dataclass(frozen=True, slots=True)
class Portion:
    """A number of jobs for one site."""

    site: SiteView
    jobs: int


def room_at(site: SiteView, min_queue: int, threshold: float = 2.0) -> int:
    """Jobs that a site's queue still takes: up to max(min_queue, threshold x running) are kept queued."""
    return max(0, max(min_queue, int(threshold * site.running)) - site.queued - site.defined)


def spread(
    needs: TaskNeeds, sites: Sequence[SiteView], jobs: int, *, min_queue: int, weigh: Weigh = generic.weigh
) -> list[Portion]:
    """Divide up to `jobs` jobs over sites, slab by slab to the one that weighs most then. Ties go by name.

    The sum is less than `jobs` when the sites have no more room. Each site appears once, the best first.
    """
    views = {site.name: site for site in sites}
    given = dict.fromkeys(views, 0)
    order: list[str] = []
    while jobs > 0:
        open_sites = [site for site in views.values() if room_at(site, min_queue) > 0]
        if not open_sites:
            break
        best = min(open_sites, key=lambda site: (-weigh(needs, site).weight, site.name))
        slab = min(jobs, room_at(best, min_queue), SLAB if len(open_sites) > 1 else jobs)
        if best.name not in order:
            order.append(best.name)
        given[best.name] += slab
        jobs -= slab
        views[best.name] = replace(best, queued=best.queued + slab)
    return [Portion(views[name], given[name]) for name in order]
