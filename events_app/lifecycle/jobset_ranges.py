"""What happens to all ranges of a jobset at once: it is killed or fails, its output is merged, or cannot be read.

The caller holds the jobset (`ends.jobset_facts.hold`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

import psycopg

from events_app.lifecycle.range_moves import RANGES, after, before, is_in
from events_app.rules.event_states import EventAct, EventStatus
from jedisite.database.sql import numbers

_RANGE: Final = re.compile(r"([0-9]+)-([0-9]+)-[0-9]+$")
"""The file and the first event of a range, at the end of its id."""

# ruff: noqa: S608 - every piece is a constant of ours
# What is ready is locked in the order in which it is handed out, what is handed out in that in which it is reported.
_END: Final = f"""
WITH theirs AS MATERIALIZED (
    SELECT row_id, status FROM jedi_events
     WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND event_offset = %(jobset)s
       AND ({before(EventAct.CANCEL)} OR {before(EventAct.DISCARD)})
     ORDER BY {is_in({EventStatus.READY})} DESC, CASE WHEN {is_in({EventStatus.READY})} THEN fileid END,
              CASE WHEN {is_in({EventStatus.READY})} THEN job_processid END, row_id FOR UPDATE)
UPDATE jedi_events e
   SET status = CASE WHEN {before(EventAct.CANCEL, row="e.")} THEN {after(EventAct.CANCEL)}
                     WHEN %(keeps)s AND {before(EventAct.COMPLETE, row="e.")} THEN {after(EventAct.COMPLETE)}
                     WHEN NOT %(keeps)s AND {before(EventAct.DISCARD, row="e.")} THEN {after(EventAct.DISCARD)}
                     ELSE e.status END
  FROM theirs t WHERE e.jeditaskid = %(task)s AND e.row_id = t.row_id
"""
_DISCARD: Final = f"""
UPDATE jedi_events SET status = {after(EventAct.DISCARD)}
 WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND {before(EventAct.DISCARD)}
"""
# The output of ranges that were merged can be deleted.
_MERGE: Final = f"""
WITH merged AS (
    UPDATE jedi_events SET status = {after(EventAct.MERGE)},
           file_not_deleted = CASE WHEN objstore_id IS NOT NULL THEN 'Y' END
     WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND {before(EventAct.MERGE)} RETURNING pandaid)
SELECT DISTINCT pandaid FROM merged
"""
_GIVEN_UP: Final = f"""
SELECT c.fileid, c.datasetid, sum(e.def_max_eventid - e.def_min_eventid + 1)
  FROM jedi_events e JOIN jedi_dataset_contents c ON c.jeditaskid = e.jeditaskid AND c.fileid = e.fileid
 WHERE e.jeditaskid = %(task)s AND e.fileid = ANY(%(files)s::bigint[]) AND e.event_offset = %(jobset)s
   AND {is_in({EventStatus.FATAL}, "e.")}
 GROUP BY 1, 2 ORDER BY 1
"""
# What was not merged of a partial file was given up, by whatever jobset.
_OF_PARTIAL: Final = f"""
SELECT datasetid, sum(events - merged) FROM (
    SELECT c.datasetid, coalesce(c.endevent - c.startevent + 1, c.nevents) AS events,
           sum(e.def_max_eventid - e.def_min_eventid + 1) AS merged
      FROM jedi_events e JOIN jedi_dataset_contents c ON c.jeditaskid = e.jeditaskid AND c.fileid = e.fileid
     WHERE e.jeditaskid = %(task)s AND {is_in({EventStatus.MERGED}, "e.")} AND c.status = 'partial'
       AND (%(files)s::bigint[] IS NULL OR e.fileid = ANY(%(files)s::bigint[]))
     GROUP BY c.datasetid, c.fileid, c.endevent, c.startevent, c.nevents) f
 GROUP BY 1
"""
_LOSE: Final = f"""
UPDATE jedi_events SET status = {after(EventAct.LOSE)}
 WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND {before(EventAct.LOSE, {EventStatus.MERGED})}
"""
_MERGED_AND_READY: Final = f"""
SELECT DISTINCT c.fileid FROM jedi_events e JOIN jedi_dataset_contents c ON c.jeditaskid = e.jeditaskid AND c.fileid = e.fileid
 WHERE e.jeditaskid = %(task)s AND {is_in({EventStatus.MERGED}, "e.")} AND c.status = 'ready' AND c.keeptrack = 1
"""
# Of outputs that lie on their own the whole block is processed again.
_CORRUPT: Final = f"""
UPDATE jedi_events e SET status = {after(EventAct.CORRUPT)}
 WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND {before(EventAct.CORRUPT, row="e.")}
   AND (ziprow_id = ANY(%(zips)s::bigint[]) OR ziprow_id IS NULL AND EXISTS (
        SELECT FROM unnest(%(of_files)s::bigint[], %(firsts)s::bigint[]) l (file, first)
         WHERE l.file = e.fileid AND l.first BETWEEN e.def_min_eventid AND e.def_max_eventid))
"""
_NOWHERE: Final = f"""
WITH nowhere AS (
    UPDATE jedi_events SET status = {after(EventAct.CORRUPT)}
     WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND {before(EventAct.CORRUPT)}
       AND ziprow_id IS NULL AND objstore_id IS NULL
    RETURNING {RANGES} AS ranges)
SELECT coalesce(sum(ranges), 0) FROM nowhere
"""


def end_jobset(
    cursor: psycopg.Cursor[Any], task_id: int, jobset_id: int, files: Collection[int], *, keeps_events: bool
) -> None:
    """The jobset processes nothing any more: what is not processed is cancelled, and the rest is thrown away.

    With `keeps_events` (notDiscardEvents) that is done instead: the next jobset of the files need not process it.
    """
    values = {"task": task_id, "jobset": jobset_id, "files": numbers(files), "keeps": keeps_events}
    cursor.execute(_END, values)


def discard(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> None:
    """What is processed of these files is thrown away, whatever jobset it is of."""
    cursor.execute(_DISCARD, {"task": task_id, "files": numbers(files)})


def merge(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> list[int]:
    """What is done of these files is merged. Returns the jobs that have processed it."""
    cursor.execute(_MERGE, {"task": task_id, "files": numbers(files)})
    return [job for (job,) in cursor.fetchall()]


def given_up(
    cursor: psycopg.Cursor[Any], task_id: int, jobset_id: int, files: Collection[int]
) -> list[tuple[int, int, int]]:
    """Of which of these files the jobset has given up events, where a partial result is accepted: (file, dataset, events)."""
    cursor.execute(_GIVEN_UP, {"task": task_id, "jobset": jobset_id, "files": numbers(files)})
    return [(file, dataset, int(events)) for file, dataset, events in cursor.fetchall()]


def given_up_of_partial(
    cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int] | None = None
) -> dict[int, int]:
    """How many events of partial files, of these or of all of a task, were given up, by dataset."""
    cursor.execute(_OF_PARTIAL, {"task": task_id, "files": None if files is None else numbers(files)})
    return {dataset: int(events) for dataset, events in cursor.fetchall()}


def lose_merged(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> None:
    """The outputs of these files are no more: what was merged is to be processed again."""
    cursor.execute(_LOSE, {"task": task_id, "files": numbers(files)})


def merged_and_ready(cursor: psycopg.Cursor[Any], task_id: int) -> list[int]:
    """Files that are to be tried again, or have no attempt left, of which some events are in an output that counts."""
    cursor.execute(_MERGED_AND_READY, {"task": task_id})
    return [file for (file,) in cursor.fetchall()]


def corrupt(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    files: Collection[int],
    zips: Collection[int],
    loose: Collection[str] = (),
) -> int:
    """What lies in these zip files, given as rows of `job_files`, cannot be read, nor can outputs that lie on their own,
    whose names end with the ids of their ranges. Returns how many blocks that are."""
    ids = [tuple(map(int, found.groups())) for lfn in loose if (found := _RANGE.search(lfn))]
    of_loose = {"of_files": numbers(file for file, _ in ids), "firsts": numbers(first for _, first in ids)}
    cursor.execute(_CORRUPT, {"task": task_id, "files": numbers(files), "zips": numbers(zips), **of_loose})
    return cursor.rowcount


def corrupt_what_lies_nowhere(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> int:
    """What is done of these files and was reported without a file and without a storage cannot be read. Returns how many
    ranges that are."""
    cursor.execute(_NOWHERE, {"task": task_id, "files": numbers(files)})
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])
