"""Rules on what a job takes and a slot gives: cores, memory, time, scratch disk."""

from __future__ import annotations

from typing import Final

from brokerage_app.cases.case import Case, GridCase
from brokerage_app.formulas.walltime import walltime_at
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import SiteView

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


def memory(case: Case, site: SiteView) -> Skip | None:
    """The whole job's memory lies within the site's limits, both inclusive."""
    needs = case.needs
    need = needs.memory_at(site)
    if need <= 0:
        return None
    if site.max_memory_mb and need > site.max_memory_mb:
        how, values = _memory_in_words(case, site)
        return Skip(
            site.name,
            codes.LOW_MEMORY,
            f"needs {{}} MB, the site gives {{}} MB{how}",
            (need, site.max_memory_mb, *values),
        )
    if site.min_memory_mb and need < site.min_memory_mb:
        how, values = _memory_in_words(case, site)
        return Skip(
            site.name,
            codes.HIGH_MEMORY,
            f"needs {{}} MB, the site wants at least {{}} MB{how}",
            (need, site.min_memory_mb, *values),
        )
    return None


def _memory_in_words(case: Case, site: SiteView) -> tuple[str, tuple[int, ...]]:
    needs = case.needs
    if not needs.memory_per_core:
        return "", ()
    return " ({} MB x {:core|cores} + {} MB)", (needs.memory_mb, needs.cores_at(site), needs.base_memory_mb)


def walltime(case: Case, site: SiteView) -> Skip | None:
    """The expected walltime lies within the site's limits, both inclusive; not asked when it is not known.

    What follows from the CPU time of the smallest job is only a lower bound: jobs are made longer for sites that want it.
    """
    need = walltime_at(case.needs, site)
    if need <= 0:
        return None
    if site.max_walltime_s and need > site.max_walltime_s:
        return Skip(site.name, codes.SHORT_WALLTIME, "needs {} s, the site allows {} s", (need, site.max_walltime_s))
    if site.min_walltime_s and need < site.min_walltime_s and case.needs.cpu_hs06s <= 0:
        return Skip(
            site.name, codes.LONG_WALLTIME, "needs {} s, the site wants at least {} s", (need, site.min_walltime_s)
        )
    return None


def scratch_disk(case: Case, site: SiteView) -> Skip | None:
    """The job's scratch space fits in the slot's work folder."""
    needs = case.needs
    directly = site.direct_io_only or (site.direct_io and needs.direct_io > 0 and not needs.local_io)
    need = needs.disk_mb - int(needs.atom_mb) if directly else needs.disk_mb
    if not site.work_dir_mb or need <= site.work_dir_mb:
        return None
    return Skip(site.name, codes.SCRATCH_DISK, "needs {} MB, the site gives {} MB", (need, site.work_dir_mb))


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
        "at most {:core is|cores are} wanted, the site's slots have {}",
        (most, site.cores),
    )


def io_intensity(case: Case, site: SiteView) -> Skip | None:
    """A task reads and writes no more than the queue bears."""
    need = case.needs.io_intensity
    if not site.max_io_intensity or need is None or need <= site.max_io_intensity:
        return None
    return Skip(
        site.name, codes.IO_INTENSITY, "reads and writes {} kB/s, the site takes {}", (need, site.max_io_intensity)
    )
