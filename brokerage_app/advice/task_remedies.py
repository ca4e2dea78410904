"""Changes of what a task asks for and of where it may run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from typing import Any, Final

from brokerage_app.advice.hardware_advice import without_hardware
from brokerage_app.advice.scratch_advice import less_scratch
from brokerage_app.brokers.deciding import allowed
from brokerage_app.formulas.walltime import capacity_hs06s
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import EXPRESS_PRIORITY, TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid
from jedisite.refusals import Fixer
from jedisite.vocabulary.words import plural

SHOWN: Final = 3
_TIME: Final = frozenset({codes.SHORT_WALLTIME, codes.LONG_WALLTIME})
_UNKNOWN_TIME: Final = frozenset({codes.SHORT_FOR_UNKNOWN, codes.SHORT_FOR_SCOUTS})
_HARDWARE: Final = frozenset({codes.NO_GPU, codes.NO_CPU})


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change: a sentence on what to do, for whom, the lines of a what-if, and the sites that would take the jobs then.

    Of those of one `kind` only the first that helps is told; "" is a kind of its own each time.
    """

    what: str
    who: Fixer
    lines: tuple[str, ...]
    sites: tuple[str, ...] = ()
    kind: str = ""

    @property
    def sentence(self) -> str:
        more = len(self.sites) - SHOWN
        named = ", ".join(self.sites[:SHOWN]) + (f" and {more} more" if more > 0 else "")
        verb = "takes" if len(self.sites) == 1 else "take"
        return f"{self.what}; then {named} {verb} its jobs."


def not_express(needs: TaskNeeds) -> Remedy:
    now = f"below {EXPRESS_PRIORITY} (currentPriority; now {needs.priority})"
    what = f"lower the priority of the task {now}, so that it is not express work"
    return replace(by_user(what, priority=EXPRESS_PRIORITY - 1), who="production")


def of_needs(needs: TaskNeeds, skip: Skip, grid: Grid) -> Iterator[Remedy]:
    ratio, site = ratio_of(skip), grid.sites.get(skip.site)
    # What a job needs besides the memory of each core is not scaled.
    cores = needs.cores_at(site) if site is not None and needs.memory_per_core else 1
    if ratio is not None and skip.code == codes.LOW_MEMORY and not needs.memory_raised:
        each = " a core" if needs.memory_per_core else ""
        for base in dict.fromkeys((0, needs.base_memory_mb)):
            memory = floor(needs.memory_mb * ratio - base * (1 - ratio) / cores)
            what = f"Ask for {memory} MB of memory{each} at most (ramCount; now {needs.memory_mb})"
            if memory > 0:
                yield replace(by_user(what, memory_mb=memory), kind="memory")
    elif ratio is not None and skip.code == codes.HIGH_MEMORY:
        memory = ceil(needs.memory_mb * ratio)
        yield by_user(f"Ask for {memory} MB of memory at least (ramCount; now {needs.memory_mb})", memory_mb=memory)
    elif ratio is not None and skip.code in (codes.TOO_FEW_CORES, codes.MULTI_CORE_ONLY):
        given = int(skip.plain_values[1])  # type: ignore[arg-type]
        yield by_user(f"Ask for {plural(given, 'core')} a job (coreCount; now {needs.cores})", cores=given)
    elif ratio is not None and skip.code in _TIME:
        yield from _of_time(needs, ratio)
        # The time that each job takes whatever its size does not get less with its events.
        if needs.base_walltime_s and (rest := ratio_of(skip, needs.base_walltime_s)) is not None:
            yield from _of_time(needs, rest)
        if site is not None and needs.cpu_hs06s > 0 and skip.code == codes.SHORT_WALLTIME:
            # A walltime is told up to a longest one only, so that what is told may not be the whole of what is needed.
            yield from _of_time(needs, min(_cpu_time_at(needs, site) / needs.cpu_hs06s, 1.0))
    elif skip.code == codes.SLOW_NETWORK and needs.priority >= EXPRESS_PRIORITY:
        yield replace(lower := not_express(needs), what=f"Have an operator {lower.what}")
    elif ratio is not None and skip.code == codes.SCRATCH_DISK:
        need, offer = skip.plain_values[:2]
        for less in less_scratch(needs, float(need) - float(offer)):  # type: ignore[arg-type]
            yield replace(by_user(less.what, **less.needs), who=less.who, kind=less.kind)
    elif skip.code in _UNKNOWN_TIME and not needs.walltime_known:
        most = site.max_walltime_s if site is not None else 0
        least = f", if that is less than the {most} s that {site.queue} allows" if site is not None and most else ""
        yield by_user(f"State how long the jobs run (cpuTime){least}", walltime_known=True)
    elif skip.code in _HARDWARE:
        without = without_hardware(needs.architecture, gpu=skip.code == codes.NO_GPU)
        if without != needs.architecture:
            # The architecture of a task that was submitted stays as it is.
            what = "GPU" if skip.code == codes.NO_GPU else "particular CPU"
            said = f"architecture {without}" if without else "architecture left empty"
            again = "Kill the task and submit it again, under another name and"
            yield by_user(f"{again} without asking for a {what} ({said})", architecture=without)


def _cpu_time_at(needs: TaskNeeds, site: SiteView) -> int:
    """CPU time (HS06 seconds) that a site's limit leaves for a job; 1 where it leaves none."""
    left = capacity_hs06s(
        site.max_walltime_s,
        cores=needs.cores_at(site),
        core_power=site.core_power,
        efficiency_percent=needs.cpu_efficiency_percent,
        base_s=needs.base_walltime_s,
    )
    return max(left, 1)


def _of_time(needs: TaskNeeds, ratio: float) -> Iterator[Remedy]:
    """Jobs of another length: of as many files or events as fit, where the task fixes them, or of less time than is stated.

    How many events a job has stays as it was submitted.
    """
    fits = floor if ratio <= 1 else ceil
    of_size = needs.cpu_hs06s > 0 or needs.walltime_s_per_mb > 0
    files, events = (fits(fixed * ratio) if of_size else 0 for fixed in (needs.files_a_job, needs.events_a_job))
    if 0 < files != needs.files_a_job:
        what = f"Make jobs of {plural(files, 'file')} (nFilesPerJob; now {needs.files_a_job})"
        yield replace(by_user(what, **_scaled(needs, files / needs.files_a_job)), kind="files a job")
    elif 0 < events != needs.events_a_job:
        now = f"(nEventsPerJob; now {needs.events_a_job})"
        what = f"Kill the task and submit it again, under another name and with {plural(events, 'event')} a job {now}"
        yield replace(by_user(what, **_scaled(needs, events / needs.events_a_job)), kind="events a job")
    if ratio <= 1 and (of_size or needs.walltime_s * ratio >= 1):
        yield replace(_less_time(needs, ratio), kind="less time")
    elif of_size and not (needs.files_a_job or needs.events_a_job):
        part = ceil(ratio * 100)
        longer = by_user(f"Make jobs {part} % as long as now (more files a job)", **_scaled(needs, part / 100))
        yield replace(longer, kind="length")


def _less_time(needs: TaskNeeds, ratio: float) -> Remedy:
    part, unless = _percent(ratio), "if its jobs need no more"
    said = f"{part:.12f}".rstrip("0").rstrip(".")
    if needs.cpu_hs06s > 0:
        what = f"Lower the cpuTime of the task to {said} % of what it is, {unless}"
        return by_user(what, cpu_hs06s=needs.cpu_hs06s * part / 100, least_cpu_hs06s=needs.least_cpu_hs06s * part / 100)
    if needs.walltime_s_per_mb > 0:
        what = f"Lower the walltime of the task to {said} % of what it is, {unless}"
        return by_user(what, walltime_s_per_mb=needs.walltime_s_per_mb * part / 100)
    least = floor(needs.walltime_s * ratio)
    what = f"Lower the walltime of the task from {needs.walltime_s} to {least} s, {unless}"
    return by_user(what, walltime_s=least)


def _scaled(needs: TaskNeeds, part: float) -> dict[str, Any]:
    """What jobs of that part of the present files or events need."""
    return {
        "cpu_hs06s": needs.cpu_hs06s * part,
        "least_cpu_hs06s": needs.least_cpu_hs06s * part,
        "atom_mb": needs.atom_mb * part,
        "effective_mb": max(needs.effective_mb * part, 1.0),
        "atom_events": ceil(needs.atom_events * part),
    }


def of_choice(needs: TaskNeeds, grid: Grid) -> Iterator[Remedy]:
    """Sites other than those that the task names. The names of an open task cannot be changed, only its site."""
    free = {"preassigned_site": "", "listed_sites": [], "included_sites": []}
    if needs.excluded_sites:
        what = f"Kill the task and run it again (incexec) with an excludedSite other than {some(needs.excluded_sites)}"
        yield by_user(what, excluded_sites=[])
    if needs.preassigned_site or needs.listed_sites or needs.included_sites:
        may = allowed(needs, grid)
        named = some(may.unknown or _bound_to(needs))
        what = f"Reassign the task to a site other than {named}"
        yield replace(by_user(what, **free), who="production")
    if needs.cloud:
        yield replace(by_user(f"Reassign the task to a cloud other than {needs.cloud}", cloud=""), who="production")


def _bound_to(needs: TaskNeeds) -> tuple[str, ...]:
    return (needs.preassigned_site,) if needs.preassigned_site else needs.listed_sites or needs.included_sites


def by_user(what: str, **values: Any) -> Remedy:
    return Remedy(what, "user", tuple(change_line("needs", name, value) for name, value in values.items()))


def change_line(place: str, name: str, value: Any) -> str:
    return f"{place}.{name}={json.dumps(value)}"


def ratio_of(skip: Skip, fixed: float = 0) -> float | None:
    """What is offered as a part of what is needed, both without what each job needs whatever its size; None where nothing is
    compared."""
    if skip.gap is None:
        return None
    need, offer = skip.values[:2]
    assert isinstance(need, int | float) and isinstance(offer, int | float)
    need, offer = need - fixed, offer - fixed
    return float(offer / need) if need > 0 and offer > 0 else None


def _percent(ratio: float) -> float:
    """In per cent, rounded down: whole ones, below 1 with two digits."""
    percent = ratio * 100
    if percent >= 1:
        return floor(percent)
    scale = 10.0 ** (1 - floor(log10(percent)))
    return floor(percent * scale) / scale


def some(names: Sequence[str], most: int = SHOWN) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
