"""Schedules of tasks: at each due time the task's input in name only grows.

The records have the status of any input, `ready`: from there on nothing is special. The input stays `mutable`, so the
task runs until its schedule is over or somebody finishes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from jedisite.agents.passes import kick
from jedisite.vocabulary.words import plural
from tasks_app.ddm.base import FileInfo
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.inputs.file_rows import FeedTarget, Record, feed
from tasks_app.inputs.input_wishes import Feeding, read
from tasks_app.inputs.slices import records_already
from tasks_app.lifecycle import claims
from tasks_app.models import Dataset, PeriodicTask, Task
from tasks_app.params.schedule import schedule_of
from tasks_app.splitting.slicing import PSEUDO_LFN

ME = "periodic"
ENDING = TASK_FINAL | {
    TaskStatus.FINISHING,
    TaskStatus.PASSED,
    TaskStatus.ABORTING,
    TaskStatus.TOABORT,
    TaskStatus.TOBROKEN,
}
"""A schedule is over as soon as its task is in one of these states."""


def begin(task_id: int, params: Mapping[str, Any], now: datetime) -> None:
    """Store the schedule of a task, or what has changed of it. What is due stays due."""
    schedule = schedule_of(params)
    if schedule is None:
        return
    values = {
        "every_s": schedule.every_s,
        "cron": schedule.cron,
        "jobs": schedule.jobs,
        "until": schedule.until,
        "most_open": schedule.most_open,
        "ended": None,
    }
    PeriodicTask.objects.update_or_create(
        task_id=task_id, defaults=values, create_defaults={**values, "next_due": schedule.first(now)}
    )


@transaction.atomic
def make_due(task_id: int, fence: int, *, now: datetime) -> bool:
    """One due time of one task: records are made, or it is skipped, or the schedule is over. Returns whether anything was.

    Records, counters and the next due time are one transaction: a kill makes the time come again, not twice.
    """
    task = read(Task.objects.get(pk=task_id), fence)
    row = PeriodicTask.objects.select_for_update().get(pk=task_id)
    dataset = Dataset.objects.get(task_id=task_id, type="pseudo_input", master_id=None)
    schedule, due = row.schedule(), row.next_due
    if schedule.until and due > schedule.until:
        _close(row, dataset, now)
        claims.release_task(task_id, fence, note="the schedule is over")
        return True
    unprocessed = dataset.files_to_be_used - dataset.files_finished - dataset.files_failed
    fits = schedule.most_open is None or unprocessed + schedule.jobs <= schedule.most_open
    if fits:
        _make(task, dataset, row, now)
    row.skipped += not fits
    row.missed += schedule.missed(due, now)
    row.next_due = schedule.next_after(due, now)
    row.save()
    note = row.awaited()
    if not fits:
        note = f"no input was made at {now:%Y-%m-%d %H:%M} UTC, since {plural(unprocessed, 'is', 'are')} unprocessed; {note}"
    if schedule.until and row.next_due > schedule.until:
        _close(row, dataset, now)
        note = "the schedule is over"
    claims.release_task(task_id, fence, note=note)
    kick("job_generator")
    return True


def _make(task: Feeding, dataset: Dataset, row: PeriodicTask, now: datetime) -> None:
    """Add a bunch of records. Each has its own name, and its own events if jobs count events."""
    events, offset = task.rule.get_int("NE"), task.rule.get_int("FT") or 0
    page = []
    for serial in range(row.records, row.records + row.jobs):
        file = FileInfo(f"{serial:09d}:{PSEUDO_LFN}", "pseudo", "", 0, "", events)
        span = (0, events - 1, offset + serial * events + 1) if events else (None, None, None)
        page.append(Record(file, *span))
    target = FeedTarget(task.id, dataset.id, dataset.type, task.max_attempt, task.max_failure, True, task.fence)
    fed = feed(target, [page], now, slice_page=records_already)  # type: ignore[list-item]
    row.made, row.records, row.last = row.made + 1, row.records + fed.files, now


def _close(row: PeriodicTask, dataset: Dataset, now: datetime) -> None:
    """No more records come: the task ends when those that are there are processed."""
    Dataset.objects.filter(pk=dataset.id).update(state="closed")
    row.ended = now
    row.save(update_fields=["ended"])
    kick("post_processor")


def end_with_tasks(now: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE periodic_tasks p SET ended = %s FROM jedi_tasks t
                WHERE p.ended IS NULL AND t.jeditaskid = p.jeditaskid AND t.status = ANY(%s)""",
            [now, sorted(ENDING)],
        )


def due_by(now: datetime) -> str:
    """SQL on the row `t` of a task: its schedule has a due time."""
    return f"""EXISTS (SELECT 1 FROM periodic_tasks p WHERE p.jeditaskid = t.jeditaskid AND p.ended IS NULL
                          AND p.next_due <= '{now.isoformat()}'::timestamptz)"""  # noqa: S608 - a time, not a text
