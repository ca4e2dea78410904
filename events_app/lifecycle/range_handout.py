"""Hot path: ranges go to a consumer. One statement that locks the job, takes blocks, and splits the last of them.

{mine} is the condition that the caller is who the job was handed to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import psycopg

from events_app.lifecycle.range_moves import RANGES, after, before
from events_app.rules.event_states import EventAct
from events_app.rules.range_blocks import RangeBlock

# ruff: noqa: S608 - every piece is a constant of ours
# A job that is at work. Its row is locked before its ranges, here and at its end.
_JOB: Final = """job AS MATERIALIZED (
    SELECT pandaid, jobsetid FROM jobs
     WHERE {mine} AND jeditaskid = %(task)s AND jobstatus IN ('sent', 'starting', 'running')
       AND commandtopilot IS DISTINCT FROM 'tobekilled' FOR SHARE)"""
# A block more than can be needed is looked at: whether ranges are left is known without reserving one.
_WAITING: Final = f"""
    SELECT row_id, datasetid, fileid, pandaid, def_min_eventid, def_max_eventid, events_per_range, attemptnr, {RANGES} AS ranges
      FROM jedi_events
     WHERE jeditaskid = %(task)s AND {{whose}}{before(EventAct.HAND_OUT)} AND attemptnr > 0
     ORDER BY jeditaskid, pandaid, fileid, job_processid LIMIT %(wanted)s::int + 1 FOR UPDATE{{how}}"""
_TAKE: Final = f"""
WITH {{job}},
waiting AS MATERIALIZED ({{waiting}}),
counted AS MATERIALIZED (
    SELECT *, sum(ranges) OVER (ORDER BY pandaid, fileid, def_min_eventid) AS upto FROM waiting),
taken AS MATERIALIZED (
    SELECT *, least(ranges, %(wanted)s::int - (upto - ranges))::bigint AS many,
           def_min_eventid + least(ranges, %(wanted)s::int - (upto - ranges))::bigint * events_per_range AS behind
      FROM counted WHERE upto - ranges < %(wanted)s::int),
whole AS (
    UPDATE jedi_events e SET status = {after(EventAct.HAND_OUT)}, pandaid = job.pandaid, is_jumbo = {{jumbo}}
      FROM taken t, job WHERE e.jeditaskid = %(task)s AND e.row_id = t.row_id AND t.many = t.ranges),
rest AS (
    UPDATE jedi_events e SET def_min_eventid = t.behind, job_processid = t.behind
      FROM taken t WHERE e.jeditaskid = %(task)s AND e.row_id = t.row_id AND t.many < t.ranges),
cut AS (
    INSERT INTO jedi_events (jeditaskid, datasetid, fileid, pandaid, event_offset, job_processid, def_min_eventid,
           def_max_eventid, events_per_range, attemptnr, processed_upto_eventid, status, is_jumbo)
    SELECT %(task)s, t.datasetid, t.fileid, job.pandaid, t.pandaid, t.def_min_eventid, t.def_min_eventid, t.behind - 1,
           t.events_per_range, t.attemptnr, 0, {after(EventAct.HAND_OUT)}, {{jumbo}}
      FROM taken t, job WHERE t.many < t.ranges)
SELECT t.fileid, t.def_min_eventid, least(t.def_max_eventid, t.behind - 1), t.events_per_range, t.attemptnr,
       (SELECT max(upto) FROM counted) > %(wanted)s::int, f.lfn, f.guid, f.scope, {{place}}
  FROM taken t
  LEFT JOIN jedi_dataset_contents f ON f.jeditaskid = %(task)s AND f.datasetid = t.datasetid AND f.fileid = t.fileid{{read}}
 ORDER BY t.pandaid, t.fileid, t.def_min_eventid
"""
_OF_JOBSET: Final = _TAKE.format(
    job=_JOB,
    waiting=_WAITING.format(whose="pandaid = (SELECT jobsetid FROM job) AND ", how=""),
    jumbo="NULL::smallint",
    place="NULL, NULL, NULL",
    read="",
)
_OF_SEGMENT: Final = _OF_JOBSET.replace("AND attemptnr > 0", "AND attemptnr > 0 AND datasetid = %(segment)s")
# Of any jobset of the task. What another takes at this moment is passed over. The job has no inputs: where the job that has
# the file reads it, it is to read it, too.
_OF_TASK: Final = _TAKE.format(
    job=_JOB,
    waiting=_WAITING.format(whose="EXISTS (SELECT FROM job) AND ", how=" SKIP LOCKED"),
    jumbo="1",
    place="o.surl, o.fsize, o.checksum",
    read="""
  LEFT JOIN LATERAL (SELECT surl, fsize, checksum FROM job_files
                      WHERE pandaid = f.pandaid AND datasetid = f.datasetid AND fileid = f.fileid LIMIT 1) o ON TRUE""",
)


class TakenBlock(NamedTuple):
    """Ranges that a job was just given, and the file that they are of; None where the record of the file is gone.

    `surl`, `size` in bytes and `checksum` say where a jumbo job finds the file; others have it as an input.
    """

    block: RangeBlock
    lfn: str | None
    guid: str | None
    scope: str | None
    surl: str | None = None
    size: int | None = None
    checksum: str | None = None


class Taken(NamedTuple):
    """What a job was given, and whether ranges that it could have had are left."""

    blocks: list[TakenBlock]
    more: bool


def take(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    wanted: int,
    mine: str,
    proof: Mapping[str, Any],
    *,
    jumbo: bool = False,
    segment: int | None = None,
) -> Taken:
    """Give a job up to `wanted` ranges that are ready: of its jobset, or, to a jumbo job, of all jobsets of its task.

    `mine` and `proof` are the condition that the job is the caller's, with its values. A job that is not the caller's,
    not at work or told to stop gets none. `segment`: those of its jobset that are of this dataset.
    """
    values = {**proof, "task": task_id, "wanted": wanted}
    if segment is not None and not jumbo:
        cursor.execute(_OF_SEGMENT.replace("{mine}", mine), {**values, "segment": segment})
    else:
        cursor.execute((_OF_TASK if jumbo else _OF_JOBSET).replace("{mine}", mine), values)
    rows = cursor.fetchall()
    return Taken([TakenBlock(RangeBlock(*row[:5]), *row[6:]) for row in rows], any(row[5] for row in rows))


_AVAILABLE: Final = f"""
SELECT coalesce(sum({RANGES}), 0) FROM jedi_events
 WHERE jeditaskid = %(task)s AND (%(jobset)s::bigint IS NULL OR pandaid = %(jobset)s) AND {before(EventAct.HAND_OUT)}
   AND attemptnr > 0
"""


def available(cursor: psycopg.Cursor[Any], task_id: int, jobset_id: int | None) -> int:
    """How many ranges of a jobset, or of all of a task, can be handed out."""
    cursor.execute(_AVAILABLE, {"task": task_id, "jobset": jobset_id})
    row = cursor.fetchone()
    return int(row[0]) if row else 0
