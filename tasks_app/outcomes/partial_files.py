"""Partial files: an output has some of their events, and the others were given up. A retry processes these, and if that fails
the file is partial again."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import psycopg
from django.db.models import F
from django.db.models.functions import Coalesce

from jedisite.database.sql import hot_cursor
from tasks_app.domain.states import FileStatus
from tasks_app.inputs.partial_inputs import has_partial, is_tried_again
from tasks_app.lifecycle import file_recovery
from tasks_app.models import Dataset, File, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.outcomes import end_hooks
from tasks_app.outcomes.lost_outputs import count_files


def process_again(task: Task, groups: Collection[int] | None = None) -> int:
    """What was given up of partial files is tried again; what was merged stays. In the caller's transaction. Returns how many
    files."""
    if not is_tried_again(task):
        return 0
    rows = File.objects.filter(task_id=task.id, type__in=INPUT_TYPES, status=FileStatus.PARTIAL, keep_track=1)
    rows = rows if groups is None else rows.filter(boundary_id__in=groups)
    jobs, files = set[int](), []
    for file, job in rows.order_by("id").values_list("id", "job_id"):
        files.append(file)
        jobs.add(job or 0)
    if not files:
        return 0
    with hot_cursor() as cursor:
        given_up = end_hooks.given_up(cursor, task.id, files)
        ready = file_recovery.process_again(cursor, task.id, files)
        file_recovery.take_inputs_from(cursor, sorted(jobs), files)
        counts = [(dataset, count, events - given_up.get(dataset, 0), 0, 0) for dataset, count, events in ready]
        count_files(cursor, sorted(counts))
    return len(files)


def conclude(cursor: psycopg.Cursor[Any], task: Task) -> None:
    """Files that have failed for good and of which an output has some events are partial. The task ends; its row is locked."""
    failed = Dataset.objects.filter(task_id=task.id, type__in=INPUT_TYPES, files_failed__gt=0)
    if not has_partial(task) or not failed.exists():
        return
    files = sorted(end_hooks.merged_and_ready(cursor, task.id))
    partial = file_recovery.partial_again(cursor, task.id, files) if files else []
    given_up = end_hooks.given_up(cursor, task.id, files) if partial else {}
    for dataset, count, events in sorted(partial):
        Dataset.objects.filter(pk=dataset).update(
            files_failed=F("files_failed") - count,
            files_finished=F("files_finished") + count,
            events_used=Coalesce(F("events_used"), 0) + int(events - given_up.get(dataset, 0)),
        )


def datasets_with_some(task: Task) -> set[int]:
    """Inputs of a task with partial files."""
    if not has_partial(task):
        return set()
    rows = File.objects.filter(task_id=task.id, type__in=INPUT_TYPES, status=FileStatus.PARTIAL)
    return set(rows.order_by().values_list("dataset_id", flat=True).distinct())
