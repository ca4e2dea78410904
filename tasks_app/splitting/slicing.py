"""Event slices of files, and the records of datasets that exist in name only: pseudo masters and sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

PSEUDO_LFN = "pseudo_lfn"


class SourceFile(NamedTuple):
    """A file with events, before slicing."""

    lfn: str
    events: int
    lumiblock: int | None = None


class Slice(NamedTuple):
    """A record to insert. The events are numbered from 0 inside the file, both ends included; None for a whole file
    whose events are not counted. `first_event` is the number of the first event in the task, `boundary` that of the group."""

    lfn: str
    start_event: int | None = None
    end_event: int | None = None
    first_event: int | None = None
    boundary: int | None = None


@dataclass(slots=True)
class Slicer:
    """Cuts files into slices of `per_slice` events, and goes on where it stopped when more files come.

    What a file leaves of a slice continues in the next file, so that jobs get exactly `per_slice` events. With `even`
    every file is cut by itself into slices of nearly the same size, at most `per_slice`. `most_events` ends before
    the slice that would exceed it. With `respect_lumiblock` every luminosity block begins a slice.

    `used`: events that were cut before, from `first_event` on. `begun`: how many of them stand in a slice that the next
    file continues, and `lumiblock` that slice's block. `is_over`: `most_events` are reached. Raises ValueError when
    `per_slice` is not positive.
    """

    per_slice: int
    first_event: int = 1
    even: bool = False
    most_events: int | None = None
    respect_lumiblock: bool = False
    used: int = 0
    begun: int = 0
    lumiblock: int | None = None
    is_over: bool = False

    def __post_init__(self) -> None:
        if self.per_slice <= 0:
            raise ValueError(f"A slice needs at least one event, not {self.per_slice}.")
        self.begun %= self.per_slice

    def cut(self, files: Iterable[SourceFile]) -> Iterator[Slice]:
        """The slices of further files, in order."""
        for file in files:
            if self.is_over:
                return
            size = _even_size(file.events, self.per_slice) if self.even else self.per_slice
            if self.even or (self.respect_lumiblock and file.lumiblock != self.lumiblock):
                self.begun = 0
            self.lumiblock = file.lumiblock
            start = 0
            while start < file.events:
                number = min(size - self.begun, file.events - start)
                if self.most_events is not None and self.used + number > self.most_events:
                    self.is_over = True
                    return
                yield Slice(file.lfn, start, start + number - 1, self.first_event + self.used)
                start += number
                self.used += number
                self.begun = (self.begun + number) % size


def _even_size(events: int, target: int) -> int:
    pieces = max(1, -(-events // target))
    return max(1, -(-events // pieces))


def without_short_tails(files: Iterable[SourceFile], per_slice: int, per_file: int | None) -> Iterator[SourceFile]:
    """Files cut down to what makes complete slices; those with less than one slice are left out."""
    for file in files:
        whole = per_file if per_file and file.events >= per_file else file.events // per_slice * per_slice
        if whole:
            yield file._replace(events=whole)


def pseudo_records(
    *,
    n_events: int | None = None,
    per_slice: int | None = None,
    n_files: int | None = None,
    names: Sequence[str] = (),
    first_event: int = 1,
    even: bool = False,
    records_before: int = 0,
    events_before: int = 0,
) -> Iterator[Slice]:
    """Records of the pseudo master of a task without input datasets.

    With names (the user's own list of physical files) one record a name, numbered so that equal names differ. With
    events, slices of one pseudo file. Otherwise `n_files` records, one if that is not given.

    It goes on behind what was made before: `records_before` without events of their own, and slices of the first
    `events_before` events. One says nothing of the other.
    """
    if names:
        chosen = names[:n_files] if n_files else names
        for number in range(records_before, len(chosen)):
            yield Slice(f"{number:06d}:{chosen[number].rstrip('/').rpartition('/')[2]}")
    elif n_events and (per_slice or (n_files or 1) == 1):
        rest = SourceFile(PSEUDO_LFN, n_events - events_before)
        slicer = Slicer(per_slice or n_events, first_event, even, used=events_before, begun=events_before)
        for piece in slicer.cut([rest]):
            start, end = piece.start_event or 0, piece.end_event or 0
            yield piece._replace(start_event=events_before + start, end_event=events_before + end)
    else:
        single = (n_files or 1) == 1
        for number in range(records_before, n_files or 1):
            yield Slice(PSEUDO_LFN if single else f"{number:06d}:{PSEUDO_LFN}")


def sequence_names(offset: int, length: int) -> Iterator[str]:
    """The records of a `seq_number` dataset: offset+1, offset+2, … as names."""
    return map(str, range(offset + 1, offset + 1 + length))


def sequence_length(
    *,
    num_records: int | None = None,
    n_files: int | None = None,
    n_events: int | None = None,
    events_per_job: int | None = None,
    events_per_file: int | None = None,
    files_per_job: int | None = None,
    master_files: int = 0,
) -> int:
    """How many numbers a `seq_number` dataset gets: one for each job that can come, as far as that is known."""
    if num_records:
        return num_records
    if n_files:
        per_file = -(-events_per_file // events_per_job) if events_per_file and events_per_job else 1
        return n_files * per_file
    if n_events and events_per_job:
        return -(-n_events // events_per_job)
    if n_events and events_per_file and files_per_job:
        return -(-n_events // (events_per_file * files_per_job))
    return max(10_000, master_files)
