"""Files of inputs become available, or data management has them no longer. Part of the door for states of files.

Each statement counts on the dataset what it changes. The caller holds the task's row, so that no jobs are made meanwhile.

The picker walks ready files with a cursor that never goes back. A file that becomes ready in front of the cursor is
therefore written to `file_retries`, here and wherever else a file is made ready again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import psycopg

from jedisite.database.sql import numbers, texts
from tasks_app.domain.states import FileStatus
from tasks_app.lifecycle.file_moves import INPUT, before

F = FileStatus
# ruff: noqa: S608 - every piece is a constant of ours
WAITS: Final = before(INPUT, F.LOST)
"""SQL: a file waits for a job. Those that a job has stay its own."""
HAS_ATTEMPT: Final = (
    "(maxattempt IS NULL OR attemptnr < maxattempt) AND (maxfailure IS NULL OR failedattempt < maxfailure)"
)
OF_DATASET: Final = "jeditaskid = %(task)s AND datasetid = %(dataset)s"

# Files in `released` are to be used from now on; what stands in front of the cursor goes to the retries.
_QUEUE = """
    INSERT INTO file_retries (fileid, jeditaskid, datasetid)
    SELECT r.fileid, %(task)s, %(dataset)s FROM released r
      JOIN jedi_datasets d ON d.datasetid = %(dataset)s AND r.fileid <= d.pick_cursor
        ON CONFLICT DO NOTHING"""

_PENDING = f"{OF_DATASET} AND {before(INPUT, F.READY, among=[F.PENDING])}"
_FIRST = f"""
       AND fileid = ANY(ARRAY(SELECT fileid FROM jedi_dataset_contents WHERE {OF_DATASET} AND status = 'pending'
                               ORDER BY fileid LIMIT %(count)s))"""
_RELEASE = f"""
WITH released AS (
    UPDATE jedi_dataset_contents SET status = 'ready' WHERE {_PENDING}{{first}}
    RETURNING fileid),
again AS ({_QUEUE}),
counted AS (
    UPDATE jedi_datasets SET nfilestobeused = nfilestobeused + n.files, modificationtime = clock_timestamp()
      FROM (SELECT count(*) AS files FROM released) n
     WHERE datasetid = %(dataset)s AND n.files > 0)
SELECT count(*) FROM released"""
_BLOCKS = f"""
       AND coalesce(lumiblocknr, -1) < (SELECT coalesce(max(lumiblocknr), 0) FROM jedi_dataset_contents WHERE {OF_DATASET})"""
_GROUPS = f"""
       AND boundaryid = ANY(%(groups)s::bigint[]) AND boundaryid <> ALL(ARRAY(
           SELECT boundaryid FROM jedi_dataset_contents WHERE {OF_DATASET} AND status = 'staging' AND boundaryid IS NOT NULL))"""
_RELEASE_ALL, _RELEASE_FIRST, _RELEASE_BLOCKS, _RELEASE_GROUPS = (
    _RELEASE.format(first=which) for which in ("", _FIRST, _BLOCKS, _GROUPS)
)


def release(cursor: psycopg.Cursor[Any], task_id: int, dataset_id: int, count: int | None) -> int:
    """The first `count` pending files are ready, all of them with None. Returns how many.

    They are taken in the order of their ids, so that none is left behind one that is released.
    """
    statement = _RELEASE_ALL if count is None else _RELEASE_FIRST
    return _number(cursor.execute(statement, {"task": task_id, "dataset": dataset_id, "count": count}))


def release_blocks(cursor: psycopg.Cursor[Any], task_id: int, dataset_id: int) -> int:
    """The pending files of all luminosity blocks but the last are ready, and those of no block. Returns how many."""
    return _number(cursor.execute(_RELEASE_BLOCKS, {"task": task_id, "dataset": dataset_id}))


def release_groups(cursor: psycopg.Cursor[Any], task_id: int, dataset_id: int, groups: Collection[int]) -> int:
    """The pending files of these groups are ready, but of a group of which files are still staging. Returns how many."""
    values = {"task": task_id, "dataset": dataset_id, "groups": numbers(groups)}
    return _number(cursor.execute(_RELEASE_GROUPS, values))


def lose_where(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    dataset_id: int,
    condition: str,
    values: dict[str, Any],
    *,
    to: FileStatus = F.LOST,
) -> int:
    """Files that meet a condition, which is SQL of ours, and wait for a job are lost, or missing. Returns how many."""
    cursor.execute(
        f"""
        WITH before AS (
            SELECT fileid, status FROM jedi_dataset_contents
             WHERE {OF_DATASET} AND {before(INPUT, to)} AND {HAS_ATTEMPT} AND {condition} ORDER BY fileid FOR UPDATE),
        lost AS (
            UPDATE jedi_dataset_contents SET status = %(to)s
             WHERE {OF_DATASET} AND fileid = ANY(ARRAY(SELECT fileid FROM before))
            RETURNING fileid, coalesce(endevent - startevent + 1, nevents, 0) AS events),
        forgotten AS (DELETE FROM file_retries WHERE fileid = ANY(ARRAY(SELECT fileid FROM before))),
        counts AS (SELECT count(*) AS files, coalesce(sum(events), 0) AS events FROM lost),
        counted AS (
            UPDATE jedi_datasets SET nfiles = nfiles - n.files, nfilesmissing = coalesce(nfilesmissing, 0) + n.files,
                   nfilestobeused = greatest(nfilesused, nfilestobeused - (SELECT count(*) FROM before WHERE status = 'ready')),
                   nevents = greatest(0, coalesce(nevents, 0) - n.events), modificationtime = clock_timestamp()
              FROM counts n WHERE datasetid = %(dataset)s AND n.files > 0)
        SELECT files FROM counts""",
        {"task": task_id, "dataset": dataset_id, "to": to, **values},
    )
    return _number(cursor)


_GROUPS_OF = f"""
SELECT DISTINCT boundaryid FROM jedi_dataset_contents
 WHERE {OF_DATASET} AND {WAITS} AND lfn = ANY(%(lfns)s::text[]) AND boundaryid IS NOT NULL"""
_INPUTS = (
    "SELECT DISTINCT datasetid FROM jedi_dataset_contents WHERE jeditaskid = %s AND type IN ('input', 'pseudo_input')"
)


def lose_groups(cursor: psycopg.Cursor[Any], task_id: int, dataset_id: int, lfns: Collection[str]) -> int:
    """Files of these names that wait for a job are lost, each with its whole group, in all inputs of the task.

    For tasks whose groups are one job each. Returns how many records.
    """
    cursor.execute(_GROUPS_OF, {"task": task_id, "dataset": dataset_id, "lfns": texts(lfns)})
    groups = numbers(boundary for (boundary,) in cursor.fetchall())
    cursor.execute(_INPUTS, [task_id])
    datasets = sorted({dataset_id, *(dataset for (dataset,) in cursor.fetchall())})
    values = {"groups": groups, "lfns": texts(lfns)}
    condition = "boundaryid = ANY(%(groups)s::bigint[])"
    own = f"({condition} OR lfn = ANY(%(lfns)s::text[]))"
    return sum(lose_where(cursor, task_id, one, own if one == dataset_id else condition, values) for one in datasets)


_FIND_AGAIN = """
WITH found AS (
    UPDATE jedi_dataset_contents SET status = %(status)s
     WHERE {here} AND {before} AND lfn = ANY(%(lfns)s::text[])
       AND (%(groups)s::bigint[] IS NULL OR boundaryid = ANY(%(groups)s::bigint[]))
    RETURNING fileid, coalesce(endevent - startevent + 1, nevents, 0) AS events),
released AS (SELECT fileid FROM found WHERE %(status)s = 'ready'),
back AS ({queue})
UPDATE jedi_datasets d SET nfiles = nfiles + n.files, nfilesmissing = greatest(0, nfilesmissing - n.files),
       nfilestobeused = nfilestobeused + n.ready, nevents = coalesce(nevents, 0) + n.events,
       modificationtime = clock_timestamp()
  FROM (SELECT count(*) AS files, coalesce(sum(events), 0) AS events,
               (SELECT count(*) FROM released) AS ready FROM found) n
 WHERE d.datasetid = %(dataset)s AND n.files > 0 RETURNING n.files"""
_FIND_AGAIN_AS = {
    status: _FIND_AGAIN.format(here=OF_DATASET, before=before(INPUT, status, among=[F.LOST, F.MISSING]), queue=_QUEUE)
    for status in (F.PENDING, F.READY, F.STAGING)
}


def find_again(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    dataset_id: int,
    lfns: Collection[str],
    *,
    status: str,
    groups: Collection[int] | None = None,
) -> int:
    """Lost or missing files of these names, with `groups` in these only, are there again: they become ready, pending or staging.
    Returns how many."""
    values = {"task": task_id, "dataset": dataset_id, "lfns": texts(lfns), "status": status}
    values["groups"] = None if groups is None else numbers(groups)
    return _number(cursor.execute(_FIND_AGAIN_AS[FileStatus(status)], values))


def _number(cursor: psycopg.Cursor[Any]) -> int:
    row = cursor.fetchone()
    return int(row[0]) if row else 0
