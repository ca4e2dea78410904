"""The datasets that the next jobs read: what was picked of each, and how secondary files go with those of the master."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tasks_app.params.dataset_attributes import Attributes, is_tracked
from tasks_app.splitting.chunk import Chunk, InputFile, Secondary, events_of

MOST_SECONDARY: Final = 10_000
MOST_COPIES: Final = 5_000
MOST_ROWS: Final = 100_000
"""Rows that are added to a secondary dataset at a time."""
SEQUENCE: Final = "seq_number"


class Order(StrEnum):
    """In which order jobs take files that are not used in the order in which they were found."""

    BLOCK = "by luminosity block, and by name in each"
    GROUP = "group by group"


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """What generation reads of a dataset. `files_left`: files that jobs may be made of now; `grows`: more may come.

    With an `order` the files are used in it, and not as they were found, and the cursor stands still.
    """

    id: int
    name: str
    type: str
    stream: str
    attributes: str
    cursor: int
    files: int
    files_left: int
    events: int = 0
    order: Order | None = None
    grows: bool = False

    @property
    def in_order(self) -> bool:
        return self.order is not None

    @property
    def is_sequence(self) -> bool:
        return self.name == SEQUENCE


@dataclass(frozen=True, slots=True)
class Picked:
    """Files of one dataset for the next jobs. `old_jobs`: which job used a file before; `failures`: how often it failed.

    `back`: how many of the files, from the first, have been handed out before. `is_cut`: there may be more.
    """

    files: Sequence[InputFile]
    old_jobs: Mapping[int, int] = field(default_factory=dict)
    failures: Mapping[int, int] = field(default_factory=dict)
    back: int = 0
    is_cut: bool = False

    def memory_levels(self, least: int) -> list[int]:
        """The different amounts of memory that jobs of these files ask for, in the order of the files.

        Files of different memory never share a job; `least` is what every job asks for.
        """
        if not any(file.memory > least for file in self.files):
            return [least] if self.files else []
        return list(dict.fromkeys(max(file.memory, least) for file in self.files))

    def of_memory(self, memory_mb: int, least: int) -> Sequence[InputFile]:
        """The files whose jobs ask for that memory."""
        if memory_mb == least and not any(file.memory > least for file in self.files):
            return self.files
        return [file for file in self.files if max(file.memory, least) == memory_mb]


@dataclass(frozen=True, slots=True)
class Source:
    """A dataset that jobs read, what was picked of it, and the files of that in the order in which jobs take them."""

    dataset: DatasetRow
    picked: Picked
    files: Sequence[InputFile] = ()


def chunk_of(sources: Sequence[Source]) -> Chunk:
    """What the splitter reads: the master, which is the first, and its secondaries."""
    master, *others = sources
    return Chunk(master.dataset.id, master.files, tuple(secondary_of(one.dataset, one.files) for one in others))


def secondary_of(dataset: DatasetRow, files: Sequence[InputFile]) -> Secondary:
    """How the files of a secondary dataset go with the master's, by its attributes."""
    given = Attributes.parse(dataset.attributes)
    return Secondary(
        dataset.id,
        files,
        nosplit="nosplit" in given,
        repeat="repeat" in given,
        ratio=given.ratio,
        files_per_job=files_per_job(dataset),
        event_ratio=given.values.get("er"),
        reusable="ru" in given,
    )


def files_per_job(dataset: DatasetRow) -> int | None:
    """How many files of a secondary dataset each job gets, if it is a number. Of a sequence it is one number."""
    given = Attributes.parse(dataset.attributes)
    number = given.whole("np")
    if number is None and dataset.is_sequence and not any(token.startswith("ratio") for token in given.tokens):
        return 1
    return number


def secondary_limit(dataset: DatasetRow, masters: int, jobs: int) -> int:
    """Files of a secondary dataset that are read for that many master files and jobs."""
    given = Attributes.parse(dataset.attributes)
    if not is_tracked(dataset.attributes) or "er" in given:
        return MOST_SECONDARY
    each_job = files_per_job(dataset)
    # A ratio is rounded up once a job.
    return each_job * min(jobs, masters) if each_job else math.ceil(given.ratio * masters) + jobs


def numbers_lacking(source: Source, masters: Sequence[InputFile], jobs: int) -> int:
    """How many numbers a sequence is to get besides those that were picked."""
    return min(max(_files_wanted(source.dataset, masters, jobs) - len(source.files), 1), MOST_ROWS)


def copies_lacking(source: Source, masters: Sequence[InputFile], jobs: int, files: int, events: int) -> int:
    """How often all files of a secondary dataset that ran short are to be used once more; 0 when that does not help.

    `files` and `events` are those of the dataset, each file once.
    """
    ratio = Attributes.parse(source.dataset.attributes).values.get("er")
    if not files or (ratio is not None and not events):
        return 0
    if ratio is None:
        copies = math.ceil((_files_wanted(source.dataset, masters, jobs) - len(source.files)) / files)
    else:
        have = sum(map(events_of, source.files))
        copies = math.ceil((ratio * sum(map(events_of, masters)) - have) / events)
    return max(1, min(copies, MOST_COPIES, MOST_ROWS // files))


def _files_wanted(row: DatasetRow, masters: Sequence[InputFile], jobs: int) -> int:
    each_job = files_per_job(row)
    if each_job:
        return each_job * min(jobs, len(masters))
    # A ratio is rounded up once a job, so one job more is the least that may be needed.
    return math.ceil(Attributes.parse(row.attributes).ratio * len(masters))
