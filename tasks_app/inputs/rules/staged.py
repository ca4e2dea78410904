"""Inputs that come from tape: which files have to be staged, where to, and how far that is, in words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from tasks_app.domain.transfer_states import ReplicaStatus

RATE_OVER: Final = timedelta(minutes=10)
"""How many files arrive a minute is measured over the last of so much time."""
STAGES: Final = "waits for files from tape"


class Disk(NamedTuple):
    """A storage on disk that takes files."""

    name: str
    site: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Files that a task has had staged, those that are still to come, and how many arrive a minute.

    is_new   the first was asked for less than RATE_OVER ago
    """

    files: int
    left: int
    a_minute: float
    is_new: bool = False


def is_on_tape_only(statuses: Collection[ReplicaStatus]) -> bool:
    """Whether a file has to be staged. One of which nothing is known is taken as it is."""
    return ReplicaStatus.TAPE in statuses and ReplicaStatus.AVAILABLE not in statuses


def destination(disks: Iterable[Disk], tape_sites: Collection[str]) -> str:
    """A disk of the site that has the tape, else the first by name; "" without any."""
    return min(disks, key=lambda disk: (disk.site not in tape_sites, disk.name), default=Disk("", "")).name


def _arrive(rate: float) -> str:
    return "one arrives" if round(rate) == 1 else f"{rate:.0f} arrive"


def staging_in_words(progress: Progress, now: datetime) -> str:
    """`waits for 12 of 40 files from tape, about 3 arrive a minute (as of 12:00:05 UTC)`."""
    if progress.a_minute >= 1:
        speed = f"about {_arrive(progress.a_minute)} a minute"
    elif progress.a_minute > 0:
        speed = f"about {_arrive(max(progress.a_minute * 60, 1))} an hour"
    elif progress.left == progress.files or progress.is_new:
        speed = "none has arrived yet"
    else:
        speed = f"none arrived in the last {RATE_OVER.total_seconds() / 60:.0f} minutes"
    return f"waits for {progress.left} of {progress.files} files from tape, {speed} (as of {now:%H:%M:%S} UTC)"
