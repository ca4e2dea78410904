"""Whether running a task again would do anything: a task that is done has processed all that it has of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks_app.ddm import data_management
from tasks_app.ddm.base import UnknownDatasetError
from tasks_app.models import Dataset, File, Task, TaskParams
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.keys import stream_of_ds_for
from tasks_app.states import DatasetStatus, FileStatus, TaskStatus

MOST_COMPARED = 50_000
"""Inputs with more files are not compared: the task then runs, and finds out."""


def says(task: Task, changes: Mapping[str, Any]) -> str:
    """Why the task would do nothing if it ran again with these changes, without its beginning; "" when it may do something."""
    if task.status != TaskStatus.DONE:
        return ""
    stored = TaskParams.objects.filter(pk=task.id).values_list("params", flat=True).first() or {}
    new = [name for name, value in changes.items() if stored.get(name) != value]
    masters = list(
        Dataset.objects.filter(task=task, type__in=INPUT_TYPES, master_id=None).exclude(status=DatasetStatus.REMOVED)
    )
    is_made_up = any(row.type != "input" for row in masters)
    if not masters or any(stream_of_ds_for(name) is not None for name in new) or (is_made_up and new):
        return ""
    ids = [row.id for row in masters if row.type == "input"]
    if ids and not _all_processed(task.id, ids, {row.container_name or row.name for row in masters if row.type == "input"}):
        return ""
    why = "no input has a file that it has not processed" if ids else "makes all of its input itself"
    return f"and {why}: nothing runs"


def _all_processed(task_id: int, ids: list[int], names: set[str]) -> bool:
    try:
        found = [data_management().describe(name) for name in sorted(names)]
        if any(info.open for info in found) or sum(info.files for info in found) > MOST_COMPARED:
            return False
        files = File.objects.filter(task_id=task_id, dataset_id__in=ids)
        done = set(files.filter(status=FileStatus.FINISHED).values_list("lfn", flat=True))
        return all(file.lfn in done for name in names for page in data_management().list_files(name) for file in page)
    except UnknownDatasetError:
        return False
