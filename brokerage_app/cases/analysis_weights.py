"""Weights of queues for analysis. Pure; formulas of the JEDI brokerage document, ATLAS Analysis Job Brokerage.

Three base weights: `original` from jobs that run and wait; `new`, from the room that the user has at each queue and from
how well the class of the queue fits the class of the task; `refined`, which gives the jobs of this round to the classes
of queues in turn and divides each class's by the user's room. The base is multiplied by what is there of the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from brokerage_app.policy.classes import SiteClass, TaskClass

BaseWeight = Literal["original", "new", "refined"]
BASE_WEIGHTS: Final[tuple[BaseWeight, ...]] = ("original", "new", "refined")
SHARES_WITH_CLASSES: Final = frozenset({"User Analysis", "Express Analysis"})

SMALL: Final = 0.01
SMALLER: Final = 0.001
"""Weights of classes of queues that do not fit: not 0, so that they are used when nothing else is there."""
BOOTSTRAP_RUNNING: Final = 20
GB: Final = 1024
DISK_GB: Final = 10
TAPE_GB: Final = 1000
LEAST: Final = 2.0**-20

Factors = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A queue that is left: the user's room there (may be below 0), and its class."""

    site: str
    room: float
    site_class: SiteClass = SiteClass.MID


def running_number(
    running: int,
    *,
    batch_jobs: int = 0,
    has_pilots: bool = True,
    slots: int | None = None,
    cores: int = 1,
    starting: int = 0,
) -> int:
    """The number of running jobs that weights are made of: the largest of what a queue has, or is told to have.

    batch_jobs  workers that run or wait in the batch system: they count up to 20 where fewer jobs run
    slots       slots that the queue is told to have (each job takes `cores` of them); 0: what starts counts
    """
    found = running
    if has_pilots and running < BOOTSTRAP_RUNNING and batch_jobs > running:
        found = max(found, min(BOOTSTRAP_RUNNING, batch_jobs))
    if slots is not None:
        found = max(found, slots // max(cores, 1) if slots > 0 else starting)
    return found


def original(running: int, queued: int) -> Factors:
    """(running + 1) / (queued + 1); queued: activated, assigned, starting and defined."""
    return (("running + 1", float(running + 1)), ("1 / (queued + 1)", 1 / (queued + 1)))


def new(candidates: Sequence[Candidate], *, jobs: int, of_class: TaskClass | None) -> dict[str, Factors]:
    """Weight by class times weight by room, for all candidates.

    jobs      estimated number of jobs of this round
    of_class  class of the task; None for shares whose tasks have none
    """
    weights = _room_weights(candidates, jobs)
    return {
        one.site: (
            ("fit of the queue's class", _fit(of_class, one.site_class, jobs)),
            ("part of the user's room", weights[one.site]),
        )
        for one in candidates
    }


def _room_weights(candidates: Sequence[Candidate], jobs: int) -> dict[str, float]:
    """What each queue's room exceeds an equal part of the jobs by, over what all together do.

    Where the room of all does not exceed the jobs the formula says nothing: then by room, or equal where there is none.
    """
    most = sum(one.room for one in candidates) - jobs
    if most > 0:
        part = jobs / len(candidates)
        return {one.site: max((one.room - part) / most, 0.0) for one in candidates}
    rooms = {one.site: max(one.room, 0.0) for one in candidates}
    total = sum(rooms.values())
    return {site: room / total if total > 0 else 1 / len(rooms) for site, room in rooms.items()}


def _fit(of_class: TaskClass | None, site_class: SiteClass, jobs: int) -> float:
    most = float(jobs)
    if of_class is None:
        return most
    if of_class is TaskClass.B:
        fits = {SiteClass.HI: SMALLER, SiteClass.MID: most, SiteClass.LO: SMALL}
    elif of_class is TaskClass.C:
        fits = {SiteClass.HI: SMALLER, SiteClass.MID: SMALL, SiteClass.LO: most}
    else:
        fits = {SiteClass.HI: most, SiteClass.MID: SMALL, SiteClass.LO: SMALLER}
    return fits[site_class]


def refined(
    candidates: Sequence[Candidate], *, jobs: int, of_class: TaskClass | None, merging: bool = False
) -> dict[str, Factors]:
    """The jobs of each class of queues, divided by the user's room there; with a least weight for every queue.

    Without a class of the task all queues are one class, which gets all jobs.
    """
    # Less than a millionth of a job is no room: dividing by it would give weights without end.
    rooms = {one.site: one.room if one.room > LEAST else 0.0 for one in candidates}
    groups: dict[SiteClass | None, list[str]] = {}
    for one in candidates:
        groups.setdefault(None if of_class is None else one.site_class, []).append(one.site)
    total = {key: sum(rooms[site] for site in sites) for key, sites in groups.items()}
    jobs_of: dict[SiteClass | None, float] = {None: float(jobs)}
    if of_class is not None:
        by_class = _jobs_by_class(of_class, {one: total.get(one, 0.0) for one in SiteClass}, jobs)
        jobs_of = {one: by_class[one] for one in by_class}
    found: dict[str, Factors] = {}
    for key, sites in groups.items():
        given = max(jobs_of[key], 0.0)
        for site in sites:
            part = _part(rooms[site], total[key], len(sites), given, merging=merging)
            found[site] = (
                (("jobs for the queue's class", given), ("part of the user's room", part + LEAST / given))
                if given > 0
                else (("least weight", LEAST),)
            )
    return found


def _jobs_by_class(of_class: TaskClass, room: Mapping[SiteClass, float], jobs: int) -> dict[SiteClass, float]:
    hi, mid, lo = SiteClass.HI, SiteClass.MID, SiteClass.LO
    left = min(float(jobs), sum(room.values()))
    if of_class is TaskClass.C:
        return {hi: SMALLER, mid: SMALLER, lo: left}
    if of_class is TaskClass.B:
        at_mid = min(left, room[mid])
        moved = 0.1 if at_mid > 0 else 0.0
        return {hi: SMALLER, mid: at_mid - moved, lo: left - at_mid + moved}
    at_hi = min(left, room[hi])
    at_mid = min(left - at_hi, room[mid])
    at_lo = left - at_hi - at_mid
    if at_hi > 0:
        at_hi, at_mid, at_lo = at_hi - 0.052, at_mid + 0.05, at_lo + 0.002
    return {hi: at_hi, mid: at_mid, lo: at_lo}


def _part(room: float, total: float, sites: int, given: float, *, merging: bool) -> float:
    left = total - given
    if left <= 0 or merging:
        return room / total if total > 0 else 1 / sites
    return max(room - given / sites, SMALLER * given) / left


def data_weight(on_disk: int, only_on_tape: int) -> float:
    """1 for each dataset on disk, a thousandth for each that is on tape only."""
    return on_disk + 0.001 * only_on_tape


def size_factor(disk_mb: float, tape_mb: float) -> float:
    """For queues that are chosen without regard to input: 1 and a tenth for each whole GB on disk.

    Where nothing is on disk it is a thousandth for each whole GB on tape.
    """
    return 1 + int(disk_mb / GB) / DISK_GB if disk_mb > 0 else 1 + int(tape_mb / GB) / TAPE_GB


def product(factors: Iterable[tuple[str, float]]) -> float:
    result = 1.0
    for _, value in factors:
        result *= value
    return result
