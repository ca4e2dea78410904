"""What would let a blocked task run: changes that are tried by deciding again, and only those that help are told. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any, Final

from brokerage_app.advice import whatif
from brokerage_app.advice.hardware_advice import entered, without_hardware
from brokerage_app.advice.largest import most_of
from brokerage_app.advice.scratch_advice import less_scratch
from brokerage_app.advice.whatif import ChangeError, Conditions, Decide
from brokerage_app.brokers.deciding import STATUS, allowed
from brokerage_app.formulas.walltime import walltime_at
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import EXPRESS_PRIORITY, TaskNeeds
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid, SiteView
from brokerage_app.vocabulary.verdict import Blocked
from jedisite.refusals import Fixer
from jedisite.vocabulary.words import plural

MOST: Final = 4
"""Remedies that are told."""
MOST_ASKED: Final = 3000
"""Sites that brokers are asked for until no more changes are tried: a decision asks all, a sixth of a millisecond each."""
SHOWN: Final = 3
_TIME: Final = frozenset({codes.SHORT_WALLTIME, codes.LONG_WALLTIME})
_UNKNOWN_TIME: Final = frozenset({codes.SHORT_FOR_UNKNOWN, codes.SHORT_FOR_SCOUTS})
_FULL: Final = frozenset({codes.QUEUE_FULL, codes.QUEUE_FULL_OF_TYPE, codes.USER_QUEUE_LONG})
_NONE_QUEUED: Final[Mapping[str, Any]] = {"jobs": {}, "resource_queue_jobs": {}, "users": {}, "queued": 0, "defined": 0}
_DOWN: Final = frozenset(
    {
        codes.INPUT_NOT_READABLE,
        codes.OUTPUT_NOT_WRITABLE,
        codes.STORAGE_NOT_RECEIVING,
        codes.STORAGE_NOT_SENDING,
        codes.SOURCE_NOT_SENDING,
    }
)
_PUBLISHED: Final = frozenset({codes.NO_RELEASE, codes.NO_PLATFORM, codes.NO_CONTAINER})
_HARDWARE: Final = frozenset({codes.NO_GPU, codes.NO_CPU})
ENOUGH_GB: Final = 10_000


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


@dataclass(frozen=True, slots=True)
class Found:
    """The changes that help, and at how many queues there is one and none was tried because the grid is large."""

    remedies: tuple[Remedy, ...] = ()
    untried: int = 0


def helping(conditions: Conditions, found: Blocked, decide: Decide, most: int = MOST) -> tuple[Remedy, ...]:
    """The changes that let at least one site take the jobs, those that need the fewest people first."""
    return search(conditions, found, decide, most).remedies


def search(
    conditions: Conditions, found: Blocked, decide: Decide, most: int = MOST, most_asked: int = MOST_ASKED
) -> Found:
    """The same, and what was left out. Each is tried by deciding again, so advice that leads to the next refusal is not given.

    Queues are tried in the order of how far they came; one change is tried once, for however many queues it is proposed.
    """
    helps: list[Remedy] = []
    tried: set[tuple[str, ...]] = set()
    left = max(MOST, most_asked // max(1, len(conditions.grid.sites)))
    near = (*found.sites, *found.earlier)
    asked: set[str] = set()
    untried: set[str] = set()
    for queue, one in _candidates(conditions.needs, conditions.grid, near, found.also):
        if len(helps) >= most:
            return Found(tuple(helps))
        enough = (other for other in helps if (other.kind and other.kind == one.kind) or {*other.lines} <= {*one.lines})
        if one.lines in tried or any(enough):
            continue
        if left <= 0:
            untried.add(queue)
            continue
        asked.add(queue)
        tried.add(one.lines)
        try:
            other = conditions.under([whatif.parse(line) for line in one.lines])
        except ChangeError:
            continue
        left -= 1
        verdict = decide(other.needs, other.grid, other.configuration)
        if verdict.chosen:
            took = dict.fromkeys(
                other.grid.sites[choice.site].queue if choice.site in other.grid.sites else choice.site
                for choice in verdict.chosen
            )
            helps.append(replace(one, sites=tuple(took)))
    return Found(tuple(helps), len(untried - asked - {""}))


def _queue(skip: Skip, grid: Grid) -> str:
    return grid.sites[skip.site].queue if skip.site in grid.sites else skip.site


def _candidates(
    needs: TaskNeeds, grid: Grid, near: Sequence[Skip], also: Sequence[Skip] = ()
) -> Iterator[tuple[str, Remedy]]:
    """What may help, cheapest first: changes of the task's requirements, of where it may run, of the sites.

    With the queue that a change is of; "" is none.
    """
    for skip in (*near[:1], *also[:1]):
        yield from (("", one) for one in _of_needs(needs, skip, grid))
    yield from (("", one) for one in _of_choice(needs, grid))
    yield from ((_queue(skip, grid), one) for skip in near for one in _at(needs, skip, grid))
    yield from _of_both(needs, grid, near, also)
    if needs.priority >= EXPRESS_PRIORITY:
        # What comes behind the objection may be that the link is too slow for express work.
        lower = _not_express(needs)
        for queue, one in ((_queue(skip, grid), one) for skip in near[:MOST] for one in _at(needs, skip, grid)):
            both = f"{one.what}, and have an operator {lower.what}"
            yield queue, replace(one, what=both, lines=(*one.lines, *lower.lines))


def _of_both(needs: TaskNeeds, grid: Grid, near: Sequence[Skip], also: Sequence[Skip]) -> Iterator[tuple[str, Remedy]]:
    """Two changes: of the queue that the task names, or of its choice, and of a queue of a nucleus that refuses as well."""
    may = allowed(needs, grid).names
    if not also or any(skip.site in may for skip in also):
        return
    own = [one for skip in near[:1] if skip not in also for one in _at(needs, skip, grid)]
    for one in (*own, *_of_choice(needs, grid)):
        for more in _at(needs, also[0], grid):
            both = f"{one.what}, and {more.what[0].lower()}{more.what[1:]}"
            yield (
                _queue(near[0], grid),
                Remedy(both, more.who, (*one.lines, *more.lines), kind=one.kind and f"{one.kind}, both"),
            )


def _at(needs: TaskNeeds, skip: Skip, grid: Grid) -> Iterator[Remedy]:
    if skip.site in grid.sites:
        yield from _of_site(needs, grid.sites[skip.site], grid, skip)
    elif skip.site in grid.nuclei:
        yield from _of_nucleus(grid, skip)


def _not_express(needs: TaskNeeds) -> Remedy:
    now = f"below {EXPRESS_PRIORITY} (currentPriority; now {needs.priority})"
    what = f"lower the priority of the task {now}, so that it is no express work"
    return replace(_user(what, priority=EXPRESS_PRIORITY - 1), who="production")


def _of_nucleus(grid: Grid, skip: Skip) -> Iterator[Remedy]:
    """The storages of the outputs of a nucleus."""
    named = _named(skip, grid)
    if skip.code == codes.NUCLEUS_SPACE and named:
        least, left = skip.values[:2]
        assert isinstance(least, int | float) and isinstance(left, int | float)
        missing = ceil(least - left)
        lines = tuple(
            _line(f"endpoint.{one}", "space_free_gb", (grid.endpoints[one].space_free_gb or 0) + missing)
            for one in named
        )
        yield Remedy(f"Have {missing} GB freed at {_some(named)}, or DISK_THRESHOLD lowered", "site", lines)
    elif skip.code in (codes.NUCLEUS_READ_DOWN, codes.NUCLEUS_WRITE_DOWN) and named:
        yield _usable_again(named)


def _usable_again(down: Sequence[str]) -> Remedy:
    lines = tuple(_line(f"endpoint.{one}", "states", {}) for one in down)
    return Remedy(f"Have {_some(down)} made usable again (blacklisted)", "site", lines)


def _of_needs(needs: TaskNeeds, skip: Skip, grid: Grid) -> Iterator[Remedy]:
    ratio, site = _ratio(skip), grid.sites.get(skip.site)
    # What a job needs besides the memory of each core is not scaled.
    cores = needs.cores_at(site) if site is not None and needs.memory_per_core else 1
    if ratio is not None and skip.code == codes.LOW_MEMORY and not needs.memory_raised:
        each = " a core" if needs.memory_per_core else ""
        for base in dict.fromkeys((0, needs.base_memory_mb)):
            memory = floor(needs.memory_mb * ratio - base * (1 - ratio) / cores)
            what = f"Ask for {memory} MB of memory{each} at most (ramCount; now {needs.memory_mb})"
            if memory > 0:
                yield replace(_user(what, memory_mb=memory), kind="memory")
    elif ratio is not None and skip.code == codes.HIGH_MEMORY:
        memory = ceil(needs.memory_mb * ratio)
        yield _user(f"Ask for {memory} MB of memory at least (ramCount; now {needs.memory_mb})", memory_mb=memory)
    elif ratio is not None and skip.code in (codes.TOO_FEW_CORES, codes.MULTI_CORE_ONLY):
        given = int(skip.plain_values[1])  # type: ignore[arg-type]
        yield _user(f"Ask for {plural(given, 'core')} a job (coreCount; now {needs.cores})", cores=given)
    elif ratio is not None and skip.code in _TIME:
        yield from _of_time(needs, ratio)
        # The time that each job takes whatever its size does not get less with its events.
        if needs.base_walltime_s and (rest := _ratio(skip, needs.base_walltime_s)) is not None:
            yield from _of_time(needs, rest)
    elif skip.code == codes.SLOW_NETWORK and needs.priority >= EXPRESS_PRIORITY:
        yield replace(lower := _not_express(needs), what=f"Have an operator {lower.what}")
    elif ratio is not None and skip.code == codes.SCRATCH_DISK:
        need, offer = skip.plain_values[:2]
        for less in less_scratch(needs, float(need) - float(offer)):  # type: ignore[arg-type]
            yield replace(_user(less.what, **less.needs), who=less.who, kind=less.kind)
    elif skip.code in _UNKNOWN_TIME and not needs.walltime_known:
        most = site.max_walltime_s if site is not None else 0
        least = f", if that is less than the {most} s that {site.queue} allows" if site is not None and most else ""
        yield _user(f"State how long the jobs run (cpuTime){least}", walltime_known=True)
    elif skip.code in _HARDWARE:
        without = without_hardware(needs.architecture, gpu=skip.code == codes.NO_GPU)
        if without != needs.architecture:
            # The architecture of a task that was submitted stays as it is.
            what = "GPU" if skip.code == codes.NO_GPU else "particular CPU"
            said = f"architecture {without}" if without else "architecture left empty"
            again = "Kill the task and submit it again, under another name and"
            yield _user(f"{again} without asking for a {what} ({said})", architecture=without)


def _of_time(needs: TaskNeeds, ratio: float) -> Iterator[Remedy]:
    """Jobs of another length: of as many files or events as fit, where the task fixes them, or of less time than is stated.

    How many events a job has stays as it was submitted.
    """
    fits = floor if ratio <= 1 else ceil
    of_size = needs.cpu_hs06s > 0 or needs.walltime_s_per_mb > 0
    files, events = (fits(fixed * ratio) if of_size else 0 for fixed in (needs.files_a_job, needs.events_a_job))
    if 0 < files != needs.files_a_job:
        what = f"Make jobs of {plural(files, 'file')} (nFilesPerJob; now {needs.files_a_job})"
        yield replace(_user(what, **_scaled(needs, files / needs.files_a_job)), kind="files a job")
    elif 0 < events != needs.events_a_job:
        now = f"(nEventsPerJob; now {needs.events_a_job})"
        what = f"Kill the task and submit it again, under another name and with {plural(events, 'event')} a job {now}"
        yield replace(_user(what, **_scaled(needs, events / needs.events_a_job)), kind="events a job")
    if ratio <= 1 and (of_size or needs.walltime_s * ratio >= 1):
        yield replace(_less_time(needs, ratio), kind="less time")
    elif of_size and not (needs.files_a_job or needs.events_a_job):
        part = ceil(ratio * 100)
        longer = _user(f"Make jobs {part} % as long as they are (more files a job)", **_scaled(needs, part / 100))
        yield replace(longer, kind="length")


def _less_time(needs: TaskNeeds, ratio: float) -> Remedy:
    part, unless = _percent(ratio), "if its jobs need no more"
    if needs.cpu_hs06s > 0:
        what = f"Lower the cpuTime of the task to {part} % of what it is, {unless}"
        return _user(what, cpu_hs06s=needs.cpu_hs06s * part / 100, least_cpu_hs06s=needs.least_cpu_hs06s * part / 100)
    if needs.walltime_s_per_mb > 0:
        what = f"Lower the walltime of the task to {part} % of what it is, {unless}"
        return _user(what, walltime_s_per_mb=needs.walltime_s_per_mb * part / 100)
    least = floor(needs.walltime_s * ratio)
    what = f"Lower the walltime of the task from {needs.walltime_s} to {least} s, {unless}"
    return _user(what, walltime_s=least)


def _scaled(needs: TaskNeeds, part: float) -> dict[str, Any]:
    """What jobs of that part of the present files or events need."""
    return {
        "cpu_hs06s": needs.cpu_hs06s * part,
        "least_cpu_hs06s": needs.least_cpu_hs06s * part,
        "atom_mb": needs.atom_mb * part,
        "effective_mb": max(needs.effective_mb * part, 1.0),
        "atom_events": ceil(needs.atom_events * part),
    }


def _of_choice(needs: TaskNeeds, grid: Grid) -> Iterator[Remedy]:
    """Other sites than those that the task names. What a task names is not changed while it is open, only its place."""
    free = {"preassigned_site": "", "listed_sites": [], "limited_sites": False, "included_sites": []}
    if needs.excluded_sites:
        what = f"Kill the task and run it again (incexec) with another excludedSite than {_some(needs.excluded_sites)}"
        yield _user(what, excluded_sites=[])
    if needs.preassigned_site or needs.listed_sites or needs.included_sites:
        may = allowed(needs, grid)
        named = _some(may.unknown or _bound_to(needs))
        what = f"Reassign the task to another site than {named}"
        yield replace(_user(what, **free), who="production")
    if needs.cloud:
        yield replace(_user(f"Reassign the task to another cloud than {needs.cloud}", cloud=""), who="production")


def _of_site(needs: TaskNeeds, site: SiteView, grid: Grid, skip: Skip) -> Iterator[Remedy]:
    """Settings are those of the queue: what was refused may be a pseudo queue of it, whose limits nobody can set."""
    queue = grid.sites.get(site.queue, site)
    name, code, ratio = queue.name, skip.code, _ratio(skip)

    def at_site(what: str, who: Fixer = "site", **values: Any) -> Remedy:
        return Remedy(what, who, tuple(_line(f"site.{name}", k, v) for k, v in values.items()))

    if code in STATUS:
        yield at_site(f"Have {name} set online", "shifter", status="online")
    elif code in _FULL:
        yield at_site(f"Wait until jobs that are queued at {name} have started", "nobody", **_NONE_QUEUED)
    elif code in (codes.NO_PILOTS, codes.INACTIVE):
        yield at_site(f"Have pilots started at {name}", pilots_3h=1, last_start_s=0.0)
    elif code == codes.ZERO_SHARE:
        yield at_site(f"Have the fair-share policy of {name} changed", policy="")
    elif code == codes.PROCESSING_TYPE:
        left = {k: v for k, v in site.switches.items() if k not in ("allowed_processing", "excluded_processing")}
        yield at_site(f"Have {name} take this kind of processing", switches=left)
    elif code == codes.NO_GPU:
        for one in entered(needs.architecture, queue):
            yield replace(at_site(f"If {name} has such GPUs, have them {one.what}", **one.changes), kind="gpu")
    elif code in _PUBLISHED:
        what = f"Have the software installed and published at {name} (its software tags, or ANY among its releases)"
        yield at_site(what, releases=["ANY"])
    elif code == codes.STORAGE_FULL:
        full = _named(skip, grid)
        own = (_line(f"site.{name}", "space_gb", None),) if site.space_gb is not None else ()
        lines = tuple(_line(f"endpoint.{one}", "space_free_gb", ENOUGH_GB) for one in full or _used(site, grid))
        yield Remedy(f"Have space freed at {_some(full or site.outputs or (name,))}", "site", (*own, *lines))
    elif code in _DOWN:
        yield _usable_again(_named(skip, grid) or [one for one in _used(site, grid) if grid.endpoints[one].states])
    elif code in _LIMITS:
        limit = _LIMITS[code]
        # What the queue's description holds, in its own unit.
        unit = max(1, queue.cores) if limit.of_slot and PER_CORE in queue.switches else 1
        now = getattr(queue, limit.field) // unit
        exact = walltime_at(needs, site) if code == codes.SHORT_WALLTIME and needs.cpu_hs06s > 0 else 0
        for wanted in _limits(site, queue, grid, limit, ratio, exact):
            value = ceil(wanted / unit) if limit.raises else floor(wanted / unit)
            if now and value * unit <= most_of(limit.field, queue.cores):
                of = "core" if unit > 1 else "slot"
                what = f"Have the {limit.title.format(of)} of {name} changed from {now} to {value}"
                line = _line(f"site.{name}", limit.field, value * unit)
                yield Remedy(what, "site", (line,), kind=f"{limit.field} of {name}")


def _limits(site: SiteView, queue: SiteView, grid: Grid, limit: _Limit, ratio: float | None, exact: int) -> list[int]:
    """Values of a queue's limit, the least change first, of which one may be what a job needs: `exact`, where that is known.

    A pseudo queue has the part of a slot that its cores are, so the whole slot is to have as many times more.
    """
    found = {float(exact)} if exact else set()
    if ratio is not None:
        own = getattr(site, limit.field) / ratio
        parts = {one.cores for one in grid.sites.values() if one.parent == queue.name and one.cores > 0}
        slot = max(1, queue.cores)
        found |= {own, *(own * slot / cores for cores in parts if limit.of_slot)}
    return sorted({(ceil if limit.raises else floor)(value) for value in found}, reverse=not limit.raises)


@dataclass(frozen=True, slots=True)
class _Limit:
    """A number of a queue. `of_slot`: it is of the whole slot, of which pseudo queues have a part."""

    field: str
    title: str
    raises: bool = True
    of_slot: bool = True


PER_CORE: Final = "per_core_attr"
"""The switch of queues whose limits are described for each core."""
_LIMITS: Final[Mapping[str, _Limit]] = {
    codes.LOW_MEMORY: _Limit("max_memory_mb", "memory of a {} (MB)"),
    codes.HIGH_MEMORY: _Limit("min_memory_mb", "least memory of a job (MB)", raises=False),
    codes.SHORT_WALLTIME: _Limit("max_walltime_s", "time limit (s)", of_slot=False),
    codes.LONG_WALLTIME: _Limit("min_walltime_s", "least time of a job (s)", raises=False, of_slot=False),
    codes.SCRATCH_DISK: _Limit("work_dir_mb", "scratch disk of a {} (MB)"),
}


def _bound_to(needs: TaskNeeds) -> tuple[str, ...]:
    return (needs.preassigned_site,) if needs.preassigned_site else needs.listed_sites or needs.included_sites


def _user(what: str, **values: Any) -> Remedy:
    return Remedy(what, "user", tuple(_line("needs", name, value) for name, value in values.items()))


def _line(place: str, name: str, value: Any) -> str:
    return f"{place}.{name}={json.dumps(value)}"


def _ratio(skip: Skip, fixed: float = 0) -> float | None:
    """What is offered as a part of what is needed, both without what each job needs whatever its size; None where nothing is
    compared."""
    if skip.gap is None:
        return None
    need, offer = skip.values[:2]
    assert isinstance(need, int | float) and isinstance(offer, int | float)
    need, offer = need - fixed, offer - fixed
    return float(offer / need) if need > 0 and offer > 0 else None


def _percent(ratio: float) -> int:
    return max(1, floor(ratio * 100))


def _used(site: SiteView, grid: Grid) -> list[str]:
    names = (*site.inputs, *site.outputs, *site.analysis_inputs, *site.analysis_outputs)
    return [name for name in dict.fromkeys(names) if name in grid.endpoints]


def _named(skip: Skip, grid: Grid) -> list[str]:
    """The storage that a refusal is about."""
    said = (name for value in skip.values if isinstance(value, str) for name in value.split(", "))
    return [name for name in said if name in grid.endpoints]


def _some(names: Sequence[str], most: int = SHOWN) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
