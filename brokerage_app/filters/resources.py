"""Rules on what a job needs and a slot offers: cores, memory, scratch disk, time, disk I/O."""

from __future__ import annotations

from typing import Final

from brokerage_app.cases.case import Case, GridCase, PlaceCase
from brokerage_app.filters.asking import at
from brokerage_app.formulas.disk import lacks_scratch
from brokerage_app.formulas.memory import outside
from brokerage_app.formulas.walltime import DAY_S, too_long, too_short
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip

SEVERAL: Final = 2


def cores(case: Case, site: SiteView) -> Skip | None:
    """A job fits in the slot, and a single-core job does not take a slot of many cores.

    Not asked when the task states no number or takes any.
    """
    needs = case.needs
    if not needs.cores or site.cores <= 0:
        return None
    if needs.cores > site.cores:
        return Skip(site.name, codes.TOO_FEW_CORES, "needs {:core|cores}, the site gives {}", (needs.cores, site.cores))
    if needs.cores == 1 and site.cores > 1 and not site.any_size:
        return Skip(site.name, codes.MULTI_CORE_ONLY, "needs {:core|cores}, the site's slots have {}", (1, site.cores))
    return None


def memory(case: PlaceCase, site: SiteView) -> Skip | None:
    """The memory of the whole job lies within the slot's limits, both inclusive."""
    need = case.memory_mb(site)
    if (not site.max_memory_mb or need <= site.max_memory_mb) and need >= site.min_memory_mb:
        return None
    return at(site, outside(need, site.min_memory_mb, site.max_memory_mb, case.memory_in_words(site)))


def scratch_disk(case: PlaceCase, site: SiteView) -> Skip | None:
    """The files of the job fit in its part of the slot's scratch space."""
    if not site.work_dir_mb:
        return None
    cores = case.needs.cores
    need, whole = case.scratch_at(site), case.takes_whole_slot
    return at(site, lacks_scratch(need, site.work_dir_mb, site.cores, cores, whole_slot=whole))


def walltime(case: PlaceCase, site: SiteView) -> Skip | None:
    """The queue's longest time is enough for the job."""
    most, need = site.max_walltime_s, case.time_at(site)
    if most <= 0 or (isinstance(need, int) and need <= most):
        return None
    cores, power = case.needs.cores_at(site), site.core_power
    return at(site, too_long(need, most, cores=cores, core_power=power, min_s=site.min_walltime_s))


def least_walltime(case: PlaceCase, site: SiteView) -> Skip | None:
    """The job runs for the queue's shortest time at least."""
    if site.min_walltime_s <= 0:
        return None
    cores, power = case.needs.cores_at(site), site.core_power
    return at(site, too_short(case.time_at(site), site.min_walltime_s, cores=cores, core_power=power))


def walltime_of_unmeasured(case: GridCase, site: SiteView) -> Skip | None:
    """Jobs that were never measured go where they may run for a day."""
    if site.max_walltime_s <= 0 or site.max_walltime_s >= DAY_S:
        return None
    code = codes.SHORT_FOR_SCOUTS if case.needs.scouting else codes.SHORT_FOR_UNKNOWN
    says = "unmeasured jobs need {} s, the site allows {} s"
    if _states_walltime_only(case.needs):
        says = "walltime counts only together with cpuTime; jobs without it need {} s, the site allows {} s"
    return Skip(site.name, code, says, (DAY_S, site.max_walltime_s))


def _states_walltime_only(needs: TaskNeeds) -> bool:
    """Whether the task does say how long its jobs run, though not in the unit of CPU time that it names."""
    states = needs.walltime_s > 0 or needs.walltime_s_per_mb > 0
    return states and not needs.walltime_known and not needs.scouting and not needs.merging


def core_mode(case: GridCase, site: SiteView) -> Skip | None:
    """Jobs of several cores run in slots of several, of whatever number; jobs of one in slots of one.

    How many cores a job gets is then the site's choice. Queues that state no number, or cut slots to size, take both, and
    work that is bound to one queue takes its slots as they are: of its variants for jobs of a size those that fit.
    """
    if case.is_single and not site.parent:
        return None
    if case.several:
        if site.cores > 1 or site.cores <= 0:
            return None
        needs = case.needs.cores or SEVERAL
        return Skip(site.name, codes.TOO_FEW_CORES, "needs {:core|cores}, the site gives {}", (needs, site.cores))
    if site.cores <= 1 or site.any_size:
        return None
    return Skip(site.name, codes.MULTI_CORE_ONLY, "needs {:core|cores}, the site's slots have {}", (1, site.cores))


def max_cores(case: Case, site: SiteView) -> Skip | None:
    """Slots have no more cores than the task can use."""
    most = case.needs.max_cores
    if site.cores <= most or site.any_size:
        return None
    return Skip(
        site.name,
        codes.TOO_MANY_CORES,
        "the task can use at most {:core|cores}, the site's slots have {}",
        (most, site.cores),
    )


def io_intensity(case: Case, site: SiteView) -> Skip | None:
    """A task reads and writes no more than the queue allows."""
    need = case.needs.io_intensity
    if not site.max_io_intensity or need is None or need <= site.max_io_intensity:
        return None
    return Skip(
        site.name, codes.IO_INTENSITY, "reads and writes {} kB/s, the site allows {}", (need, site.max_io_intensity)
    )


def disks_not_busy(case: GridCase, site: SiteView) -> Skip | None:
    """A queue whose running jobs exceed the limit on I/O gets no more tasks that exceed it.

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
        "the limit is {:g} kB/s a core, the task needs {:g} and running jobs use {:g}",
        (limit, need, mean),
    )
