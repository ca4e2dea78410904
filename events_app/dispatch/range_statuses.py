"""States of the ranges of jobs, as PanDA's clients ask for them: each range by its id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from events_app.lifecycle.range_moves import RANGES
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from events_app.rules.range_ids import RangeId
from jedisite.database.sql import hot_cursor, numbers

MOST: Final = 100_000
"""Ranges of one answer."""
_OF_THEM: Final = """
  FROM unnest(%(tasks)s::bigint[], %(jobs)s::bigint[]) s (task, job)
  JOIN jedi_events e ON e.jeditaskid = s.task AND e.pandaid = s.job"""
_COUNT: Final = f"SELECT coalesce(sum({RANGES}), 0) {_OF_THEM}"
_STATES: Final = f"""
SELECT e.jeditaskid, e.pandaid, e.fileid, e.def_min_eventid, e.def_max_eventid, e.events_per_range, coalesce(e.attemptnr, 0),
       e.status, e.error_code, e.error_diag {_OF_THEM} ORDER BY s.job, e.fileid, e.job_processid
"""


class TooManyRangesError(ValueError):
    """The jobs have more ranges than one answer holds."""


def states_of(pairs: Iterable[tuple[int, int]]) -> dict[str, dict[str, Any]]:
    """`{job: {range: {"status", "error", "dialog"}}}` of pairs of a task and a job. Raises TooManyRangesError."""
    wanted = sorted(set(pairs))
    values = {"tasks": numbers(task for task, _ in wanted), "jobs": numbers(job for _, job in wanted)}
    found: dict[str, dict[str, Any]] = {str(job): {} for _, job in wanted}
    with hot_cursor() as cursor:
        cursor.execute(_COUNT, values)
        row = cursor.fetchone()
        if row and row[0] > MOST:
            raise TooManyRangesError(f"these jobs have {row[0]} ranges; at most {MOST} are answered at once")
        cursor.execute(_STATES, values)
        for task_id, job_id, file_id, first, last, length, attempts, status, code, diag in cursor.fetchall():
            told = {"status": EventStatus(status).word, "error": code, "dialog": diag}
            for one in RangeBlock(file_id, first, last, length, attempts).ranges():
                found[str(job_id)][str(RangeId(task_id, job_id, file_id, one.first, attempts))] = told
    return found
