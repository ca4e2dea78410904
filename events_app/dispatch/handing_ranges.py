"""Hot path: ranges for a job, in the words of pilots. When nothing is left, the other consumers of its jobset are not needed."""

from __future__ import annotations

from typing import Any, Final

from psycopg.types.numeric import Int8

from events_app.dispatch.ownership import MINE, SHOWN, shown
from events_app.lifecycle.range_handout import TakenBlock, available, take
from events_app.lifecycle.unneeded_consumers import end_unneeded
from events_app.rules.event_jobs import EventJobKind
from events_app.rules.range_ids import RangeId
from jedisite.database.sql import hot_cursor
from tasks_app.dispatch.reports import NotYoursError, Proof
from tasks_app.domain.range_jobs import TAKING

MOST: Final = 10_000
"""Ranges that one call hands out; who asks for more gets so many, and asks again."""
_WHO: Final = f"SELECT jeditaskid, jobsetid, eventservice, coalesce({SHOWN}, false) FROM jobs WHERE pandaid = %(job)s"  # noqa: S608 - constants of ours


def hand_out(job_id: int, wanted: int, proof: Proof, segment: int | None = None) -> list[dict[str, Any]]:
    """Ranges that the job has from now on, at most `wanted`; none when it is not at work. `segment`: of this dataset only.

    Raises NotYoursError when the job is not there or not the caller's.
    """
    values = {**shown(proof), "job": Int8(job_id)}
    with hot_cursor() as cursor:
        cursor.execute(_WHO, values)
        task_id, jobset_id, kind = _whose(cursor.fetchone(), job_id)
        if task_id is None or wanted < 1 or kind not in TAKING:
            return []
        is_jumbo = kind == EventJobKind.JUMBO
        taken = take(cursor, task_id, min(wanted, MOST), MINE, values, jumbo=is_jumbo, segment=segment)
        if not (taken.more or is_jumbo or segment is not None or jobset_id is None):
            end_unneeded(cursor, task_id, jobset_id, job_id)
    return [
        {
            "eventRangeID": str(RangeId(task_id, job_id, one.block.file_id, each.first, one.block.attempts)),
            "startEvent": each.first,
            "lastEvent": each.last,
            "LFN": one.lfn,
            "GUID": one.guid,
            "scope": one.scope,
            **(_place(one) if is_jumbo else {}),
        }
        for one in taken.blocks
        for each in one.block.ranges()
    ]


def _place(one: TakenBlock) -> dict[str, Any]:
    """Where a jumbo job finds the file of a range, which is no input of it."""
    return {"PFN": one.surl, "fsize": one.size, "checksum": one.checksum}


def waiting(job_id: int, proof: Proof) -> int:
    """How many ranges a job could have now. Raises NotYoursError."""
    with hot_cursor() as cursor:
        cursor.execute(_WHO, {**shown(proof), "job": Int8(job_id)})
        task_id, jobset_id, kind = _whose(cursor.fetchone(), job_id)
        if task_id is None or kind not in TAKING:
            return 0
        return available(cursor, task_id, None if kind == EventJobKind.JUMBO else jobset_id or 0)


def _whose(row: tuple[Any, ...] | None, job_id: int) -> tuple[int | None, int | None, int | None]:
    if row is None or not row[3]:
        raise NotYoursError(f"job {job_id} is not yours")
    return row[0], row[1], row[2]
