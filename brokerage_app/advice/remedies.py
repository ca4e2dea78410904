"""What would let a blocked task run: changes that are tried by deciding again, and only those that help are returned. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any, Final

from brokerage_app.advice import whatif
from brokerage_app.advice.hardware_advice import entered
from brokerage_app.advice.largest import most_of
from brokerage_app.advice.task_remedies import Remedy, change_line, not_express, of_choice, of_needs, ratio_of, some
from brokerage_app.advice.whatif import ChangeError, Conditions, Decide
from brokerage_app.brokers.deciding import STATUS, allowed
from brokerage_app.formulas.walltime import walltime_at
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import EXPRESS_PRIORITY, TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import Blocked
from jedisite.refusals import Fixer

MOST: Final = 4
"""Remedies that are told."""
MOST_ASKED: Final = 3000
"""Sites that brokers are asked for until no more changes are tried: a decision asks all, a sixth of a millisecond each."""
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
ENOUGH_GB: Final = 10_000


@dataclass(frozen=True, slots=True)
class Found:
    """The changes that help, and the number of queues where a change exists but was not tried because the grid is large."""

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
    """Changes that may help, cheapest first: of the task's requirements, of its allowed sites, of the sites.

    With the queue that a change is of; "" is none.
    """
    for skip in (*near[:1], *also[:1]):
        yield from (("", one) for one in of_needs(needs, skip, grid))
    yield from (("", one) for one in of_choice(needs, grid))
    yield from ((_queue(skip, grid), one) for skip in near for one in _at(needs, skip, grid))
    yield from _of_both(needs, grid, near, also)
    if needs.priority >= EXPRESS_PRIORITY:
        # What comes behind the objection may be that the link is too slow for express work.
        lower = not_express(needs)
        for queue, one in ((_queue(skip, grid), one) for skip in near[:MOST] for one in _at(needs, skip, grid)):
            both = f"{one.what}, and have an operator {lower.what}"
            yield queue, replace(one, what=both, lines=(*one.lines, *lower.lines))


def _of_both(needs: TaskNeeds, grid: Grid, near: Sequence[Skip], also: Sequence[Skip]) -> Iterator[tuple[str, Remedy]]:
    """Two changes: of the queue that the task names, or of its choice, and of a queue of a nucleus that refuses as well."""
    may = allowed(needs, grid).names
    if not also or any(skip.site in may for skip in also):
        return
    own = [one for skip in near[:1] if skip not in also for one in _at(needs, skip, grid)]
    for one in (*own, *of_choice(needs, grid)):
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


def _of_nucleus(grid: Grid, skip: Skip) -> Iterator[Remedy]:
    """The storages of the outputs of a nucleus."""
    named = _named(skip, grid)
    if skip.code == codes.NUCLEUS_SPACE and named:
        least, left = skip.values[:2]
        assert isinstance(least, int | float) and isinstance(left, int | float)
        missing = ceil(least - left)
        lines = tuple(
            change_line(f"endpoint.{one}", "space_free_gb", (grid.endpoints[one].space_free_gb or 0) + missing)
            for one in named
        )
        yield Remedy(f"Have {missing} GB freed at {some(named)}, or DISK_THRESHOLD lowered", "site", lines)
    elif skip.code in (codes.NUCLEUS_READ_DOWN, codes.NUCLEUS_WRITE_DOWN) and named:
        yield _usable_again(named, grid)


def _usable_again(down: Sequence[str], grid: Grid) -> Remedy:
    lines = tuple(change_line(f"endpoint.{one}", "states", {}) for one in down)
    if away := [one for one in down if grid.endpoints[one].is_away]:
        return Remedy(f"Have the folder of {some(away)} mounted again, or its disk mended", "site", lines)
    if closed := [one for one in down if grid.endpoints[one].closed]:
        return Remedy(f"Have space freed at {some(closed)}, or have it mended", "site", lines)
    return Remedy(f"Have the blacklisting of {some(down)} lifted", "site", lines)


def _of_site(needs: TaskNeeds, site: SiteView, grid: Grid, skip: Skip) -> Iterator[Remedy]:
    """Settings are those of the queue: what was refused may be a pseudo queue of it, whose limits nobody can set."""
    queue = grid.sites.get(site.queue, site)
    name, code, ratio = queue.name, skip.code, ratio_of(skip)

    def at_site(what: str, who: Fixer = "site", **values: Any) -> Remedy:
        return Remedy(what, who, tuple(change_line(f"site.{name}", k, v) for k, v in values.items()))

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
        yield at_site(f"Have {name} configured to accept this kind of processing", switches=left)
    elif code == codes.NO_GPU:
        for one in entered(needs.architecture, queue):
            yield replace(at_site(f"If {name} has such GPUs, have them {one.what}", **one.changes), kind="gpu")
    elif code in _PUBLISHED:
        what = f"Have the software installed and published at {name} (its software tags, or ANY among its releases)"
        yield at_site(what, releases=["ANY"])
    elif code == codes.STORAGE_FULL:
        full = _named(skip, grid)
        own = (change_line(f"site.{name}", "space_gb", None),) if site.space_gb is not None else ()
        lines = tuple(change_line(f"endpoint.{one}", "space_free_gb", ENOUGH_GB) for one in full or _used(site, grid))
        yield Remedy(f"Have space freed at {some(full or site.outputs or (name,))}", "site", (*own, *lines))
    elif code in _DOWN:
        down = _named(skip, grid) or [one for one in _used(site, grid) if grid.endpoints[one].states]
        yield _usable_again(down, grid)
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
                line = change_line(f"site.{name}", limit.field, value * unit)
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
    codes.HIGH_MEMORY: _Limit("min_memory_mb", "minimum memory of a job (MB)", raises=False),
    codes.SHORT_WALLTIME: _Limit("max_walltime_s", "time limit (s)", of_slot=False),
    codes.LONG_WALLTIME: _Limit("min_walltime_s", "minimum walltime of a job (s)", raises=False, of_slot=False),
    codes.SCRATCH_DISK: _Limit("work_dir_mb", "scratch disk of a {} (MB)"),
}


def _used(site: SiteView, grid: Grid) -> list[str]:
    names = (*site.inputs, *site.outputs, *site.analysis_inputs, *site.analysis_outputs)
    return [name for name in dict.fromkeys(names) if name in grid.endpoints]


def _named(skip: Skip, grid: Grid) -> list[str]:
    """The storage that a refusal is about."""
    said = (name for value in skip.values if isinstance(value, str) for name in value.split(", "))
    return [name for name in said if name in grid.endpoints]
