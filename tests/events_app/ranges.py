"""Ranges of a jobset, as tests insert them, hand them out and report on them."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from events_app.lifecycle.range_handout import Taken, take
from events_app.lifecycle.range_moves import NewBlock, insert_blocks
from events_app.lifecycle.range_reports import AT_WORK, RangeKey, book, hold, lock_reporters
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from events_app.rules.reported_items import RangeReport
from jedisite.database.sql import hot_cursor

TASK, DATASET, JOBSET = 20_000_000, 5, 900
MINE = "pandaid = %(job)s"


def insert(*blocks: RangeBlock, jobset: int = JOBSET) -> None:
    with hot_cursor() as cursor:
        insert_blocks(cursor, [NewBlock(TASK, DATASET, jobset, block) for block in blocks])


def given(job: int, wanted: int, *, jumbo: bool = False) -> Taken:
    with hot_cursor() as cursor:
        return take(cursor, TASK, wanted, MINE, {"job": job}, jumbo=jumbo)


def firsts(taken: Taken) -> list[tuple[int, int]]:
    return [(one.block.file_id, r.first) for one in taken.blocks for r in one.block.ranges()]


def say(job: int, said: dict[tuple[int, int, int], RangeReport]) -> int | None:
    """A job reports by file, first event and attempts. Returns how many ranges it had; None when it may not report."""
    with transaction.atomic(), hot_cursor() as cursor:
        reporters = lock_reporters(cursor, [(TASK, job)], "true", {})
        if not any(one.status in AT_WORK for one in reporters):
            return None
        keys = {RangeKey(job, *key): report for key, report in said.items()}
        return book(cursor, TASK, hold(cursor, TASK, keys), keys, {job: job})


def rows() -> list[tuple[Any, ...]]:
    return list(
        Event.objects.order_by("file_id", "min_event", "status").values_list(
            "file_id", "min_event", "max_event", "status", "job_id", "attempt"
        )
    )


FINISHED = RangeReport(EventStatus.FINISHED, objstore_id=12)
"""With the storage where its output lies."""
