"""Conditions of the statements on ranges, made from the table of acts, and the insertion of new blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import psycopg

from events_app.rules.event_states import EVENT_ACTS, EventAct, EventStatus
from events_app.rules.event_states import before as states_before
from events_app.rules.range_blocks import RangeBlock
from jedisite.database.sql import numbers

RANGES: Final = "((def_max_eventid - def_min_eventid) / events_per_range + 1)"
"""SQL: how many ranges a block has."""


def is_in(states: Iterable[EventStatus], row: str = "") -> str:
    """SQL: a block is in one of these states. `row` is its alias with a dot."""
    return f"{row}status IN ({', '.join(str(int(status)) for status in sorted(states))})"


def before(act: EventAct, among: Iterable[EventStatus] = tuple(EventStatus), row: str = "") -> str:
    """SQL: a block is in one of the states `among`, and the act is for such."""
    return is_in(states_before(act, among), row)


def after(act: EventAct) -> int:
    """The number of the state that an act gives."""
    return int(EVENT_ACTS[act].after)


class NewBlock(NamedTuple):
    """A block of ranges of a jobset that is to be inserted."""

    task_id: int
    dataset_id: int
    jobset_id: int
    block: RangeBlock


_INSERT = f"""
INSERT INTO jedi_events (jeditaskid, datasetid, fileid, pandaid, event_offset, job_processid, def_min_eventid, def_max_eventid,
       events_per_range, attemptnr, processed_upto_eventid, status)
SELECT task, dataset, file, jobset, jobset, first, first, last, per_range, attempts, 0, {int(EventStatus.READY)}
  FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::int[], %s::smallint[])
       b (task, dataset, jobset, file, first, last, per_range, attempts)
"""  # noqa: S608 - numbers of ours


def insert_blocks(cursor: psycopg.Cursor[Any], blocks: Sequence[NewBlock]) -> None:
    """Insert ranges that are ready, in the caller's transaction: one statement, whatever their number."""
    if blocks:
        columns = zip(
            *(
                (n.task_id, n.dataset_id, n.jobset_id, b.file_id, b.first, b.last, b.per_range, b.attempts)
                for n in blocks
                for b in [n.block]
            ),
            strict=True,
        )
        cursor.execute(_INSERT, [numbers(column) for column in columns])
