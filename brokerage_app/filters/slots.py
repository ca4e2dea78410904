"""Rules on what a slot gives to one job, scaled with its cores: memory, scratch disk, time, disk I/O."""

from __future__ import annotations

from brokerage_app.cases.case import GridCase
from brokerage_app.filters.asking import at
from brokerage_app.formulas import disk, memory, walltime
from brokerage_app.formulas.walltime import DAY_S
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import SiteView


def enough_memory(case: GridCase, site: SiteView) -> Skip | None:
    """The memory of the job lies within the slot's limits, both inclusive."""
    need = case.memory_mb(site)
    if (not site.max_memory_mb or need <= site.max_memory_mb) and need >= site.min_memory_mb:
        return None
    return at(site, memory.outside(need, site.min_memory_mb, site.max_memory_mb))


def enough_scratch(case: GridCase, site: SiteView) -> Skip | None:
    """Input, output and work files of the job fit in its part of the slot's scratch space."""
    if not site.work_dir_mb:
        return None
    need = case.scratch_direct_mb if case.reads_directly(site) else case.scratch_mb
    return at(site, disk.lacks_scratch(need, site.work_dir_mb, site.cores, case.cores))


def long_enough(case: GridCase, site: SiteView) -> Skip | None:
    """The queue's longest time is enough for the job."""
    if site.max_walltime_s <= 0:
        return None
    cores, power = case.needs.cores_at(site), site.core_power
    refused = walltime.too_long(
        case.time, site.max_walltime_s, cores=cores, core_power=power, min_s=site.min_walltime_s
    )
    return at(site, refused)


def long_enough_for_unmeasured(case: GridCase, site: SiteView) -> Skip | None:
    """Jobs that were never measured go where they may run for a day."""
    if site.max_walltime_s <= 0 or site.max_walltime_s >= DAY_S:
        return None
    code = codes.SHORT_FOR_SCOUTS if case.needs.scouting else codes.SHORT_FOR_UNKNOWN
    says = "jobs that are not measured need {} s, the site allows {} s"
    if _states_walltime_only(case.needs):
        says = "a walltime without a CPU time (cpuTime) counts as none, and such jobs need {} s, the site allows {} s"
    return Skip(site.name, code, says, (DAY_S, site.max_walltime_s))


def _states_walltime_only(needs: TaskNeeds) -> bool:
    """Whether the task does say how long its jobs run, though not in the unit of CPU time that it names."""
    states = needs.walltime_s > 0 or needs.walltime_s_per_mb > 0
    return states and not needs.walltime_known and not needs.scouting and not needs.merging


def not_too_short(case: GridCase, site: SiteView) -> Skip | None:
    """The job runs for the queue's shortest time at least."""
    if site.min_walltime_s <= 0:
        return None
    cores, power = case.needs.cores_at(site), site.core_power
    return at(site, walltime.too_short(case.time, site.min_walltime_s, cores=cores, core_power=power))


def disks_not_busy(case: GridCase, site: SiteView) -> Skip | None:
    """Where the running jobs read and write more than the limit, no more tasks that do so.

    All are kB/s per core. A task's own number is of a job, so it is divided by the cores of jobs that have several; in
    production to a whole number.
    """
    mean, need = site.disk_io_kbps, case.needs.disk_io_kbps
    limit = site.max_disk_io_kbps or case.disk_io_limit
    if mean is None or need is None or mean <= limit or need <= limit:
        return None
    if case.several and site.cores > 1:
        need = need / site.cores if case.analysis else need // site.cores
    if need <= limit:
        return None
    return Skip(
        site.name,
        codes.DISK_IO_BUSY,
        "at most {:g} kB/s a core are wanted, the task has {:g} and running jobs {:g}",
        (limit, need, mean),
    )
