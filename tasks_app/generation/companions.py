"""The secondary datasets that go along with a master: what is read of them, which numbers inputs keep, and what happens
when they run short."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from jedisite.vocabulary.words import plural
from tasks_app.generation.picker import DatasetRow, Picked, files_per_job, pick, pick_of_jobs, secondary_limit
from tasks_app.generation.turn_facts import TaskWork
from tasks_app.lifecycle import task_moves
from tasks_app.params.dataset_attributes import Attributes, is_tracked
from tasks_app.splitting.chunk import InputFile, events_of
from tasks_app.splitting.pairing import pair_again

ME = "job_generator"
MOST_COPIES = 5_000
MOST_ROWS = 100_000
"""Rows that are added to a secondary dataset at a time."""


@dataclass(slots=True)
class Companion:
    """A secondary dataset, what was picked of it, and the order in which jobs take it."""

    row: DatasetRow
    picked: Picked
    files: Sequence[InputFile]
    grows: bool


def read(cursor: psycopg.Cursor[Any], work: TaskWork, masters: int, most_jobs: int) -> list[Companion]:
    """Files of every secondary dataset for that many master files and jobs."""
    found = []
    for dataset in work.secondaries():
        row = work.row(dataset)
        picked = pick(cursor, work.task.id, row, secondary_limit(row, masters, most_jobs))
        found.append(Companion(row, picked, picked.files, dataset.state == "mutable"))
    return found


def paired(
    cursor: psycopg.Cursor[Any],
    work: TaskWork,
    files: Sequence[InputFile],
    old_jobs: dict[int, int],
    companions: Sequence[Companion],
) -> Sequence[InputFile]:
    """The master's files in the order in which they meet the numbers that they had; sequences are put in order too."""
    sequence = next((c for c in companions if c.row.is_sequence), None)
    again = {file.file_id: old_jobs[file.file_id] for file in files if file.file_id in old_jobs}
    if sequence is None or not again or not work.keeps_numbers or work.in_order:
        return files
    own = pick_of_jobs(cursor, work.task.id, sequence.row, set(again.values()))
    picked = sequence.picked
    known = {file.file_id for file in picked.files}
    more = [file for file in own.files if file.file_id not in known]
    sequence.picked = Picked(
        [*more, *picked.files], {**picked.old_jobs, **own.old_jobs}, {}, picked.back + len(more), picked.is_cut
    )
    pairs = pair_again(
        files,
        again,
        sequence.picked.files,
        sequence.picked.old_jobs,
        ratio=Attributes.parse(sequence.row.attributes).ratio,
        per_job=files_per_job(sequence.row),
    )
    sequence.files = pairs.numbers
    return pairs.masters


def add_copies(
    cursor: psycopg.Cursor[Any], work: TaskWork, companion: Companion, masters: Sequence[InputFile], jobs: int
) -> int:
    """Give a secondary dataset that runs short fresh rows for these master files. Returns how many.

    Every file of the dataset is used once more, or as often as it takes, and the first time the log of the task says so;
    a sequence goes on with its next numbers. A dataset that still grows is waited for.
    """
    row = companion.row
    if companion.grows or not is_tracked(row.attributes) or "LX" in work.rule:
        return 0
    if row.is_sequence:
        wanted = _files_wanted(row, masters, jobs) - len(companion.files)
        return _add(cursor, work, row, _MORE_NUMBERS, copies=min(max(wanted, 1), MOST_ROWS))
    cursor.execute(_DISTINCT_COUNT, {"task": work.task.id, "dataset": row.id})
    files, events, names, rows = cursor.fetchone() or (0, 0, 0, 0)
    if not files:
        return 0
    ratio = Attributes.parse(row.attributes).values.get("er")
    if ratio is None:
        copies = math.ceil((_files_wanted(row, masters, jobs) - len(companion.files)) / files)
    elif events:
        have = sum(map(events_of, companion.files))
        copies = math.ceil((ratio * sum(map(events_of, masters)) - have) / events)
    else:
        return 0
    copies = max(1, min(copies, MOST_COPIES, MOST_ROWS // files))
    if rows == files:
        they = "it is" if names == 1 else "they are"
        said = f"The secondary dataset {row.name} has {plural(names, 'file')}, too few for all jobs: {they} used again."
        task_moves.note_on_task(work.task.id, by=ME, reason=said)
    return _add(cursor, work, row, _COPIES, copies=copies)


def _files_wanted(row: DatasetRow, masters: Sequence[InputFile], jobs: int) -> int:
    each_job = files_per_job(row)
    if each_job:
        return each_job * min(jobs, len(masters))
    # A ratio is rounded up once a job, so one job more is the least that may be needed.
    return math.ceil(Attributes.parse(row.attributes).ratio * len(masters))


_OF_DATASET = """jeditaskid = %(task)s AND datasetid = %(dataset)s
       AND status NOT IN ('lost', 'missing', 'broken', 'pending', 'staging')"""
_DISTINCT_COUNT = f"""
SELECT count(*), coalesce(sum(events), 0)::bigint, count(DISTINCT lfn), coalesce(sum(rows), 0)::bigint FROM (
    SELECT lfn, count(*) AS rows,
           (array_agg(coalesce(endevent - startevent + 1, nevents, 0) ORDER BY fileid))[1] AS events
      FROM jedi_dataset_contents WHERE {_OF_DATASET} GROUP BY lfn, startevent) d
"""  # noqa: S608
_COPIED = """guid, type, fsize, checksum, scope, maxattempt, nevents, keeptrack, startevent, endevent, firstevent, maxfailure,
       lumiblocknr, boundaryid, surl"""
# The shuffled order is the task's own: a repeated statement gives the same.
_COPIES = f"""
INSERT INTO jedi_dataset_contents (jeditaskid, datasetid, lfn, status, attemptnr, failedattempt, ramcount, {_COPIED})
SELECT jeditaskid, datasetid, lfn, 'ready', 0, 0, 0, {_COPIED} FROM (
    SELECT DISTINCT ON (lfn, startevent) * FROM jedi_dataset_contents WHERE {_OF_DATASET} ORDER BY lfn, startevent, fileid) d
 CROSS JOIN generate_series(1, %(copies)s::int) copy
 ORDER BY copy, CASE WHEN %(random)s THEN md5(d.fileid || ' ' || copy) END, d.fileid
"""  # noqa: S608
_MORE_NUMBERS = f"""
INSERT INTO jedi_dataset_contents (jeditaskid, datasetid, lfn, status, attemptnr, failedattempt, ramcount, {_COPIED})
SELECT jeditaskid, datasetid, (lfn::bigint + copy)::text, 'ready', 0, 0, 0, {_COPIED} FROM (
    SELECT * FROM jedi_dataset_contents WHERE jeditaskid = %(task)s AND datasetid = %(dataset)s
     ORDER BY lfn::bigint DESC LIMIT 1) d
 CROSS JOIN generate_series(1, %(copies)s::int) copy ORDER BY copy
"""  # noqa: S608


def _add(cursor: psycopg.Cursor[Any], work: TaskWork, row: DatasetRow, statement: str, *, copies: int) -> int:
    """Add rows and count them on the dataset."""
    values = {
        "task": work.task.id,
        "dataset": row.id,
        "copies": copies,
        "random": "rd" in Attributes.parse(row.attributes),
    }
    cursor.execute(
        f"""WITH made AS ({statement} RETURNING coalesce(endevent - startevent + 1, nevents, 0) AS events)
            UPDATE jedi_datasets d SET nfiles = nfiles + n.files, nfilestobeused = nfilestobeused + n.files,
                   nevents = coalesce(nevents, 0) + n.events, modificationtime = clock_timestamp()
              FROM (SELECT count(*) AS files, coalesce(sum(events), 0) AS events FROM made) n
             WHERE d.datasetid = %(dataset)s RETURNING n.files""",  # noqa: S608 - statements of this module
        values,
    )
    made = cursor.fetchone()
    return int(made[0]) if made else 0
