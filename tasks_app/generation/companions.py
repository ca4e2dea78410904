"""The secondary datasets that go along with a master: what is read of them, which numbers inputs keep, and what happens
when they run short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import psycopg

from jedisite.vocabulary.words import plural
from tasks_app.domain import short_jobs
from tasks_app.generation.picker import pick, pick_of_groups, pick_of_jobs
from tasks_app.generation.rules.sources import (
    DatasetRow,
    Picked,
    Source,
    copies_lacking,
    files_per_job,
    numbers_lacking,
    secondary_limit,
)
from tasks_app.generation.turn_facts import TurnFacts
from tasks_app.lifecycle import task_moves
from tasks_app.params.dataset_attributes import Attributes, is_tracked
from tasks_app.splitting.chunk import InputFile
from tasks_app.splitting.pairing import pair_again

ME = "job_generator"
"""Files that a sentence names."""


def read_sources(
    cursor: psycopg.Cursor[Any],
    turn: TurnFacts,
    row: DatasetRow,
    picked: Picked,
    files: Sequence[InputFile],
    most_jobs: int,
) -> list[Source]:
    """The master with those of its files of which jobs are to be made, and of every secondary dataset what they need."""
    others = []
    for dataset in turn.secondaries():
        other = turn.row(dataset)
        if turn.job_groups is not None and not other.is_sequence and is_tracked(other.attributes):
            found = pick_of_groups(cursor, turn.task.id, other, {f.boundary for f in files if f.boundary is not None})
            others.append(Source(other, found, found.files))
            continue
        found = pick(cursor, turn.task.id, other, secondary_limit(other, len(files), most_jobs))
        others.append(Source(other, found, found.files))
    return _paired(cursor, turn, Source(row, picked, files), others)


def _paired(cursor: psycopg.Cursor[Any], turn: TurnFacts, master: Source, others: Sequence[Source]) -> list[Source]:
    """The master's files in the order in which they meet the numbers that they had, and the sequence in its order."""
    files, old_jobs = master.files, master.picked.old_jobs
    sequence = next((one for one in others if one.dataset.is_sequence), None)
    again = {file.file_id: old_jobs[file.file_id] for file in files if file.file_id in old_jobs}
    if sequence is None or not again or not turn.keeps_numbers or turn.in_order:
        return [master, *others]
    numbers = _with_numbers_of(cursor, turn.task.id, sequence, again)
    pairs = pair_again(
        files,
        again,
        numbers.files,
        numbers.old_jobs,
        ratio=Attributes.parse(sequence.dataset.attributes).ratio,
        per_job=files_per_job(sequence.dataset),
    )
    ordered = Source(sequence.dataset, numbers, pairs.numbers)
    return [replace(master, files=pairs.masters), *(ordered if one is sequence else one for one in others)]


def _with_numbers_of(cursor: psycopg.Cursor[Any], task_id: int, sequence: Source, again: Mapping[int, int]) -> Picked:
    """What was picked of a sequence, and the numbers that older jobs of these files had."""
    picked = sequence.picked
    own = pick_of_jobs(cursor, task_id, sequence.dataset, set(again.values()))
    known = {file.file_id for file in picked.files}
    more = [file for file in own.files if file.file_id not in known]
    return Picked(
        [*more, *picked.files], {**picked.old_jobs, **own.old_jobs}, {}, picked.back + len(more), picked.is_cut
    )


def add_copies(
    cursor: psycopg.Cursor[Any], turn: TurnFacts, short: Source, masters: Sequence[InputFile], jobs: int
) -> int:
    """Give a secondary dataset that runs short fresh rows for these master files. Returns how many.

    Every file of the dataset is used once more, or as often as it takes, and the first time the log of the task says so;
    a sequence goes on with its next numbers. A dataset that still grows is waited for, but where the task would rather use
    its files again (RO of the split rule).
    """
    row = short.dataset
    if (row.grows and not turn.rule.flag("RO")) or not is_tracked(row.attributes) or "LX" in turn.rule:
        return 0
    if row.is_sequence:
        return _add(cursor, turn, row, _MORE_NUMBERS, copies=numbers_lacking(short, masters, jobs))
    cursor.execute(_DISTINCT_COUNT, {"task": turn.task.id, "dataset": row.id})
    files, events, names, rows = cursor.fetchone() or (0, 0, 0, 0)
    copies = copies_lacking(short, masters, jobs, files, events)
    if copies and rows == files:
        they = "it is" if names == 1 else "they are"
        said = f"The secondary dataset {row.name} has {plural(names, 'file')}, too few for all jobs: {they} used again."
        task_moves.note_on_task(turn.task.id, by=ME, reason=said)
    return _add(cursor, turn, row, _COPIES, copies=copies) if copies else 0


def note_left_out(turn: TurnFacts, lfns: Sequence[str]) -> None:
    """The log of the task says which files no job reads, since it would be incomplete."""
    task_moves.note_on_task(turn.task.id, by=ME, reason=short_jobs.noted(lfns))


_OF_DATASET = """jeditaskid = %(task)s AND datasetid = %(dataset)s
       AND status NOT IN ('lost', 'missing', 'pending', 'staging', 'removed')"""
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


def _add(cursor: psycopg.Cursor[Any], turn: TurnFacts, row: DatasetRow, statement: str, *, copies: int) -> int:
    """Add rows and count them on the dataset."""
    values = {
        "task": turn.task.id,
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
