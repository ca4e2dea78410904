"""One decision of a broker: what is wanted, of which grid, under which settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from brokerage_app.needs import TaskNeeds
from brokerage_app.snapshot import Grid, SiteView


class Case:
    """Made once for a decision and handed to each rule with each site.

    Brokers derive from it and work out in the constructor whatever is the same for all sites, so that a rule only
    compares. It is never changed once made.
    """

    __slots__ = ("grid", "needs")

    def __init__(self, needs: TaskNeeds, grid: Grid) -> None:
        self.needs, self.grid = needs, grid


def grid_of(sites: Iterable[SiteView] | Mapping[str, SiteView]) -> Grid:
    """A grid of queues alone, for brokers that ask nothing else."""
    found = sites.values() if isinstance(sites, Mapping) else sites
    return Grid(sites={site.name: site for site in found})
