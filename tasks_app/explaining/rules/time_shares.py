"""How the time of jobs splits between waiting, running and failed attempts, and which part stands out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.domain.states import JobStatus
from tasks_app.domain.words import duration

STANDS_OUT: Final = 0.25
"""Of all time: a wait of that share stands out where there is nothing to compare it with."""
LEAST_WITHOUT_S: Final = 30.0
"""Agents take seconds to make jobs and to end a task: that is not told."""
NOT_TOLD: Final = 0.005
"""A part of less than that of all time, here and elsewhere, has no line."""
FEWEST_PEERS: Final = 10
"""Fewer jobs of others say nothing about what is usual."""


class Part(StrEnum):
    """What a job does with its time. `failed` is all the time of attempts that ended without success, waits included."""

    INPUT = "input"
    HELD = "held"
    PILOT = "pilot"
    START = "start"
    RUN = "run"
    STORE = "store"
    MERGE = "merge"
    FAILED = "failed"


J = JobStatus
PART_OF: Final[Mapping[JobStatus, Part]] = {
    J.PENDING: Part.INPUT,
    J.DEFINED: Part.INPUT,
    J.ASSIGNED: Part.INPUT,
    J.WAITING: Part.HELD,
    J.THROTTLED: Part.HELD,
    J.ACTIVATED: Part.PILOT,
    J.SENT: Part.START,
    J.STARTING: Part.START,
    J.RUNNING: Part.RUN,
    J.HOLDING: Part.STORE,
    J.TRANSFERRING: Part.STORE,
    J.MERGING: Part.MERGE,
}
"""Of every state in which a job can stay."""

TITLES: Final[Mapping[Part, str]] = {
    Part.INPUT: "waiting for input",
    Part.HELD: "held back",
    Part.PILOT: "waiting for a pilot",
    Part.START: "starting",
    Part.RUN: "running",
    Part.STORE: "storing outputs",
    Part.MERGE: "waiting to be merged",
    Part.FAILED: "in failed attempts",
}
TONES: Final[Mapping[Part, str]] = {
    Part.INPUT: "warn",
    Part.HELD: "held",
    Part.PILOT: "wait",
    Part.START: "held",
    Part.RUN: "run",
    Part.STORE: "ok",
    Part.MERGE: "wait",
    Part.FAILED: "bad",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds that jobs have spent, by part; `jobs` is how many jobs that was."""

    jobs: int
    seconds: Mapping[Part, float]

    def mean(self, part: Part) -> float:
        """Seconds a job."""
        return self.seconds.get(part, 0.0) / self.jobs if self.jobs else 0.0

    @property
    def mean_total(self) -> float:
        return sum(self.seconds.values()) / self.jobs if self.jobs else 0.0


@dataclass(frozen=True, slots=True)
class Life:
    """Seconds since a task was submitted, until it ended or now, and in how many of them it had an open job."""

    seconds: float
    with_jobs: float

    @property
    def sentence(self) -> str:
        """That it had no job for long; "" when it had one nearly always."""
        without = self.seconds - self.with_jobs
        if without < STANDS_OUT * self.seconds or without < LEAST_WITHOUT_S:
            return ""
        return f"It had no open job for {duration(without)} of {duration(self.seconds)}: see its timeline."


@dataclass(frozen=True, slots=True)
class Share:
    """One part of the time: of all time in percent, in seconds a job, and in seconds a job of its peers (None: unknown).

    `start` and `width` place it in a bar, in percent.
    """

    part: Part
    start: float
    width: float
    mean_s: float
    peers_s: float | None

    @property
    def title(self) -> str:
        return TITLES[self.part]

    @property
    def tone(self) -> str:
        return TONES[self.part]


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Where the time goes: its parts in the order of a job's life, and the part that stands out, if any does."""

    jobs: int
    peer_jobs: int
    shares: list[Share]
    bottleneck: Part | None
    sentence: str
    without_jobs: str = ""

    def parts(self) -> list[Share]:
        """As the bar draws them."""
        return self.shares

    @property
    def measured(self) -> str:
        """What the numbers are of: "Mean of 500 jobs, compared with 120 other jobs"."""
        peers = f", compared with {plural(self.peer_jobs, 'other job')}" if self.peer_jobs else ""
        return f"Mean of {plural(self.jobs, 'job')}{peers}" if self.jobs > 1 else f"One job{peers}"

    def label(self) -> str:
        return ", ".join(f"{share.title} {share.width:.0f} %" for share in self.shares)


def split(own: Measured, peers: Measured, whose: str, others: str, life: Life | None = None) -> TimeSplit | None:
    """Where the time of some jobs goes, against other jobs; None while no time has passed.

    whose, others   as in "{Its jobs} spend ... against ... of {jobs of other tasks of this kind}"
    """
    total = own.mean_total
    if total <= 0:
        return None
    known = peers if peers.jobs >= FEWEST_PEERS else None
    shares: list[Share] = []
    start = 0.0
    for part in Part:
        mean = own.mean(part)
        usual = known.mean(part) if known else None
        if max(mean, usual or 0) >= NOT_TOLD * total:
            width = round(100 * mean / total, 3)
            shares.append(Share(part, round(start, 3), min(width, max(round(100 - start, 3), 0)), mean, usual))
            start += width
    longest = _bottleneck(own, known)
    return TimeSplit(
        own.jobs,
        known.jobs if known else 0,
        shares,
        longest,
        _sentence(own, known, longest, whose, others),
        life.sentence if life else "",
    )


def _bottleneck(own: Measured, known: Measured | None) -> Part | None:
    """The part that exceeds what is usual by most, and by a quarter of all time; without peers, the longest long wait."""
    beyond = {
        part: own.mean(part) - (known.mean(part) if known else 0.0) for part in Part if known or part is not Part.RUN
    }
    if known and _fails_more(own, known):
        return Part.FAILED
    longest = max(beyond, key=lambda part: beyond[part])
    return longest if beyond[longest] >= STANDS_OUT * own.mean_total else None


def _fails_more(own: Measured, known: Measured) -> bool:
    """Whether a quarter of all time went into failed attempts, and elsewhere less than half of that part: failures are quick."""
    failed = own.mean(Part.FAILED) / own.mean_total
    return failed >= STANDS_OUT and known.mean(Part.FAILED) < failed / 2 * known.mean_total


def _sentence(own: Measured, known: Measured | None, part: Part | None, whose: str, others: str) -> str:
    if part is None:
        most = max(Part, key=own.mean)
        spent = f"{whose} spent {100 * own.mean(most) / own.mean_total:.0f} % of the time {TITLES[most]}"
        return f"{spent}; no part takes much longer than usual." if known else f"{spent}; no wait stands out."
    spent = f"{whose} spent {duration(own.mean(part))} {TITLES[part]}"
    if known is None:
        return f"{spent}, {100 * own.mean(part) / own.mean_total:.0f} % of the time."
    if part is Part.FAILED:
        share, usual = (100 * one.mean(part) / max(one.mean_total, 1e-9) for one in (own, known))
        return f"{whose} spent {share:.0f} % of the time in failed attempts; {others}: {usual:.0f} %."
    return f"{spent}; {others}: {duration(known.mean(part))}."
