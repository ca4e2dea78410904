"""Rules on what a job takes and a slot gives: cores, memory, time, scratch disk."""

from __future__ import annotations

from brokerage_app import codes
from brokerage_app.needs import TaskNeeds
from brokerage_app.snapshot import SiteView
from brokerage_app.verdict import Skip


def cores(needs: TaskNeeds, site: SiteView) -> Skip | None:
    """A job fits in the slot, and a single-core job does not take a slot of many cores.

    Not asked for work that is bound to the site, nor when the task states no number or takes any.
    """
    if not needs.cores or needs.is_bound_to(site) or site.cores <= 0:
        return None
    if needs.cores > site.cores:
        return Skip(site.name, codes.TOO_FEW_CORES, f"needs {_cores(needs.cores)}, the site gives {site.cores}")
    if needs.cores == 1 and site.cores > 1 and not site.any_size:
        return Skip(site.name, codes.MULTI_CORE_ONLY, f"needs 1 core, the site's slots have {site.cores}")
    return None


def memory(needs: TaskNeeds, site: SiteView) -> Skip | None:
    """The whole job's memory lies within the site's limits, both inclusive."""
    need = needs.memory_at(site)
    if need <= 0 or needs.is_bound_to(site):
        return None
    how = f"needs {need} MB"
    if needs.memory_per_core:
        how += f" ({needs.memory_mb} MB x {_cores(needs.cores_at(site))} + {needs.base_memory_mb} MB)"
    if site.max_memory_mb and need > site.max_memory_mb:
        return Skip(site.name, codes.LOW_MEMORY, f"{how}, the site gives {site.max_memory_mb} MB")
    if site.min_memory_mb and need < site.min_memory_mb:
        return Skip(site.name, codes.HIGH_MEMORY, f"{how}, the site wants at least {site.min_memory_mb} MB")
    return None


def walltime(needs: TaskNeeds, site: SiteView) -> Skip | None:
    """The expected walltime lies within the site's limits, both inclusive; not asked when it is not known."""
    need = needs.walltime_at(site)
    if need <= 0:
        return None
    if site.max_walltime_s and need > site.max_walltime_s:
        return Skip(site.name, codes.SHORT_WALLTIME, f"needs {need} s, the site allows {site.max_walltime_s} s")
    if site.min_walltime_s and need < site.min_walltime_s:
        return Skip(site.name, codes.LONG_WALLTIME, f"needs {need} s, the site wants at least {site.min_walltime_s} s")
    return None


def scratch_disk(needs: TaskNeeds, site: SiteView) -> Skip | None:
    """The job's scratch space fits in the slot's work folder."""
    if not site.work_dir_mb or needs.disk_mb <= site.work_dir_mb:
        return None
    return Skip(site.name, codes.SCRATCH_DISK, f"needs {needs.disk_mb} MB, the site gives {site.work_dir_mb} MB")


def _cores(count: int) -> str:
    return f"{count} core" if count == 1 else f"{count} cores"
