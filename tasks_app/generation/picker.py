"""Hot path: which files the next jobs are made of. Files that come back first, then those behind the dataset's cursor.

A file is found again only if it stands behind the cursor or in `file_retries`. Whoever makes a file ready that the cursor
may have passed (after a failure, when it was pending, when a command gives it new attempts) writes it there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import psycopg

from tasks_app.generation.rules.sources import MOST_SECONDARY, DatasetRow, Order, Picked
from tasks_app.params.dataset_attributes import is_tracked
from tasks_app.splitting.chunk import InputFile

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
   AND greatest(coalesce(c.ramcount, 0), %(least)s) <> ALL(%(without)s::bigint[]){{more}}
 ORDER BY {{columns}} LIMIT %(limit)s
"""
# Packages of a workflow that are on hold keep their files.
_NOT_HELD = """
   AND coalesce(c.boundaryid, -1) <> ALL(ARRAY(
       SELECT p.boundary FROM workflow_packages p WHERE p.jeditaskid = %(task)s AND p.is_held))"""
_ORDERED = {
    Order.BLOCK: _IN_ORDER.format(more="", columns="c.lumiblocknr, c.lfn, c.startevent, c.fileid"),
    Order.GROUP: _IN_ORDER.format(more=_NOT_HELD, columns="c.boundaryid, c.fileid"),
}
_OF_GROUPS = f"""
SELECT {FIELDS}, {_PAST} FROM jedi_dataset_contents c
 WHERE {_READY} AND c.boundaryid = ANY(%(groups)s::bigint[]) ORDER BY c.boundaryid, c.fileid
"""
_OF_JOBS = f"""
SELECT {FIELDS}, {_PAST} FROM jedi_dataset_contents c
 WHERE {_READY} AND c.pandaid = ANY(%(jobs)s::bigint[]) AND c.fileid = ANY(ARRAY({_WAITING})) ORDER BY c.fileid
"""


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
    if dataset.order is not None:
        cursor.execute(_ORDERED[dataset.order], {**values, "least": least, "without": list(without)})
        picked = _with_past(cursor.fetchall())
        return replace(picked, back=0, is_cut=len(picked.files) == limit)
    if without:
        cursor.execute(_RETRIES_BUT, {**values, "least": least, "without": list(without)})
    else:
        cursor.execute(_RETRIES, values)
    picked = _with_past(cursor.fetchall())
    files = [*picked.files]
    if picked.back < limit:
        cursor.execute(_NEW, {**values, "limit": limit - picked.back})
        files += [InputFile._make(row) for row in cursor.fetchall()]
    return replace(picked, files=files, is_cut=len(files) == limit)


def pick_of_groups(cursor: psycopg.Cursor[Any], task_id: int, dataset: DatasetRow, groups: Collection[int]) -> Picked:
    """The files of these groups."""
    cursor.execute(_OF_GROUPS, {"task": task_id, "dataset": dataset.id, "groups": sorted(groups)})
    return replace(_with_past(cursor.fetchall()), back=0)


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
