"""What the splitter reads: the files of one master dataset and the secondary datasets that go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class InputFile(NamedTuple):
    """One file record: a whole file, or the events `start_event` to `end_event` of it (both included, from 0).

    `size` is the size of the whole file in bytes, `events` the number of events in the whole file. `first_event` is
    the number that the first event gets in the task. `attempt` counts earlier attempts. `memory` is what earlier
    attempts have shown the file to need, in the unit of the task's memory; 0 when nothing is known.
    """

    file_id: int
    lfn: str
    size: int = 0
    events: int | None = None
    start_event: int | None = None
    end_event: int | None = None
    first_event: int | None = None
    lumiblock: int | None = None
    boundary: int | None = None
    attempt: int = 0
    memory: int = 0


def events_of(file: InputFile) -> int:
    """Events of a record; 0 when unknown."""
    if file.start_event is not None and file.end_event is not None:
        return file.end_event - file.start_event + 1
    return file.events or 0


@dataclass(frozen=True, slots=True)
class Secondary:
    """One secondary dataset and how its files go with those of the master.

    Without attributes a job gets as many files as it has of the master, each file once.
    `nosplit`: every job gets all files. `files_per_job`: every job gets this many. `ratio`: files for each file of the
    master. `event_ratio`: files until their events reach this many for each event of the master. `repeat` and
    `reusable`: start again from the first file when they run out; `reusable` never lets one job cross the end.
    """

    dataset_id: int
    files: Sequence[InputFile]
    nosplit: bool = False
    repeat: bool = False
    ratio: float = 1.0
    files_per_job: int | None = None
    event_ratio: float | None = None
    reusable: bool = False


@dataclass(frozen=True, slots=True)
class Chunk:
    """Files of one master dataset, in the order in which they are to be used, with its secondaries.

    Files that must stay together (same boundary, same luminosity block) stand next to each other.
    """

    dataset_id: int
    files: Sequence[InputFile]
    secondaries: tuple[Secondary, ...] = ()


class Group(NamedTuple):
    """The inputs of one job, with the estimates that decided it.

    `secondaries` is in the order of the chunk's. `input_bytes` covers master and secondaries, each file once.
    `output_bytes` and `walltime_s` are estimates, 0 when nothing is known.
    """

    files: Sequence[InputFile]
    secondaries: tuple[Sequence[InputFile], ...]
    input_bytes: int
    output_bytes: int
    events: int
    walltime_s: float


class End(StrEnum):
    """Why a job ended where it did, in the order in which the reasons are looked at."""

    JUMP = "the events do not continue"
    BOUNDARY = "another boundary begins"
    LUMIBLOCK = "another luminosity block begins"
    NAME = "the fields of the name differ"
    FILES = "number of files"
    SIZE = "size"
    WALLTIME = "wall time"
    EVENTS = "number of events"
    OUTPUT = "size of the largest output"
    DISK = "disk of the site"
    TOTAL = "number of files of all datasets"
    INPUT = "no more input"


@dataclass(frozen=True, slots=True)
class Split:
    """Groups, one a job, and the master files that are left.

    Files are left in `rest` when the last group could still grow, when the secondary `short_of` (its dataset id) has
    not enough files for the next job, or when the next job would be shorter than the site's least wall time
    (`too_short`): then another site has to take it. `left_out` holds the files of incomplete jobs that were not to be
    made. `ends` counts why the jobs ended.
    """

    groups: list[Group]
    rest: Sequence[InputFile]
    short_of: int | None = None
    too_short: bool = False
    left_out: Sequence[InputFile] = ()
    ends: Mapping[End, int] = field(default_factory=dict)
