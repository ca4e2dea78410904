"""The ranges of a job's input files, as blocks: the records of the input cut into pieces of nEventsPerWorker events.

Feeding has cut files into records of nEventsPerJob events before (`tasks_app/splitting/slicing.py`), whose events count
from 0 inside the file. Ranges of events count from 1, both ends included: inside the file with inFilePosEvtNum, else
over all the files of the job, in the order of their names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final, NamedTuple

from tasks_app.inputs.rules.event_numbers import why_not_cut
from tasks_app.splitting.chunk import InputFile, events_of

DEFAULT_ATTEMPTS: Final = 10
"""Attempts of a range when the task says nothing (maxAttemptES)."""


class EventRange(NamedTuple):
    """The first and the last event of a range, counted from 1, both included. The first is its JOB_PROCESSID."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class RangeBlock:
    """Neighbouring ranges of one file that are in the same state: the events `first` to `last` in pieces of `per_range`.

    The last range may be shorter. `attempts` are left to each of them. One range is a block of one. In SQL they are
    `generate_series(first, last, per_range)`. Raises ValueError for a block without events.
    """

    file_id: int
    first: int
    last: int
    per_range: int
    attempts: int = DEFAULT_ATTEMPTS

    def __post_init__(self) -> None:
        if self.per_range < 1 or self.last < self.first:
            raise ValueError(
                f"the events {self.first} to {self.last} in pieces of {self.per_range} are no ranges of file {self.file_id}"
            )

    @property
    def events(self) -> int:
        return self.last - self.first + 1

    @property
    def count(self) -> int:
        """How many ranges it has."""
        return -(-self.events // self.per_range)

    def ranges(self) -> Iterator[EventRange]:
        """Its ranges, in order."""
        for first in range(self.first, self.last + 1, self.per_range):
            yield EventRange(first, min(first + self.per_range - 1, self.last))

    def has(self, process_id: int) -> bool:
        """Whether one of its ranges begins with this event."""
        return self.first <= process_id <= self.last and (process_id - self.first) % self.per_range == 0

    def split(self, number: int) -> tuple[RangeBlock | None, RangeBlock | None]:
        """Its first `number` ranges, and the others; None where there are none."""
        if number <= 0:
            return None, self
        if number >= self.count:
            return self, None
        cut = self.first + number * self.per_range
        return replace(self, last=cut - 1), replace(self, first=cut)

    def without(self, process_ids: Collection[int]) -> list[RangeBlock]:
        """What remains of it when the ranges that begin with these events are taken out, as few blocks as can be."""
        left: list[RangeBlock] = []
        rest: RangeBlock | None = self
        for first in sorted(one for one in set(process_ids) if self.has(one)):
            assert rest is not None
            head, tail = rest.split((first - rest.first) // self.per_range)
            left += [head] if head else []
            assert tail is not None
            rest = tail.split(1)[1]
        return [*left, rest] if rest else left

    def gaps(self, taken: Iterable[RangeBlock]) -> list[RangeBlock]:
        """The events of it that are in none of these blocks of the same file, in its own pieces from the start of each gap."""
        left, first = [], self.first
        for block in sorted(taken, key=attrgetter("first")):
            if first < block.first <= self.last:
                left.append(replace(self, first=first, last=block.first - 1))
            first = max(first, block.last + 1)
        return [*left, replace(self, first=first)] if first <= self.last else left


def cut_ranges(
    files: Iterable[InputFile], per_range: int, *, attempts: int | None = None, in_file: bool = False
) -> list[RangeBlock]:
    """One block of ranges for each record of the master inputs of a job, ordered by the names of the files.

    `per_range` is nEventsPerWorker. `attempts` is maxAttemptES: None and 0 take the default. Without `in_file` the
    events of the files before a file are added to its own numbers. Raises ValueError when the number of events of a
    file is not known, and when `per_range` is not positive.
    """
    blocks: list[RangeBlock] = []
    before = 0
    for file in sorted(files, key=lambda one: (one.lfn, one.start_event or 0, one.file_id)):
        number = events_of(file)
        if not number:
            raise ValueError(why_not_cut(file.lfn, number))
        first = (file.start_event or 0) + 1 + (0 if in_file else before)
        blocks.append(RangeBlock(file.file_id, first, first + number - 1, per_range, attempts or DEFAULT_ATTEMPTS))
        before += number
    return blocks


MOST_EVENTS: Final = 2**31 - 1
"""Of one range: no more fit into the column of its length, and nobody counts them."""


def whole_input(files: Sequence[InputFile]) -> RangeBlock:
    """The one range of a jobset of clones: whoever has it has the whole input, whether its events are known or not.

    It is of the first file, in the order of their names.
    """
    first = min(files, key=lambda one: (one.lfn, one.start_event or 0, one.file_id))
    events = min(sum(events_of(one) or 0 for one in files) or 1, MOST_EVENTS)
    return RangeBlock(first.file_id, 1, events, events)


def joined(blocks: Iterable[RangeBlock]) -> list[RangeBlock]:
    """The same ranges in as few blocks as can be, by file and position."""
    found: list[RangeBlock] = []
    for block in sorted(blocks, key=attrgetter("file_id", "attempts", "per_range", "first")):
        last = found[-1] if found else None
        follows = (
            last is not None
            and (last.file_id, last.attempts, last.per_range) == (block.file_id, block.attempts, block.per_range)
            and last.last + 1 == block.first
            and last.events % last.per_range == 0
        )
        if last is not None and follows:
            found[-1] = replace(last, last=block.last)
        else:
            found.append(block)
    return found


class TakenBlocks(NamedTuple):
    """Blocks that are handed out, and what stays."""

    taken: list[RangeBlock]
    left: list[RangeBlock]


def take(blocks: Sequence[RangeBlock], wanted: int) -> TakenBlocks:
    """The first `wanted` ranges of ordered blocks; the block in which that number is reached is split."""
    taken: list[RangeBlock] = []
    left: list[RangeBlock] = []
    for block in blocks:
        head, tail = block.split(wanted)
        taken += [head] if head else []
        left += [tail] if tail else []
        wanted -= head.count if head else 0
    return TakenBlocks(taken, left)


class Surplus(NamedTuple):
    """A record of a file that its job has already, as a row of JEDI_Events: discarded, PROCESSED_UPTO_EVENTID -1, no events.

    `attempts` is one more than the attempts that the record has had.
    """

    file_id: int
    lfn: str
    attempts: int


class DynamicInput(NamedTuple):
    """Records of a job with a dynamic number of events: what its pilot is told to read, each file once, and the others."""

    files: list[InputFile]
    surplus: list[Surplus]


def dynamic_input(records: Iterable[InputFile]) -> DynamicInput:
    """Of the records of each file the first is the job's input, the others are kept aside (dynamicNumEvents)."""
    files: dict[str, InputFile] = {}
    surplus = []
    for record in records:
        if files.setdefault(record.lfn, record) is not record:
            surplus.append(Surplus(record.file_id, record.lfn, record.attempt + 1))
    return DynamicInput(list(files.values()), surplus)


def records_at_end(job: DynamicInput) -> dict[int, int]:
    """All records that get the outcome of such a job: their ids with the attempts that they had."""
    return {file.file_id: file.attempt for file in job.files} | {one.file_id: one.attempts - 1 for one in job.surplus}
