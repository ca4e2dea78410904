"""What happens to all ranges of a jobset at once: it is killed or fails, its output is merged, or cannot be read.

The caller holds the jobset (`ends.jobset_facts.hold`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final, NamedTuple

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
# The output of ranges that were merged can be deleted. The merge job has so many events.
_MERGE: Final = f"""
WITH merged AS (
    UPDATE jedi_events SET status = {after(EventAct.MERGE)},
           file_not_deleted = CASE WHEN objstore_id IS NOT NULL THEN 'Y' END
     WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND {before(EventAct.MERGE)}
    RETURNING pandaid, def_max_eventid - def_min_eventid + 1 AS events),
counted AS (UPDATE jobs SET nevents = (SELECT coalesce(sum(events), 0) FROM merged) WHERE pandaid = %(job)s)
SELECT pandaid, sum(events)::bigint FROM merged GROUP BY 1
"""
_GIVEN_UP: Final = f"""
SELECT fileid, datasetid, events - kept FROM (
    SELECT c.fileid, c.datasetid, coalesce(c.endevent - c.startevent + 1, c.nevents) AS events,
           sum(e.def_max_eventid - e.def_min_eventid + 1) AS kept
      FROM jedi_events e JOIN jedi_dataset_contents c ON c.jeditaskid = e.jeditaskid AND c.fileid = e.fileid
     WHERE e.jeditaskid = %(task)s AND e.fileid = ANY(%(files)s::bigint[])
       AND {is_in({EventStatus.DONE, EventStatus.MERGED}, "e.")}
     GROUP BY c.fileid, c.datasetid, c.endevent, c.startevent, c.nevents) f
 WHERE events > kept ORDER BY 1
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
# Blocks with an output that lies on its own and cannot be read become ranges on their own.
_PART: Final = f"""
WITH hit AS MATERIALIZED (
    SELECT e.* FROM jedi_events e
     WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND {before(EventAct.CORRUPT, row="e.")}
       AND ziprow_id IS NULL AND def_max_eventid - def_min_eventid >= events_per_range AND EXISTS (
           SELECT FROM unnest(%(of_files)s::bigint[], %(firsts)s::bigint[]) l (file, first)
            WHERE l.file = e.fileid AND l.first BETWEEN e.def_min_eventid AND e.def_max_eventid)),
head AS (
    UPDATE jedi_events e SET def_max_eventid = e.def_min_eventid + e.events_per_range - 1
      FROM hit h WHERE e.jeditaskid = %(task)s AND e.row_id = h.row_id)
INSERT INTO jedi_events (jeditaskid, datasetid, pandaid, fileid, job_processid, status, events_per_range, def_min_eventid,
       def_max_eventid, processed_upto_eventid, attemptnr, objstore_id, event_offset, is_jumbo, error_code, path_convention,
       error_diag)
SELECT h.jeditaskid, h.datasetid, h.pandaid, h.fileid, r.first, h.status, h.events_per_range, r.first,
       least(r.first + h.events_per_range - 1, h.def_max_eventid), h.processed_upto_eventid, h.attemptnr, h.objstore_id,
       h.event_offset, h.is_jumbo, h.error_code, h.path_convention, h.error_diag
  FROM hit h, generate_series(h.def_min_eventid + h.events_per_range, h.def_max_eventid, h.events_per_range) r (first)
"""
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


class Merged(NamedTuple):
    """The jobs that have processed what was merged, and the number of events."""

    workers: list[int]
    events: int


def merge(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int], merge_job: int | None = None) -> Merged:
    """What is done of these files is merged, and counts as events of the merge job."""
    cursor.execute(_MERGE, {"task": task_id, "files": numbers(files), "job": merge_job})
    rows = cursor.fetchall()
    return Merged([job for job, _ in rows], sum(events for _, events in rows))


def given_up(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> list[tuple[int, int, int]]:
    """Of which of these files events are given up, when what is done of them is merged: (file, dataset, events)."""
    cursor.execute(_GIVEN_UP, {"task": task_id, "files": numbers(files)})
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
    if ids:
        cursor.execute(_PART, {"task": task_id, "files": numbers(files), **of_loose})
    cursor.execute(_CORRUPT, {"task": task_id, "files": numbers(files), "zips": numbers(zips), **of_loose})
    return cursor.rowcount


def corrupt_what_lies_nowhere(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> int:
    """What is done of these files and was reported without a file and without a storage cannot be read. Returns how many
    ranges that are."""
    cursor.execute(_NOWHERE, {"task": task_id, "files": numbers(files)})
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])
