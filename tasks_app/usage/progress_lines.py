"""How far tasks are, for commands that show it in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Count

from jedisite.vocabulary.words import shortened
from tasks_app.models import Dataset, Job, Task
from tasks_app.models.dataset import INPUT_TYPES

LONGEST_WORDS = 120


def progress_of(ids: Sequence[int]) -> list[dict[str, Any]]:
    """A row for each task: id, name, status, says (why it waits), files, finished, failed, and jobs by status."""
    found = {
        t.id: {
            "id": t.id,
            "name": t.name,
            "status": t.status,
            "says": shortened(t.error_dialog or "", LONGEST_WORDS),
            "files": 0,
            "finished": 0,
            "failed": 0,
            "jobs": {},
        }
        for t in Task.objects.filter(pk__in=ids)
    }
    for dataset in Dataset.objects.filter(task_id__in=ids, type__in=INPUT_TYPES, master_id=None):
        row = found[dataset.task_id]
        row["files"] += dataset.files
        row["finished"] += dataset.files_finished
        row["failed"] += dataset.files_failed
    for task_id, status, count in (
        Job.objects.filter(task_id__in=ids).values_list("task_id", "status").annotate(Count("id")).order_by("status")
    ):
        found[task_id]["jobs"][status] = count
    return [found[i] for i in ids if i in found]


HEADING = f"{'task':8} {'status':9} {'files done':>11} jobs  why it waits"


def line(row: dict[str, Any]) -> str:
    """A row as one line of text, in the columns of HEADING."""
    jobs = " ".join(f"{count} {status}" for status, count in row["jobs"].items())
    return f"{row['id']} {row['status']:9} {row['finished']:>5}/{row['files']:<5} {jobs}  {row['says']}".rstrip()
