"""Hot path: which files the next jobs are made of. Files that come back first, then those behind the dataset's cursor.

A file is found again only if it stands behind the cursor or in `file_retries`. Whoever makes a file ready that the cursor
may have passed (after a failure, when it was pending, when a command gives it new attempts) writes it there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tasks_app.params.dataset_attributes import Attributes, is_tracked
from tasks_app.splitting.chunk import Chunk, InputFile, Secondary

MOST_SECONDARY = 10_000
SEQUENCE = "seq_number"
FIELDS = """c.fileid, c.lfn, coalesce(c.fsize, 0), c.nevents, c.startevent, c.endevent, c.firstevent, c.lumiblocknr,
       c.boundaryid, coalesce(c.attemptnr, 0), coalesce(c.ramcount, 0)"""
_PAST = "c.pandaid, coalesce(c.failedattempt, 0)"
_READY = "c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.status = 'ready'"
_WAITING = "SELECT r.fileid FROM file_retries r WHERE r.jeditaskid = %(task)s AND r.datasetid = %(dataset)s"

# ruff: noqa: S608 - every piece is a constant of this module
# No join: without good statistics it would read the whole dataset to find a few files.
_RETRIES = f"""
SELECT {FIELDS}, {_PAST} FROM jedi_dataset_contents c
 WHERE {_READY} AND c.fileid = ANY(ARRAY({_WAITING} ORDER BY r.fileid LIMIT %(limit)s))
 ORDER BY c.fileid
"""
_RETRIES_BUT = f"""
SELECT {FIELDS}, {_PAST} FROM jedi_dataset_contents c
 WHERE {_READY} AND c.fileid = ANY(ARRAY({_WAITING}))
   AND greatest(coalesce(c.ramcount, 0), %(least)s) <> ALL(%(without)s::bigint[])
 ORDER BY c.fileid LIMIT %(limit)s
"""
_NEW = f"""
SELECT {FIELDS} FROM jedi_dataset_contents c
 WHERE {_READY} AND c.fileid > %(cursor)s ORDER BY c.fileid LIMIT %(limit)s
"""
_ALL = f"SELECT {FIELDS} FROM jedi_dataset_contents c WHERE {_READY} ORDER BY c.fileid LIMIT %(limit)s"
_IN_ORDER = f"""
SELECT {FIELDS}, {_PAST} FROM jedi_dataset_contents c
 WHERE {_READY} AND (c.maxattempt IS NULL OR c.attemptnr < c.maxattempt)
   AND (c.maxfailure IS NULL OR c.failedattempt < c.maxfailure)
   AND greatest(coalesce(c.ramcount, 0), %(least)s) <> ALL(%(without)s::bigint[])
 ORDER BY c.lumiblocknr, c.lfn, c.startevent, c.fileid LIMIT %(limit)s
"""
_OF_JOBS = f"""
SELECT {FIELDS}, {_PAST} FROM jedi_dataset_contents c
 WHERE {_READY} AND c.pandaid = ANY(%(jobs)s::bigint[]) AND c.fileid = ANY(ARRAY({_WAITING})) ORDER BY c.fileid
"""


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """What generation reads of a dataset. `files_left`: files that jobs may be made of now.

    With `in_order` the files are used by luminosity block and name, and the cursor stands still.
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
    in_order: bool = False

    @property
    def is_sequence(self) -> bool:
        return self.name == SEQUENCE


@dataclass(slots=True)
class Picked:
    """Files of one dataset for the next jobs. `old_jobs`: which job used a file before; `failures`: how often it failed.

    `back`: how many of the files, from the first, have been handed out before. `is_cut`: there may be more.
    """

    files: list[InputFile]
    old_jobs: dict[int, int] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    back: int = 0
    is_cut: bool = False

    def memory_levels(self, least: int) -> list[int]:
        """The different amounts of memory that jobs of these files ask for, in the order of the files.

        Files of different memory never share a job; `least` is what every job asks for.
        """
        if not any(file.memory > least for file in self.files):
            return [least] if self.files else []
        return list(dict.fromkeys(max(file.memory, least) for file in self.files))


def pick(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    dataset: DatasetRow,
    limit: int,
    *,
    least: int = 0,
    without: Collection[int] = (),
) -> Picked:
    """Up to `limit` files, in the order in which they are to be used. Nothing is written.

    `without` names memory levels that are left out of files that come back (see `Picked.memory_levels`).
    """
    values = {"task": task_id, "dataset": dataset.id, "cursor": dataset.cursor, "limit": limit}
    if not is_tracked(dataset.attributes):
        cursor.execute(_ALL, {**values, "limit": min(limit, MOST_SECONDARY)})
        return Picked([InputFile._make(row) for row in cursor.fetchall()])
    if dataset.in_order:
        cursor.execute(_IN_ORDER, {**values, "least": least, "without": list(without)})
        picked = _with_past(cursor.fetchall())
        picked.back, picked.is_cut = 0, len(picked.files) == limit
        return picked
    if without:
        cursor.execute(_RETRIES_BUT, {**values, "least": least, "without": list(without)})
    else:
        cursor.execute(_RETRIES, values)
    picked = _with_past(cursor.fetchall())
    if picked.back < limit:
        cursor.execute(_NEW, {**values, "limit": limit - picked.back})
        picked.files += [InputFile._make(row) for row in cursor.fetchall()]
    picked.is_cut = len(picked.files) == limit
    return picked


def pick_of_jobs(cursor: psycopg.Cursor[Any], task_id: int, dataset: DatasetRow, jobs: Collection[int]) -> Picked:
    """Files that these jobs had before and that may be used again."""
    cursor.execute(_OF_JOBS, {"task": task_id, "dataset": dataset.id, "jobs": sorted(jobs)})
    return _with_past(cursor.fetchall())


def _with_past(rows: Sequence[tuple[Any, ...]]) -> Picked:
    return Picked(
        [InputFile._make(row[:-2]) for row in rows],
        {row[0]: row[-2] for row in rows if row[-2]},
        {row[0]: row[-1] for row in rows},
        len(rows),
    )


def secondary_of(dataset: DatasetRow, files: Sequence[InputFile]) -> Secondary:
    """How the files of a secondary dataset go with the master's, by its attributes."""
    given = Attributes.parse(dataset.attributes)
    return Secondary(
        dataset.id,
        files,
        nosplit="nosplit" in given,
        repeat="repeat" in given,
        ratio=given.ratio,
        manytime="manytime" in given,
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


def chunk_of(
    master: DatasetRow, files: Sequence[InputFile], secondaries: Sequence[tuple[DatasetRow, Sequence[InputFile]]]
) -> Chunk:
    return Chunk(master.id, files, tuple(secondary_of(row, others) for row, others in secondaries))
