"""Hot path: a consumer reports on ranges. Its blocks are locked, fall into pieces, and each piece gets what is said of it.

Two statements in one transaction. {mine} is the condition that the caller is who the job was handed to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import psycopg

from events_app.lifecycle.range_moves import before
from events_app.rules.event_states import HANDED_OUT, EventAct, EventStatus
from events_app.rules.range_blocks import RangeBlock
from events_app.rules.report_pieces import Piece, pieces
from events_app.rules.reported_items import RangeReport
from jedisite.database.sql import numbers, texts


class HeldBlock(NamedTuple):
    """A block that is locked: its row, and the ranges that it has."""

    row_id: int
    block: RangeBlock


# ruff: noqa: S608 - every piece is a constant of ours
# The job's row is locked first, as everywhere; a row without a block says that the job may report.
_HOLD: Final = f"""
WITH job AS MATERIALIZED (
    SELECT pandaid FROM jobs
     WHERE {{mine}} AND jeditaskid = %(task)s AND jobstatus IN ('sent', 'starting', 'running', 'transferring') FOR NO KEY UPDATE),
held AS MATERIALIZED (
    SELECT e.row_id, e.fileid, e.def_min_eventid, e.def_max_eventid, e.events_per_range, e.attemptnr
      FROM unnest(%(files)s::bigint[], %(firsts)s::bigint[], %(lasts)s::bigint[]) s (file, first, last)
      JOIN jedi_events e ON e.jeditaskid = %(task)s AND e.pandaid = (SELECT pandaid FROM job) AND e.fileid = s.file
                        AND e.job_processid <= s.last AND e.def_max_eventid >= s.first
     WHERE {before(EventAct.FINISH, HANDED_OUT)}
     ORDER BY e.row_id FOR UPDATE OF e)
SELECT NULL, NULL, NULL, NULL, NULL, NULL FROM job UNION ALL SELECT * FROM held
"""
_SAID: Final = """unnest(%(rows)s::bigint[], %(heads)s::bool[], %(firsts)s::bigint[], %(lasts)s::bigint[],
           %(statuses)s::smallint[], %(zips)s::bigint[], %(stores)s::int[], %(conventions)s::int[], %(codes)s::int[],
           %(diags)s::text[], %(attempts)s::smallint[])
       s (row, head, first, last, status, zip, store, convention, code, diag, attempts)"""
# The first piece of a block keeps its row, the others get new ones. The events that are finished count with the job.
_SPLIT: Final = f"""
WITH said AS MATERIALIZED (SELECT * FROM {_SAID}),
parts AS (
    INSERT INTO jedi_events (jeditaskid, datasetid, fileid, pandaid, event_offset, job_processid, def_min_eventid,
           def_max_eventid, events_per_range, processed_upto_eventid, is_jumbo, attemptnr, status, ziprow_id, objstore_id,
           path_convention, error_code, error_diag)
    SELECT e.jeditaskid, e.datasetid, e.fileid, e.pandaid, e.event_offset, s.first, s.first, s.last, e.events_per_range,
           e.processed_upto_eventid, e.is_jumbo, coalesce(s.attempts, e.attemptnr), coalesce(s.status, e.status), s.zip,
           s.store, s.convention, s.code, s.diag
      FROM said s JOIN jedi_events e ON e.jeditaskid = %(task)s AND e.row_id = s.row WHERE NOT s.head),
heads AS (
    UPDATE jedi_events e SET def_max_eventid = s.last, status = coalesce(s.status, e.status),
           attemptnr = coalesce(s.attempts, e.attemptnr), ziprow_id = s.zip, objstore_id = s.store,
           path_convention = s.convention, error_code = s.code, error_diag = s.diag
      FROM said s WHERE s.head AND e.jeditaskid = %(task)s AND e.row_id = s.row AND {before(EventAct.FINISH, HANDED_OUT, "e.")})
UPDATE jobs SET nevents = coalesce(nevents, 0) + %(events)s::bigint
 WHERE pandaid = %(job)s AND %(events)s::bigint > 0
"""


class Reported(NamedTuple):
    """Whether the job may report at all, and how many of the ranges it had."""

    allowed: bool
    ranges: int


def report(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    said: Mapping[tuple[int, int, int], RangeReport],
    mine: str,
    proof: Mapping[str, Any],
) -> Reported:
    """Book what a job says of its ranges, in the caller's transaction. Ranges that it has not are passed over.

    `said` is by file id, first event and attempts left, as the id of a range has them. `mine` and `proof` are the
    condition that the job is the caller's, with its values; `job` is one of them.
    """
    of_files: dict[int, list[int]] = {}
    for file_id, first, _ in said:
        of_files.setdefault(file_id, []).append(first)
    cursor.execute(
        _HOLD.replace("{mine}", mine),
        {
            **proof,
            "task": task_id,
            "files": numbers(of_files),
            "firsts": numbers(map(min, of_files.values())),
            "lasts": numbers(map(max, of_files.values())),
        },
    )
    rows = cursor.fetchall()
    if not rows:
        return Reported(False, 0)
    held = [HeldBlock(row[0], RangeBlock(*row[1:])) for row in rows if row[0] is not None]
    by_row = {one.row_id: pieces(one.block, _of(one.block, said)) for one in held}
    parts = [
        (row, index == 0, piece)
        for row, found in by_row.items()
        if len(found) > 1 or found[0].said is not None
        for index, piece in enumerate(found)
    ]
    if parts:
        _write(cursor, task_id, proof["job"], parts)
    return Reported(True, sum(_count(one.block, by_row[one.row_id]) for one in held))


def _of(block: RangeBlock, said: Mapping[tuple[int, int, int], RangeReport]) -> dict[int, RangeReport]:
    return {
        first: what
        for (file_id, first, attempts), what in said.items()
        if file_id == block.file_id and attempts == block.attempts
    }


def _count(block: RangeBlock, found: Iterable[Piece[RangeReport]]) -> int:
    return sum(-(-(p.last - p.first + 1) // block.per_range) for p in found if p.said is not None)


def _write(
    cursor: psycopg.Cursor[Any], task_id: int, job_id: int, parts: Sequence[tuple[int, bool, Piece[RangeReport]]]
) -> None:
    reports = [piece.said for _, _, piece in parts]
    finished = [p for _, _, p in parts if p.said is not None and p.said.status is EventStatus.FINISHED]
    cursor.execute(
        _SPLIT,
        {
            "task": task_id,
            "job": job_id,
            "rows": numbers(row for row, _, _ in parts),
            "heads": f"{{{','.join('t' if head else 'f' for _, head, _ in parts)}}}",
            "firsts": numbers(piece.first for _, _, piece in parts),
            "lasts": numbers(piece.last for _, _, piece in parts),
            "statuses": numbers(None if r is None else int(r.status) for r in reports),
            "zips": numbers(r and r.zip_row_id for r in reports),
            "stores": numbers(r and r.objstore_id for r in reports),
            "conventions": numbers(r and r.path_convention for r in reports),
            "codes": numbers(r and r.error_code for r in reports),
            "diags": texts(r and r.error_diag for r in reports),
            "attempts": numbers(r and r.attempts for r in reports),
            "events": sum(p.last - p.first + 1 for p in finished),
        },
    )
