"""Hot path: consumers report on ranges. Their blocks are locked, fall into pieces, and each piece gets what is said of it.

Three statements in one transaction: the jobs of a call, then for each task their blocks, and their new pieces. The jobs
are locked before the statement that looks for their blocks, so that what another report of a job has made of its blocks is
seen. Of a single job, the blocks are looked for by the statement that locks it, which sees them as they were before it
waited for another report; when it misses one, the blocks are looked for anew.
{whose} is the condition that a job is the caller's.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.types.numeric import Int8

from events_app.lifecycle.range_moves import before
from events_app.rules.event_jobs import EventJobKind
from events_app.rules.event_states import HANDED_OUT, EventAct, EventStatus
from events_app.rules.range_blocks import RangeBlock
from events_app.rules.report_pieces import Piece, pieces
from events_app.rules.reported_items import RangeReport
from jedisite.database.sql import numbers, texts

AT_WORK: Final = ("sent", "starting", "running", "transferring")
"""A job in one of these states may report on its ranges."""
AT_WORK_FINE: Final = (*AT_WORK, "activated")
"""The same of a fine-grained job: it may do so before it is known to have been fetched."""


class RangeKey(NamedTuple):
    """A range as its id names it. `owner` is the job that has it, or its jobset while nobody has it.

    `first` is its first event; `attempts` are those that are left.
    """

    owner: int
    file_id: int
    first: int
    attempts: int


class Reporter(NamedTuple):
    """A job that is the caller's, as it is locked. `killed_softly`: it is to end when it has stored what it has.
    `is_fine`: it is fine-grained."""

    job_id: int
    task_id: int | None
    jobset_id: int | None
    status: str
    command: str | None
    killed_softly: bool
    is_fine: bool


class HeldBlock(NamedTuple):
    """A block that is locked: its row, whose it is, the ranges that it has, and which of them are named."""

    row_id: int
    owner: int
    block: RangeBlock
    named: list[RangeKey]


SOFT_KILL: Final = 122
"""Code of `superrorcode` with which a job is told to end softly."""
# ruff: noqa: S608 - every piece is a constant of ours
_first: Final = attrgetter("first")
_REPORTERS: Final = f"""
SELECT pandaid, jeditaskid, jobsetid, jobstatus, commandtopilot, coalesce(superrorcode = {SOFT_KILL}, false),
       coalesce(eventservice = {int(EventJobKind.FINE)}, false)
  FROM jobs WHERE {{named}} AND {{whose}} ORDER BY pandaid FOR NO KEY UPDATE
"""
_BY_JOB: Final = "pandaid = ANY(%(jobs)s::bigint[])"
_BY_JOB_OR_JOBSET: Final = f"""({_BY_JOB} OR (jeditaskid = ANY(%(tasks)s::bigint[]) AND jobsetid = ANY(%(jobs)s::bigint[])
        AND eventservice = {int(EventJobKind.FINE)} AND jobstatus IN ({", ".join(f"'{status}'" for status in AT_WORK_FINE)})))"""
_HOLD: Final = """
SELECT e.row_id, e.pandaid, e.fileid, e.def_min_eventid, e.def_max_eventid, e.events_per_range, e.attemptnr
  FROM unnest(%(owners)s::bigint[], %(files)s::bigint[], %(firsts)s::bigint[], %(lasts)s::bigint[]) s (owner, file, first, last)
  JOIN jedi_events e ON e.jeditaskid = %(task)s AND e.pandaid = s.owner AND e.fileid = s.file
                    AND e.job_processid <= s.last AND e.def_max_eventid >= s.first
 WHERE {states}
 ORDER BY e.row_id FOR UPDATE OF e
"""
# What became of ranges that nobody has in hand any more.
_KNOWN: Final = """
SELECT e.pandaid, e.fileid, e.def_min_eventid, e.def_max_eventid, e.events_per_range, e.attemptnr, e.status
  FROM unnest(%(owners)s::bigint[], %(files)s::bigint[], %(firsts)s::bigint[], %(lasts)s::bigint[]) s (owner, file, first, last)
  JOIN jedi_events e ON e.jeditaskid = %(task)s AND e.pandaid = s.owner AND e.fileid = s.file
                    AND e.job_processid <= s.last AND e.def_max_eventid >= s.first
"""
# A condition on a row of its own for each job, since rows that an outer join makes up cannot be locked.
_LOCK_AND_HOLD: Final = f"""
WITH mine AS MATERIALIZED ({_REPORTERS.format(named="pandaid = %(job)s", whose="{whose}")})
SELECT mine.*, held.* FROM mine LEFT JOIN LATERAL (
{_HOLD.format(states=f"{before(EventAct.FINISH, HANDED_OUT, 'e.')} AND s.owner = mine.pandaid")}) held ON true
"""
_HOLD_GIVEN: Final = _HOLD.format(states=before(EventAct.FINISH, HANDED_OUT, "e."))
_HOLD_ANY: Final = _HOLD.format(states=before(EventAct.FINISH, row="e."))
_SAID: Final = """unnest(%(rows)s::bigint[], %(heads)s::bool[], %(firsts)s::bigint[], %(lasts)s::bigint[],
           %(statuses)s::smallint[], %(jobs)s::bigint[], %(zips)s::bigint[], %(stores)s::int[], %(conventions)s::int[],
           %(codes)s::int[], %(diags)s::text[], %(attempts)s::smallint[])
       s (row, head, first, last, status, job, zip, store, convention, code, diag, attempts)"""
# The first piece of a block keeps its row, the others get new ones. The job has the time of the report, since ranges have no
# time of change, and the events that are finished.
_SPLIT: Final = f"""
WITH said AS MATERIALIZED (SELECT * FROM {_SAID}),
parts AS (
    INSERT INTO jedi_events (jeditaskid, datasetid, fileid, pandaid, event_offset, job_processid, def_min_eventid,
           def_max_eventid, events_per_range, processed_upto_eventid, is_jumbo, attemptnr, status, ziprow_id, objstore_id,
           path_convention, error_code, error_diag)
    SELECT e.jeditaskid, e.datasetid, e.fileid, coalesce(s.job, e.pandaid), e.event_offset, s.first, s.first, s.last,
           e.events_per_range, e.processed_upto_eventid, e.is_jumbo, coalesce(s.attempts, e.attemptnr),
           coalesce(s.status, e.status), s.zip, s.store, s.convention, s.code, s.diag
      FROM said s JOIN jedi_events e ON e.jeditaskid = %(task)s AND e.row_id = s.row WHERE NOT s.head),
heads AS (
    UPDATE jedi_events e SET def_max_eventid = s.last, status = coalesce(s.status, e.status),
           pandaid = coalesce(s.job, e.pandaid), attemptnr = coalesce(s.attempts, e.attemptnr), ziprow_id = s.zip,
           objstore_id = s.store, path_convention = s.convention, error_code = s.code, error_diag = s.diag
      FROM said s WHERE s.head AND e.jeditaskid = %(task)s AND e.row_id = s.row AND {before(EventAct.FINISH, row="e.")})
UPDATE jobs j SET nevents = coalesce(j.nevents, 0) + n.events, ranges_reported_at = clock_timestamp()
  FROM unnest(%(reporters)s::bigint[], %(events)s::bigint[]) n (job, events) WHERE j.pandaid = n.job
"""


def lock_reporters(
    cursor: psycopg.Cursor[Any],
    named: Collection[tuple[int, int]],
    whose: str,
    proof: Mapping[str, Any],
    *,
    fine_grained: bool = False,
) -> list[Reporter]:
    """Lock those of these jobs that are the caller's, in the order of their numbers. `named` are pairs of task and job.

    `fine_grained`: the number of a job may be that of its jobset. `whose` and `proof` are the condition that a job is the
    caller's, with its values.
    """
    statement = _REPORTERS.format(named=_BY_JOB_OR_JOBSET if fine_grained else _BY_JOB, whose=whose)
    values = {**proof, "jobs": numbers(sorted({job for _, job in named}))}
    if fine_grained:
        values["tasks"] = numbers(sorted({task for task, _ in named}))
    cursor.execute(statement, values)
    return [Reporter._make(row) for row in cursor.fetchall()]


def lock_and_hold(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    job_id: int,
    keys: Collection[RangeKey],
    whose: str,
    proof: Mapping[str, Any],
) -> tuple[list[Reporter], list[HeldBlock]]:
    """Of one job: `lock_reporters`, and `hold` with these ranges of it, as a rule in one statement. No blocks when the job
    is not the caller's."""
    wanted = sorted(keys)
    values = {**proof, "job": Int8(job_id), "task": Int8(task_id), **_spans(wanted)}
    cursor.execute(_LOCK_AND_HOLD.format(whose=whose), values)
    rows = cursor.fetchall()
    size = len(Reporter._fields)
    reporters = [Reporter._make(row[:size]) for row in rows[:1]]
    if not reporters:
        return [], []
    held = _named((row[size:] for row in rows if row[size] is not None), wanted)
    if sum(len(one.named) for one in held) < len(wanted):
        # They may have changed while the job was waited for. Blocks that are locked already are found once more.
        held = hold(cursor, task_id, keys)
    return reporters, held


def hold(
    cursor: psycopg.Cursor[Any], task_id: int, keys: Iterable[RangeKey], *, fine_grained: bool = False
) -> list[HeldBlock]:
    """Lock the blocks that have ranges of these which are handed out; the jobs are locked. Others are passed over.

    `fine_grained`: ranges that nobody was handed count, too.
    """
    wanted = sorted(set(keys))
    cursor.execute(_HOLD_ANY if fine_grained else _HOLD_GIVEN, {"task": Int8(task_id), **_spans(wanted)})
    return _named(cursor.fetchall(), wanted)


def _named(rows: Iterable[Sequence[Any]], wanted: Iterable[RangeKey]) -> list[HeldBlock]:
    """Blocks with those of the ranges that they have; `wanted` are in order."""
    by_block: dict[tuple[int, int, int], list[RangeKey]] = defaultdict(list)
    for key in wanted:
        by_block[key.owner, key.file_id, key.attempts].append(key)
    held = []
    for row_id, owner, *told in rows:
        block = RangeBlock(*told)
        of_it = by_block.get((owner, block.file_id, block.attempts), [])
        begin = bisect_left(of_it, block.first, key=_first)
        named = [key for key in of_it[begin : bisect_right(of_it, block.last, key=_first)] if block.has(key.first)]
        if named:
            held.append(HeldBlock(row_id, owner, block, named))
    return held


def _spans(keys: Sequence[RangeKey]) -> dict[str, str]:
    """From the first to the last range of each file that a job names, as arrays; `keys` are in order."""
    spans: dict[tuple[int, int], list[int]] = {}
    for key in keys:
        span = spans.setdefault((key.owner, key.file_id), [key.first, key.first])
        span[1] = max(span[1], key.first)
    return {
        "owners": numbers(owner for owner, _ in spans),
        "files": numbers(file_id for _, file_id in spans),
        "firsts": numbers(first for first, _ in spans.values()),
        "lasts": numbers(last for _, last in spans.values()),
    }


def states_of(cursor: psycopg.Cursor[Any], task_id: int, keys: Iterable[RangeKey]) -> dict[RangeKey, EventStatus]:
    """In which state ranges are that could not be held, of those that there are. A range that failed for good has lost its
    other attempts, so its attempts are not compared."""
    wanted = sorted(set(keys))
    by_file: dict[tuple[int, int], list[RangeKey]] = defaultdict(list)
    for key in wanted:
        by_file[key.owner, key.file_id].append(key)
    cursor.execute(_KNOWN, {"task": task_id, **_spans(wanted)})
    found: dict[RangeKey, EventStatus] = {}
    for owner, *told, status in cursor.fetchall():
        block = RangeBlock(*told)
        of_it = by_file.get((owner, block.file_id), [])
        begin = bisect_left(of_it, block.first, key=_first)
        for key in of_it[begin : bisect_right(of_it, block.last, key=_first)]:
            if block.has(key.first) and (key.attempts == block.attempts or status == EventStatus.FAILED):
                found[key] = EventStatus(status)
    return found


def book(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    held: Iterable[HeldBlock],
    said: Mapping[RangeKey, RangeReport],
    jobs: Mapping[int, int],
) -> int:
    """Write what is said of ranges that are held, each of which is in `said`. `jobs`: which job reports, by owner.

    Returns how many ranges they are.
    """
    parts = [
        (one.row_id, index == 0, piece, jobs[one.owner])
        for one in held
        for index, piece in enumerate(pieces(one.block, {key.first: said[key] for key in one.named}))
    ]
    if parts:
        _write(cursor, task_id, parts)
    return sum(len(one.named) for one in held)


def _write(
    cursor: psycopg.Cursor[Any], task_id: int, parts: Sequence[tuple[int, bool, Piece[RangeReport], int]]
) -> None:
    reports = [piece.said for _, _, piece, _ in parts]
    events: Counter[int] = Counter()
    for _, _, piece, job in parts:
        if piece.said is not None and piece.said.status is not EventStatus.RUNNING:
            events[job] += piece.last - piece.first + 1 if piece.said.status is EventStatus.FINISHED else 0
    cursor.execute(
        _SPLIT,
        {
            "task": task_id,
            "rows": numbers(row for row, _, _, _ in parts),
            "heads": f"{{{','.join('t' if head else 'f' for _, head, _, _ in parts)}}}",
            "firsts": numbers(piece.first for _, _, piece, _ in parts),
            "lasts": numbers(piece.last for _, _, piece, _ in parts),
            "statuses": numbers(None if r is None else int(r.status) for r in reports),
            "jobs": numbers(job if piece.said is not None else None for _, _, piece, job in parts),
            "zips": numbers(r and r.zip_row_id for r in reports),
            "stores": numbers(r and r.objstore_id for r in reports),
            "conventions": numbers(r and r.path_convention for r in reports),
            "codes": numbers(r and r.error_code for r in reports),
            "diags": texts(r and r.error_diag for r in reports),
            "attempts": numbers(r and r.attempts for r in reports),
            "reporters": numbers(events),
            "events": numbers(events.values()),
        },
    )
