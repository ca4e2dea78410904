"""The tab of a task with what it has made: its output datasets, how large they are, and the files to download."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, caller_of, needs
from tasks_app.ddm.output_zips import MOST_BYTES, MOST_FILES
from tasks_app.domain.states import FileStatus
from tasks_app.models import CatalogueDataset, Dataset, File, Task
from tasks_app.models.dataset import OUTPUT_TYPES
from tasks_app.web.lists import cells, list_page
from tasks_app.web.tasks import task_inputs

DATASETS: Final = 100
MOST_SUMMED: Final = 200_000
"""Files whose sizes are added up while a page is made."""
LISTING: Final = replace(
    task_inputs.LISTING,
    page="dashboard:task-outputs",
    template="tasks_app/task_outputs.html",
    nothing_yet="No job of this task has an output yet.",
)
FETCHING: Final = replace(LISTING, cells={**LISTING.cells, "lfn": cells.FETCHED})
"""The same for those who may have the files."""


@dataclass(frozen=True, slots=True)
class Made:
    """What there is of one dataset. `size` (bytes) and `events` are None where they are not known, or not added up;
    `zip_url` is "" where nothing is to be had in a zip, and `catalogued` the dataset's number in the local catalogue."""

    dataset: Dataset
    files: int
    size: int | None
    events: int | None
    catalogued: int | None
    zip_url: str


@needs(Right.READ)
@require_safe
def task_outputs(request: HttpRequest, task_id: int) -> HttpResponse:
    """Output datasets with their sizes, and the files. Those who may have them find them as links, and in zips."""
    task = get_object_or_404(Task, pk=task_id)
    may = caller_of(request).may_fetch(task.user, task.working_group)
    datasets = list(Dataset.objects.of_task(task_id).filter(type__in=OUTPUT_TYPES)[: DATASETS + 1])
    made = _made(task_id, datasets[:DATASETS], may)
    outputs = [one for one in made if one.dataset.type == "output" and one.files]
    files, size = sum(one.files for one in outputs), sum(one.size or 0 for one in outputs)
    return list_page.show(
        request,
        FETCHING if may else LISTING,
        File.objects.filter(task_id=task_id, type__in=OUTPUT_TYPES).as_seen(),
        api_args=(task_id,),
        task=task,
        tab="task-outputs",
        tab_title="Outputs",
        made=made,
        more_datasets=len(datasets) > DATASETS,
        may_fetch=may,
        zip_url=reverse("api-v2:task-outputs-zip", args=[task_id]) if may and files and _fits(files, size) else "",
        zip_size=size,
        output_files=files,
        most_files=MOST_FILES,
        most_bytes=MOST_BYTES,
    )


def _fits(files: int, size: int | None) -> bool:
    """Whether one zip holds so many files of so many bytes."""
    return files <= MOST_FILES and (size or 0) <= MOST_BYTES


def _made(task_id: int, datasets: Sequence[Dataset], may: bool) -> list[Made]:
    sums: dict[int, tuple[int, int | None, int | None]] = {}
    if sum(dataset.files or 0 for dataset in datasets) <= MOST_SUMMED:
        rows = File.objects.filter(task_id=task_id, type__in=OUTPUT_TYPES, status=FileStatus.FINISHED)
        sums = {
            number: (count, size, events)
            for number, count, size, events in rows.values("dataset_id")
            .annotate(count=Count("id"), bytes=Sum("size"), counted=Sum("events"))
            .values_list("dataset_id", "count", "bytes", "counted")
        }
    names: Collection[str] = [dataset.name for dataset in datasets]
    catalogued = dict(CatalogueDataset.objects.filter(name__in=names).values_list("name", "id"))
    found = []
    for dataset in datasets:
        files, size, events = sums.get(dataset.id, (dataset.files_finished or 0, None, None))
        one = Made(dataset, files, size, events, catalogued.get(dataset.name), "")
        if may and files and dataset.type == "output" and _fits(files, size):
            address = reverse("api-v2:task-outputs-zip", args=[task_id])
            one = replace(one, zip_url=f"{address}?{urlencode({'dataset': dataset.name})}")
        found.append(one)
    return found
