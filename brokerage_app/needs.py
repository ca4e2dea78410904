"""What a task wants of a site, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from brokerage_app import walltime
from brokerage_app.snapshot import SiteView


@dataclass(frozen=True, slots=True)
class TaskNeeds:
    """The requirements of one job of a task. Zero means "nothing is asked" wherever it is the default.

    cores            per job; 0 is any number, None is not stated
    memory_mb        of the job, or of each core when `memory_per_core`; then `base_memory_mb` is added once a job
    walltime_s       expected walltime wherever the job runs; used when `cpu_hs06s` is not known
    cpu_hs06s        CPU time of one job in HS06 seconds, scaled to each site by its cores and core power
    disk_mb          scratch space of one job: work, output, and input unless it is read directly
    label            prodSourceLabel; `test` opens sites in status test
    included_sites   names or patterns with `*` and `?`; empty is every site
    excluded_sites   the same, wins over `included_sites`
    preassigned_site the one site to which this work is bound; its status, cores and memory are then not asked
    """

    cores: int | None = 1
    memory_mb: int = 0
    memory_per_core: bool = False
    base_memory_mb: int = 0
    walltime_s: int = 0
    cpu_hs06s: float = 0.0
    cpu_efficiency_percent: int = 90
    base_walltime_s: int = 0
    disk_mb: int = 0
    label: str = "user"
    included_sites: tuple[str, ...] = field(default=())
    excluded_sites: tuple[str, ...] = field(default=())
    preassigned_site: str = ""
    resource_type: str = ""
    priority: int = 0

    def cores_at(self, site: SiteView) -> int:
        """How many cores a job would use at a site: the site's slot, unless it cuts slots to the job's size."""
        if site.cores > 0 and not site.any_size:
            return site.cores
        return self.cores or 1

    def memory_at(self, site: SiteView) -> int:
        """Memory (MB) of the whole job at a site; 0 when the task asks for none."""
        if not self.memory_per_core:
            return self.memory_mb
        return self.memory_mb * self.cores_at(site) + self.base_memory_mb

    def walltime_at(self, site: SiteView) -> int:
        """Expected walltime (s) at a site; 0 when it is not known."""
        if self.cpu_hs06s <= 0:
            return self.walltime_s
        return walltime.expected_walltime_s(
            self.cpu_hs06s,
            cores=self.cores_at(site),
            core_power=site.core_power,
            efficiency_percent=self.cpu_efficiency_percent,
            base_s=self.base_walltime_s,
        )

    def is_bound_to(self, site: SiteView) -> bool:
        return self.preassigned_site == site.name


def names(patterns: tuple[str, ...], site: str) -> bool:
    """Whether a site's name is among patterns (`*`, `?`, `[…]`; case matters)."""
    return any(fnmatchcase(site, pattern) for pattern in patterns)
