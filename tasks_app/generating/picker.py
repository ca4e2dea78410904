"""Hot path: which files the next jobs are made of. Files that come back first, then those behind the dataset's cursor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tasks_app.refining.attributes import Attributes
from tasks_app.splitting.chunk import Chunk, InputFile, Secondary

MOST_SECONDARY = 10_000
_FIELDS = """c.fileid, c.lfn, coalesce(c.fsize, 0), c.nevents, c.startevent, c.endevent, c.firstevent, c.lumiblocknr,
       c.boundaryid, coalesce(c.attemptnr, 0)"""

# No join: without good statistics it would read the whole dataset to find a few files.
_RETRIES = f"""
SELECT {_FIELDS}, c.pandaid, coalesce(c.failedattempt, 0) FROM jedi_dataset_contents c
 WHERE c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.status = 'ready'
   AND c.fileid = ANY(ARRAY(SELECT r.fileid FROM file_retries r WHERE r.jeditaskid = %(task)s AND r.datasetid = %(dataset)s
                             ORDER BY r.fileid LIMIT %(limit)s))
 ORDER BY c.fileid
"""  # noqa: S608 - constants of ours
_NEW = f"""
SELECT {_FIELDS} FROM jedi_dataset_contents c
 WHERE c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.fileid > %(cursor)s AND c.status = 'ready'
 ORDER BY c.fileid LIMIT %(limit)s
"""  # noqa: S608
_ALL = f"""
SELECT {_FIELDS} FROM jedi_dataset_contents c
 WHERE c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.status = 'ready' ORDER BY c.fileid LIMIT %(limit)s
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """What generation reads of a dataset."""

    id: int
    name: str
    type: str
    stream: str
    attributes: str
    cursor: int
    files: int
    files_left: int


@dataclass(slots=True)
class Picked:
    """Files of one dataset for the next jobs. `old_jobs`: which job used a file before; `failures`: how often it failed."""

    files: list[InputFile]
    old_jobs: dict[int, int] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)


def is_tracked(attributes: str) -> bool:
    """Whether each file of the dataset is used once and counted. Files that every job may take again are not."""
    given = Attributes.parse(attributes)
    return not any(word in given for word in ("nosplit", "repeat", "ru"))


def pick(cursor: psycopg.Cursor[Any], task_id: int, dataset: DatasetRow, limit: int) -> Picked:
    """Up to `limit` files, in the order in which they are to be used. Nothing is written."""
    values = {"task": task_id, "dataset": dataset.id, "cursor": dataset.cursor, "limit": limit}
    if not is_tracked(dataset.attributes):
        cursor.execute(_ALL, {**values, "limit": min(limit, MOST_SECONDARY)})
        return Picked([InputFile._make(row) for row in cursor.fetchall()])
    cursor.execute(_RETRIES, values)
    back = cursor.fetchall()
    picked = Picked(
        [InputFile._make(row[:10]) for row in back],
        {row[0]: row[10] for row in back if row[10]},
        {row[0]: row[11] for row in back},
    )
    if len(back) < limit:
        cursor.execute(_NEW, {**values, "limit": limit - len(back)})
        picked.files += [InputFile._make(row) for row in cursor.fetchall()]
    return picked


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
        files_per_job=given.whole("np"),
        event_ratio=given.values.get("er"),
        reusable="ru" in given,
    )


def secondary_limit(dataset: DatasetRow, masters: int, jobs: int) -> int:
    """Files of a secondary dataset that are read for that many master files and jobs."""
    given = Attributes.parse(dataset.attributes)
    if not is_tracked(dataset.attributes) or "er" in given:
        return MOST_SECONDARY
    each_job = given.whole("np")
    # A ratio is rounded up once a job.
    return each_job * jobs if each_job else math.ceil(given.ratio * masters) + jobs


def chunk_of(master: DatasetRow, picked: Picked, secondaries: Sequence[tuple[DatasetRow, Picked]]) -> Chunk:
    return Chunk(master.id, picked.files, tuple(secondary_of(row, files.files) for row, files in secondaries))
