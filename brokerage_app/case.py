"""One decision of a broker: what is wanted, of which grid, under which settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from brokerage_app.locality import Inputs
from brokerage_app.needs import TaskNeeds
from brokerage_app.snapshot import Counts, Grid, Sharing, SiteView
from brokerage_app.storage import Storage, storage_of

URGENT: Final = 800
"""From this priority on work goes only where it will surely start."""


class Case:
    """Made once for a decision and handed to each rule with each site.

    Brokers derive from it and work out in the constructor whatever is the same for all sites, so that a rule only
    compares. It is never changed once made.
    """

    __slots__ = ("grid", "needs")

    def __init__(self, needs: TaskNeeds, grid: Grid) -> None:
        self.needs, self.grid = needs, grid


class GridCase(Case):
    """What the brokers of production and of analysis have in common; the filters that both use read these.

    share          under which the jobs are counted: the work queue's name where it keeps its own counts
    is_single      the work is bound to one queue; `is_bound`: to one or several. Rules then ask less
    several        jobs use slots of several cores (True), of one (False), or any (None)
    is_urgent      of high priority, or first jobs of a task
    is_express     goes beyond the caps, over good links only
    sharing        queues of the nucleus; None without a nucleus
    inputs         where the input lies
    min_free_gb    space that a storage must have left
    disk_io_limit  kB/s per core of queues that say nothing else
    """

    __slots__ = (
        "_counts", "_totals", "analysis", "disk_io_limit", "inputs", "is_bound", "is_express", "is_single", "is_urgent",
        "min_free_gb", "several", "share", "sharing",
    )  # fmt: skip

    def __init__(
        self, needs: TaskNeeds, grid: Grid, *, is_single: bool, is_bound: bool, min_free_gb: float,
        disk_io_limit: float, analysis: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(needs, grid)
        self.share = needs.work_queue if needs.resource_queue else needs.share
        self.is_single, self.is_bound = is_single, is_bound
        self.several = None if needs.cores == 0 else (needs.cores or 1) > 1
        self.is_urgent = needs.priority >= URGENT or needs.scouting
        self.is_express = needs.is_express
        self.sharing: Sharing | None = grid.nucleus_sharing(needs.nucleus) if needs.nucleus else None
        self.inputs = Inputs(needs.inputs)
        self.min_free_gb, self.disk_io_limit = min_free_gb, disk_io_limit
        self.analysis = analysis
        self._counts: dict[str, tuple[object, Counts]] = grid.derived.setdefault(("counts", self.share), {})
        self._totals: dict[str, tuple[object, Counts]] = grid.derived.setdefault("totals", {})

    def counts(self, site: SiteView) -> Counts:
        """Jobs of the share at a queue."""
        known = self._counts.get(site.name)
        if known is not None and known[0] is site.jobs:
            return known[1]
        counts = site.counts(self.share)
        self._counts[site.name] = (site.jobs, counts)
        return counts

    def totals(self, site: SiteView) -> Counts:
        """Jobs of all shares at a queue."""
        known = self._totals.get(site.name)
        if known is not None and known[0] is site.jobs:
            return known[1]
        counts = site.counts()
        self._totals[site.name] = (site.jobs, counts)
        return counts

    def storage(self, site: SiteView) -> Storage:
        return storage_of(self.grid, site, analysis=self.analysis)

    def is_satellite(self, site: SiteView) -> bool:
        """Whether a queue's place is not one at which outputs are gathered; never in a grid that gathers none."""
        return bool(self.grid.nuclei) and site.site not in self.grid.nuclei

    def is_of_nucleus(self, site: SiteView) -> bool:
        """Whether the queue is of the task's nucleus, or shares its storage."""
        return self.sharing is not None and self.sharing.has(site)


def grid_of(sites: Iterable[SiteView] | Mapping[str, SiteView]) -> Grid:
    """A grid of queues alone, for brokers that ask nothing else."""
    found = sites.values() if isinstance(sites, Mapping) else sites
    return Grid(sites={site.name: site for site in found})
