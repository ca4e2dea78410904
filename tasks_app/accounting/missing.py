"""Outputs of a task that data management no longer has."""

from __future__ import annotations

from tasks_app.ddm import data_management
from tasks_app.ddm.base import UnknownDatasetError
from tasks_app.models import Dataset, File
from tasks_app.states import FileStatus


def missing_outputs(task_id: int, most: int) -> list[str]:
    """Names of outputs that the task made and its datasets do not hold any more, at most `most`, by dataset and name."""
    missing: list[str] = []
    made = Dataset.objects.filter(task_id=task_id, type="output").order_by("id").values_list("id", "name")
    for dataset_id, name in made:
        finished = set(
            File.objects.of_dataset(task_id, dataset_id, "output", FileStatus.FINISHED).values_list("lfn", flat=True)
        )
        try:
            for page in data_management().list_files(name, all_attempts=True):
                finished -= {file.lfn for file in page}
        except UnknownDatasetError:
            pass  # all of it is gone
        missing += sorted(finished)
        if len(missing) >= most:
            break
    return missing[:most]
