"""Whether feeding an input once more would add anything to it: asked before a task that is done runs again. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from tasks_app.ddm import data_management
from tasks_app.ddm.base import FileInfo
from tasks_app.domain.states import FileStatus
from tasks_app.inputs.input_wishes import Feeding, stored_names, wanted
from tasks_app.inputs.replaced import in_their_place
from tasks_app.inputs.rules.selection import select
from tasks_app.inputs.slices import PAGE, pseudo_pages, slicer_of
from tasks_app.models import Dataset, File
from tasks_app.params.dataset_attributes import Attributes


def would_get_records(task: Feeding, dataset: Dataset) -> bool:
    """Whether an input in name only would get a record with the numbers that the task has in `task`."""
    return next(pseudo_pages(task, dataset, 1), None) is not None


def would_get_files(task: Feeding, dataset: Dataset) -> bool:
    """Whether a master that lists files would get one, or gets one back that was lost.

    Raises UnknownDatasetError and PatternError.
    """
    slicer = slicer_of(task, dataset)
    wishes = wanted(task, dataset, is_sliced=slicer is not None)
    stored = stored_names(dataset).union(in_their_place(dataset))
    files = File.objects.filter(task_id=dataset.task_id, dataset_id=dataset.id)
    lost = frozenset(files.filter(status__in=[FileStatus.LOST, FileStatus.MISSING]).values_list("lfn", flat=True))
    found_again: set[str] = set()

    def listed() -> Iterator[list[FileInfo]]:
        everything = "ud" in Attributes.parse(dataset.attributes)
        for page in data_management().list_files(dataset.name, PAGE, all_attempts=everything):
            found_again.update(lost.intersection(file.lfn for file in page))
            yield page

    for page in select(listed(), wishes, PAGE):
        new = [file for file in page if file.lfn not in stored]
        if new and (slicer is None or any(True for _ in slicer(new))):
            return True
    return bool(found_again)
