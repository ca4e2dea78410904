"""Jumbo jobs are made as copies of a consumer of their task, in sets: without inputs, with a log of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg

from events_app.consumers.copying import CopyKind, JobCopy, Place, copy_jobs
from events_app.rules.event_jobs import UNNEEDED
from events_app.rules.jumbo_commands import jumbo_command
from jedisite.database.sql import numbers
from tasks_app.lifecycle import outbox
from tasks_app.lifecycle.job_hooks import Slot
from tasks_app.outcomes.outcomes import count_new

_OF: Final = """ARRAY(SELECT {column} FROM job_files f
        WHERE f.pandaid = j.pandaid AND f.type IN ('input', 'pseudo_input') AND f.dataset IS NOT NULL ORDER BY f.row_id)"""
_CONSUMER: Final = f"""
SELECT j.pandaid, coalesce(j.specialhandling, ''), coalesce(p.jobparameters, ''), {_OF.format(column="f.dataset")},
       {_OF.format(column="f.lfn")}
  FROM jobs j JOIN job_params p ON p.pandaid = j.pandaid
 WHERE j.jeditaskid = %s AND j.eventservice = ANY(%s::int[]) ORDER BY j.pandaid DESC LIMIT 1
"""  # noqa: S608 - columns of ours
ALL_DONE: Final = "at"
"""A word of special handling that holds for one consumer only."""


def make_jumbo_jobs(
    cursor: psycopg.Cursor[Any], task_id: int, slots: Sequence[Slot], *, by: str, reason: str
) -> list[int]:
    """Make a jumbo job for each slot, in the caller's transaction, which has the task's row. Returns their numbers.

    None as long as the task has no consumer.
    """
    cursor.execute(_CONSUMER, [task_id, numbers(sorted(UNNEEDED))])
    row = cursor.fetchone()
    if row is None or not slots:
        return []
    consumer, handling, command, datasets, names = row
    inputs: dict[str, list[str]] = {}
    for dataset, name in zip(datasets, names, strict=True):
        inputs.setdefault(dataset, []).append(name)
    words = ",".join(word for word in handling.split(",") if word not in ("", ALL_DONE))
    params = jumbo_command(command, inputs)
    copies = [JobCopy(consumer, CopyKind.JUMBO, Place(*slot), params=params, special_handling=words) for slot in slots]
    copied = copy_jobs(cursor, copies, by=by, reason=reason)
    if copied.logs:
        count_new(cursor, copied.logs)
    if outbox.pushing(cursor, [task_id]):
        outbox.jobs_changed(cursor, copied.jobs)
    return copied.jobs
