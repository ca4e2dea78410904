"""Ranges of files that are tried again: what is left of earlier jobsets is settled before new ranges are made.

One statement for all files, and a second one where something processed cannot be kept.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import psycopg

from events_app.lifecycle.range_moves import after, before, is_in
from events_app.rules.event_states import EventAct, EventStatus, Sweep
from events_app.rules.range_blocks import RangeBlock
from events_app.rules.reinsertion import is_kept, sweeps_before
from jedisite.database.sql import numbers


def _becomes(sweep: Sweep) -> str:
    spared = " AND is_jumbo IS DISTINCT FROM 1" if sweep.spares_jumbo else ""
    return f"WHEN {is_in(sweep.states)}{spared} THEN {after(sweep.act)}"


# ruff: noqa: S608 - every piece is a constant of ours
_SETTLE: Final = f"""
WITH old AS MATERIALIZED (
    SELECT row_id, fileid, def_min_eventid, def_max_eventid, events_per_range, attemptnr, status, is_jumbo,
           CASE {{cases}} ELSE status END AS becomes
      FROM jedi_events
     WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[])
       AND NOT {is_in({EventStatus.CANCELLED, EventStatus.DISCARDED, EventStatus.CORRUPTED})}
     ORDER BY row_id FOR UPDATE),
settled AS (
    UPDATE jedi_events e SET status = o.becomes,
           processed_upto_eventid = CASE WHEN {is_in({EventStatus.FAILED}, "o.")} THEN NULL ELSE e.processed_upto_eventid END
      FROM old o WHERE e.jeditaskid = %(task)s AND e.row_id = o.row_id
       AND (o.becomes <> o.status OR {is_in({EventStatus.FAILED}, "o.")}))
SELECT fileid, def_min_eventid, def_max_eventid, events_per_range, attemptnr, row_id, becomes, coalesce(is_jumbo, 0) = 1
  FROM old WHERE %(keeps)s OR becomes = {{merged}}
"""
_SETTLES: Final = {
    keeps: _SETTLE.format(
        cases=" ".join(_becomes(sweep) for sweep in sweeps_before(keeps_events=keeps)), merged=int(EventStatus.MERGED)
    )
    for keeps in (False, True)
}
_DISCARD: Final = f"""
UPDATE jedi_events SET status = {after(EventAct.DISCARD)}
 WHERE jeditaskid = %(task)s AND row_id = ANY(%(rows)s::bigint[]) AND {before(EventAct.DISCARD)}
"""
_DISCARD_READY: Final = f"""
UPDATE jedi_events e SET status = {after(EventAct.DISCARD)}
 WHERE e.jeditaskid = %(task)s AND {before(EventAct.DISCARD, row="e.")}
   AND EXISTS (SELECT FROM jedi_dataset_contents c WHERE c.jeditaskid = %(task)s AND c.datasetid = e.datasetid
                  AND c.fileid = e.fileid AND c.status = 'ready')
"""
_DISCARD_OF_TASKS: Final = f"""
UPDATE jedi_events SET status = {after(EventAct.DISCARD)}
 WHERE jeditaskid = ANY(%(tasks)s::bigint[]) AND {before(EventAct.DISCARD, (EventStatus.FINISHED, EventStatus.DONE))}
"""


class KeptBlock(NamedTuple):
    """Ranges that need not be made anew, with the number of their row. `merged`: they are in an output that counts."""

    row_id: int
    block: RangeBlock
    merged: bool = False


def settle(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int], *, keeps_events: bool) -> list[KeptBlock]:
    """Settle the ranges that earlier jobsets have left of files. Returns those that are kept (notDiscardEvents), and those
    that were merged."""
    cursor.execute(_SETTLES[keeps_events], {"task": task_id, "files": numbers(sorted(files)), "keeps": keeps_events})
    return [
        KeptBlock(row_id, RangeBlock(*block), status == EventStatus.MERGED)
        for *block, row_id, status, jumbo in cursor.fetchall()
        if status == EventStatus.MERGED or is_kept(EventStatus(status), jumbo=jumbo, keeps_events=keeps_events)
    ]


def discard(cursor: psycopg.Cursor[Any], task_id: int, rows: Collection[int]) -> None:
    """Ranges that were processed and that nothing fits are thrown away."""
    if rows:
        cursor.execute(_DISCARD, {"task": task_id, "rows": numbers(sorted(rows))})


def discard_of_ready_files(cursor: psycopg.Cursor[Any], task_id: int) -> int:
    """What was processed of files that are to be tried again is thrown away. Returns the number of blocks."""
    cursor.execute(_DISCARD_READY, {"task": task_id})
    return cursor.rowcount


def discard_of_tasks(cursor: psycopg.Cursor[Any], tasks: Collection[int]) -> None:
    """What was processed of tasks and not merged is thrown away; the tasks have ended, and the caller has locked them."""
    if tasks:
        cursor.execute(_DISCARD_OF_TASKS, {"tasks": numbers(sorted(tasks))})
