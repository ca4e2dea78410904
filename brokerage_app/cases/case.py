"""One decision of a broker: the needs, the grid and the settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from brokerage_app.formulas import disk, memory, zeroshare
from brokerage_app.formulas.locality import Inputs
from brokerage_app.formulas.published_software import SiteSoftware, parse_published, parse_sources
from brokerage_app.formulas.software import SoftwareNeeds, needs_of_production
from brokerage_app.formulas.storage import Storage, storage_of, storages
from brokerage_app.formulas.walltime import WalltimeNeed
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import NO_JOBS, Counts, SiteView
from brokerage_app.vocabulary.skip import Skip, Words
from brokerage_app.vocabulary.snapshot import Grid, Sharing

URGENT: Final = 800
"""From this priority on work goes only where it will surely start."""


NOTHING_SAID: Final[Words] = ("", ())
NOTHING_ASKED: Final = needs_of_production(None, None)


class Case:
    """Made once for a decision and handed to each rule with each site.

    Brokers derive from it and work out in the constructor whatever is the same for all sites, so that a rule only
    compares. It is never changed once made.

    bound_to   names of the queues to which the work is bound
    wanted     names and patterns of the only queues that the task allows
    """

    __slots__ = ("bound_to", "grid", "needs", "wanted")

    def __init__(self, needs: TaskNeeds, grid: Grid) -> None:
        self.needs, self.grid = needs, grid
        self.bound_to: tuple[str, ...] = (needs.preassigned_site,) if needs.preassigned_site else ()
        self.wanted = needs.included_sites

    def is_preassigned(self, site: SiteView) -> bool:
        """Whether this is the one queue to which the work is bound."""
        return self.needs.is_bound_to(site)

    def is_bound_to(self, site: SiteView) -> bool:
        """Whether this is a queue to which the work is bound."""
        return self.is_preassigned(site)


class PlaceCase(Case, ABC):
    """A case that knows the storage and the software of queues.

    min_free_gb    space that a storage must have left
    analysis       jobs use the storage that queues have for analysis
    platform       software and hardware that are asked for
    """

    __slots__ = ("_software", "_storage", "analysis", "min_free_gb", "platform")

    def __init__(
        self,
        needs: TaskNeeds,
        grid: Grid,
        *,
        min_free_gb: float,
        analysis: bool = False,
        platform: SoftwareNeeds = NOTHING_ASKED,
    ) -> None:
        super().__init__(needs, grid)
        self.min_free_gb, self.analysis, self.platform = min_free_gb, analysis, platform
        self._software: dict[str, tuple[object, object, SiteSoftware]] = grid.derived.setdefault("software", {})
        self._storage = storages(grid, analysis=analysis)

    def storage(self, site: SiteView) -> Storage:
        known = self._storage.get(site.name)
        if known is not None and known[0] is site:
            return known[1]
        return storage_of(self.grid, site, analysis=self.analysis)

    def software(self, site: SiteView) -> SiteSoftware:
        """What the queue publishes, parsed once."""
        known = self._software.get(site.name)
        if known is not None and known[0] is site.software and known[1] is site.gpus:
            return known[2]
        found = parse_published(site.software, releases=site.releases, gpu_rows=site.gpus, cpu_levels=site.cpu_levels)
        self._software[site.name] = (site.software, site.gpus, found)
        return found

    takes_whole_slot: ClassVar[bool] = False
    """Whether a job has all of a slot's scratch space, however many cores it uses."""

    @abstractmethod
    def memory_mb(self, site: SiteView) -> int:
        """Memory of the whole job at a queue; 0 when none is asked."""

    def memory_in_words(self, site: SiteView) -> Words:
        """How the number is calculated, in words that follow it."""
        return NOTHING_SAID

    @abstractmethod
    def scratch_at(self, site: SiteView) -> int:
        """Scratch space (MB) of a job at a queue."""

    @abstractmethod
    def time_at(self, site: SiteView) -> WalltimeNeed | int:
        """How long a job runs at a queue, or what tells it; seconds where that is known of the job as a whole."""

    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """Paths that logical names of containers stand for, from the tags of all queues."""
        known: Mapping[str, tuple[str, ...]] | None = self.grid.derived.get("sources")
        if known is None:
            known = self.grid.derived["sources"] = parse_sources(self.grid.all_tags)
        return known


class GridCase(PlaceCase):
    """What the brokers of production and of analysis have in common; the filters that both use read these.

    share          under which the jobs are counted: the work queue's name where it keeps its own counts
    is_single      the work is bound to one queue; `is_bound`: to one or several. Rules then ask less
    several        jobs use slots of several cores (True), of one (False), or any (None)
    is_urgent      of high priority, or first jobs of a task
    is_express     goes beyond the caps, over good links only
    sharing        queues of the nucleus; None without a nucleus
    inputs         where the input lies
    disk_io_limit  kB/s per core of queues that say nothing else
    nuclei_down    nuclei that take no files from outside
    cores          of a job, by which scratch space is divided
    scratch_mb     scratch space of a job that copies its input; `scratch_direct_mb`: of one that reads it directly
    time           how long a job runs
    work           what policies of queues look at; `policies`: what they said
    """

    __slots__ = (
        "_counts",
        "_memory",
        "_totals",
        "cores",
        "disk_io_limit",
        "inputs",
        "is_bound",
        "is_express",
        "is_single",
        "is_urgent",
        "nuclei_down",
        "policies",
        "scratch_direct_mb",
        "scratch_mb",
        "several",
        "share",
        "sharing",
        "time",
        "work",
    )

    def __init__(
        self,
        needs: TaskNeeds,
        grid: Grid,
        *,
        is_single: bool,
        is_bound: bool,
        min_free_gb: float,
        disk_io_limit: float,
        analysis: bool = False,
        platform: SoftwareNeeds = NOTHING_ASKED,
    ) -> None:
        super().__init__(needs, grid, min_free_gb=min_free_gb, analysis=analysis, platform=platform)
        self.share = needs.work_queue if needs.resource_queue else needs.share
        self.is_single, self.is_bound = is_single, is_bound
        self.several = None if needs.cores == 0 else (needs.cores or 1) > 1
        self.is_urgent = needs.priority >= URGENT or needs.scouting
        self.is_express = needs.is_express
        self.sharing: Sharing | None = grid.nucleus_sharing(needs.nucleus) if needs.nucleus else None
        self.inputs = Inputs(needs.inputs)
        self.disk_io_limit = disk_io_limit
        self.cores = needs.cores
        self.time = time_of(needs)
        self.scratch_mb, self.scratch_direct_mb = scratch_of(needs, analysis=analysis)
        group = zeroshare.process_group(needs.processing_type)
        self.work = zeroshare.Work(group, needs.working_group, needs.share, needs.priority, needs.merging)
        self.policies: dict[str, Skip | None] = {}
        self._memory: dict[int, int] = {}
        self.nuclei_down = nuclei_down(grid)
        self._counts: dict[str, tuple[object, Counts]] = grid.derived.setdefault(
            ("counts", self.share, needs.resource_queue), {}
        )
        self._totals: dict[str, tuple[object, Counts]] = grid.derived.setdefault("totals", {})

    def counts(self, site: SiteView) -> Counts:
        """Jobs of the share at a queue."""
        known = self._counts.get(site.name)
        if known is not None and known[0] is site.jobs:
            return known[1]
        counts = site.queue_counts(self.share) if self.needs.resource_queue else site.counts(self.share)
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

    def counts_of_type(self, site: SiteView, kind: str) -> Counts:
        """Jobs of the share and of one resource type."""
        if self.needs.resource_queue:
            return site.resource_queue_jobs.get(self.share, {}).get(kind, NO_JOBS)
        return site.jobs.get(self.share, {}).get(kind, NO_JOBS)

    def memory_mb(self, site: SiteView) -> int:
        """Compensated: sites allow a little more than they state."""
        needs = self.needs
        cores = needs.cores_at(site) if needs.memory_per_core else 1
        known = self._memory.get(cores)
        if known is None:
            formula = memory.analysis_need_mb if self.analysis else memory.production_need_mb
            unit = "MBPerCore" if needs.memory_per_core else "MB"
            base, merging = needs.base_memory_mb, needs.merging
            known = self._memory[cores] = formula(needs.memory_mb, unit, base_mb=base, cores=cores, merging=merging)
        return known

    def scratch_at(self, site: SiteView) -> int:
        return self.scratch_direct_mb if self.needs.reads_directly(site) else self.scratch_mb

    def time_at(self, site: SiteView) -> WalltimeNeed:
        return self.time

    def is_satellite(self, site: SiteView) -> bool:
        """Whether a queue's place is not one at which outputs are gathered; never in a grid that gathers none."""
        nucleus = self.grid.nuclei.get(site.site)
        return bool(self.grid.nuclei) and (nucleus is None or nucleus.is_satellite)

    def is_of_nucleus(self, site: SiteView) -> bool:
        """Whether the queue is of the task's nucleus, or shares its storage."""
        return self.sharing is not None and self.sharing.has(site)


def time_of(needs: TaskNeeds) -> WalltimeNeed:
    """How long a job runs, from CPU time or, without that, from the time for each MB of input."""
    if not needs.walltime_known:
        return WalltimeNeed()
    base, efficiency = needs.base_walltime_s, needs.cpu_efficiency_percent
    if needs.cpu_hs06s > 0:
        least = needs.least_cpu_hs06s or None
        return WalltimeNeed(needs.cpu_hs06s, None, base, efficiency, least, needs.cpu_hs06s if least else None)
    wall = needs.walltime_s_per_mb * needs.effective_mb or float(needs.walltime_s)
    return WalltimeNeed(None, wall, base, efficiency) if wall else WalltimeNeed(0.0, None, base, efficiency)


def scratch_of(needs: TaskNeeds, *, analysis: bool) -> tuple[int, int]:
    """Scratch space (MB) of a job that copies its input, and of one that reads it directly."""
    atom = disk.Atom(needs.atom_mb, needs.effective_mb, needs.atom_events)
    output = disk.size_of(needs.out_disk, needs.out_disk_unit)
    work = disk.size_of(needs.work_disk, needs.work_disk_unit, default="MB")
    if analysis:
        return (
            disk.analysis_need_mb(atom, output, work, merging=needs.merging, job_size_mb=needs.job_size_mb),
            disk.analysis_need_mb(
                atom, output, work, merging=needs.merging, job_size_mb=needs.job_size_mb, direct_io=True
            ),
        )
    return (
        disk.production_need_mb(atom, output, work),
        disk.production_need_mb(atom, output, work, direct_io=True),
    )


def nuclei_down(grid: Grid) -> frozenset[str]:
    """Nuclei whose default output endpoint cannot be written from outside."""
    known: frozenset[str] | None = grid.derived.get("nuclei down")
    if known is None:
        outputs = {name: grid.endpoints.get(nucleus.default_output) for name, nucleus in grid.nuclei.items()}
        known = frozenset(name for name, one in outputs.items() if one is not None and not one.is_up("write_wan"))
        grid.derived["nuclei down"] = known
    return known


def grid_of(sites: Iterable[SiteView] | Mapping[str, SiteView]) -> Grid:
    """A grid of queues alone, for brokers that ask nothing else."""
    found = sites.values() if isinstance(sites, Mapping) else sites
    return Grid(sites={site.name: site for site in found})
