"""How the ranges of a task and of its files stand. Each statement says how many rows it reads at most; a row is a block."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import connection

from events_app.lifecycle.range_moves import RANGES
from events_app.rules.range_standing import HISTORY, Counts, Standing, counts, standing_of
from jedisite.database.sql import numbers

MOST_OF_TASK: Final = 50_000
"""Blocks of a task that are counted."""
MOST_OF_FILE: Final = 2_000
"""Blocks of a file that are counted, where several files are."""
MOST_OF_JOB: Final = 2_000
BINS: Final = 48
"""Parts of a file's events in the heat map."""
_HANDLED: Final = "processed_upto_eventid IS NULL"
# ruff: noqa: S608 - every piece is a constant of ours
_OF_TASK: Final = f"""
SELECT status, attemptnr, {_HANDLED}, sum({RANGES})::bigint, count(*)
  FROM (SELECT status, attemptnr, processed_upto_eventid, def_min_eventid, def_max_eventid, events_per_range
          FROM jedi_events WHERE jeditaskid = %(task)s LIMIT %(most)s) e
 GROUP BY 1, 2, 3
"""
# `upto(x)` ranges of a block begin before event x; the parts of a file are as long as one another, up to an event.
_UPTO: Final = "least((greatest({x} - b.first, 0) + b.per - 1) / b.per, b.n)"
_EDGE: Final = "(e.low + ({bin} * e.length + %(bins)s - 1) / %(bins)s)"
_OF_FILES: Final = f"""
WITH b AS MATERIALIZED (
    SELECT f.file, e.* FROM unnest(%(files)s::bigint[]) f (file)
     CROSS JOIN LATERAL (
           SELECT status, coalesce(attemptnr, 0) > 0 AS tries, {_HANDLED} AS handled, def_min_eventid AS first,
                  def_max_eventid AS last, events_per_range::bigint AS per, {RANGES}::bigint AS n
             FROM jedi_events WHERE jeditaskid = %(task)s AND fileid = f.file LIMIT %(most)s) e),
e AS MATERIALIZED (
    SELECT file, min(first) AS low, max(last) - min(first) + 1 AS length, count(*) AS blocks FROM b GROUP BY file)
SELECT b.file, b.status, b.tries, b.handled, p.bin,
       sum({_UPTO.format(x=_EDGE.format(bin="(p.bin + 1)"))} - {_UPTO.format(x=_EDGE.format(bin="p.bin"))})::bigint,
       e.blocks, e.low, e.low + e.length - 1
  FROM b JOIN e USING (file)
 CROSS JOIN LATERAL generate_series(
       (b.first - e.low) * %(bins)s / e.length, (b.first + (b.n - 1) * b.per - e.low) * %(bins)s / e.length) p (bin)
 GROUP BY b.file, b.status, b.tries, b.handled, p.bin, e.blocks, e.low, e.length
"""
_OF_TASKS: Final = f"""
SELECT t.task, e.status, e.attemptnr, e.{_HANDLED}, sum({RANGES})::bigint, count(*)
  FROM unnest(%(tasks)s::bigint[]) t (task)
 CROSS JOIN LATERAL (
       SELECT status, attemptnr, processed_upto_eventid, def_min_eventid, def_max_eventid, events_per_range
         FROM jedi_events WHERE jeditaskid = t.task LIMIT %(most)s) e
 GROUP BY 1, 2, 3, 4
"""
_OF_JOB: Final = f"""
SELECT is_jumbo IS NULL, status, attemptnr, {_HANDLED}, sum({RANGES})::bigint, count(*)
  FROM (SELECT is_jumbo, status, attemptnr, processed_upto_eventid, def_min_eventid, def_max_eventid, events_per_range
          FROM jedi_events WHERE jeditaskid = %(task)s AND pandaid = %(job)s LIMIT %(most)s) e
 GROUP BY 1, 2, 3, 4
"""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Ranges of a task. `attempts`: those that are not history by the attempts that are left, most first.

    `is_capped`: only the first MOST_OF_TASK blocks were counted.
    """

    counts: Counts
    attempts: Sequence[tuple[int, int]] = ()
    is_capped: bool = False


@dataclass(frozen=True, slots=True)
class FileCounts:
    """Ranges of a file, and the same by parts of its events from `first` to `last`. `is_capped`: not all blocks were counted."""

    counts: Counts
    cells: Mapping[int, Counts]
    first: int
    last: int
    is_capped: bool


def _rows(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _summed(rows: Iterable[tuple[Any, ...]], most: int) -> TaskCounts:
    standings, attempts, blocks = [], defaultdict[int, int](int), 0
    for status, left, handled, ranges, number in rows:
        one = standing_of(status, left, handled=handled)
        standings.append((one, ranges))
        blocks += number
        if one not in HISTORY:
            attempts[left or 0] += ranges
    return TaskCounts(counts(standings), sorted(attempts.items(), reverse=True), blocks >= most)


def of_task(task_id: int, most: int = MOST_OF_TASK) -> TaskCounts:
    """Ranges of a task. One statement, which reads at most `most` rows."""
    return _summed(_rows(_OF_TASK, {"task": task_id, "most": most}), most)


def of_tasks(task_ids: Sequence[int], most: int) -> dict[int, TaskCounts]:
    """Ranges of each of some tasks. One statement, which reads at most `most` rows of each."""
    rows: dict[int, list[tuple[Any, ...]]] = {task_id: [] for task_id in task_ids}
    for task_id, *row in _rows(_OF_TASKS, {"tasks": numbers(task_ids), "most": most}):
        rows[task_id].append(tuple(row))
    return {task_id: _summed(some, most) for task_id, some in rows.items()}


def of_job(task_id: int, job_id: int, *, is_jumbo: bool, most: int = MOST_OF_JOB) -> tuple[TaskCounts, int]:
    """Ranges that a job has, and how many more failed in jumbo jobs and have passed to it. One statement, which reads at
    most `most` rows."""
    own, passed, blocks = [], 0, 0
    for by_itself, *row in _rows(_OF_JOB, {"task": task_id, "job": job_id, "most": most}):
        blocks += row[-1]
        if by_itself or is_jumbo:
            own.append(tuple(row))
        else:
            passed += row[-2]
    counted = _summed(own, most)
    return replace(counted, is_capped=blocks >= most), passed


def of_files(
    task_id: int, file_ids: Sequence[int], most: int = MOST_OF_FILE, bins: int = BINS
) -> dict[int, FileCounts]:
    """Ranges of those files that have some. One statement, which reads at most `most` rows of each."""
    rows = _rows(_OF_FILES, {"task": task_id, "files": numbers(file_ids), "most": most, "bins": bins})
    sums: dict[int, list[tuple[Standing, int]]] = defaultdict(list)
    parts: dict[int, dict[int, list[tuple[Standing, int]]]] = defaultdict(lambda: defaultdict(list))
    ends: dict[int, tuple[int, int, bool]] = {}
    for file, status, tries, handled, place, ranges, blocks, first, last in rows:
        one = standing_of(status, int(tries), handled=handled)
        sums[file].append((one, ranges))
        parts[file][place].append((one, ranges))
        ends[file] = (first, last, blocks >= most)
    return {
        file: FileCounts(counts(sums[file]), {place: counts(some) for place, some in parts[file].items()}, *ends[file])
        for file in ends
    }
