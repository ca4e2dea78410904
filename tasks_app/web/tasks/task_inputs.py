"""The tab of a task with its datasets, where they lie, what is staged and moved for it, and its files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.models import DatasetReplica
from jedisite.identity.callers import Right, caller_of, needs
from tasks_app.api.v2.data_resources import TaskFileViewSet
from tasks_app.inputs import removed_files
from tasks_app.inputs.rules.staged import staging_in_words
from tasks_app.inputs.staging import progress, staged_of
from tasks_app.lists.file_columns import FILES
from tasks_app.models import CatalogueDataset, Dataset, File, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.transfers import link_use
from tasks_app.web.lists import cells, list_page
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing

DATASETS = 100
RULES = 20
NUMBER = re.compile("[0-9]{1,18}")
COLUMN = FILES.by_name


def _names_of_datasets(keys: Collection[str]) -> dict[str, str]:
    """Names by number; of those that are numbers of datasets. One query."""
    numbers = [int(key) for key in keys if NUMBER.fullmatch(key)]
    return {str(number): name for number, name in Dataset.objects.filter(pk__in=numbers).values_list("id", "name")}


LISTING = Listing(
    page="dashboard:task-inputs",
    api="api-v2:task-files",
    section="tasks",
    title="Files",
    one="file",
    many="files",
    view=TaskFileViewSet,
    facets=(
        FacetOf("status", "Status", "seen_status"),
        FacetOf("type", "Use", "type"),
        FacetOf("dataset", "Dataset", "dataset_id", names=_names_of_datasets),
    ),
    cells=cells.of_files(COLUMN),
    template="tasks_app/task_inputs.html",
    refresh_s=30,
    nothing_yet="The files of this task are not listed yet.",
    has_views=False,
)
FETCHING = replace(LISTING, cells={**LISTING.cells, "lfn": cells.FETCHED})
"""The same for those who may have the files."""


@needs(Right.READ)
@require_safe
def task_inputs(request: HttpRequest, task_id: int) -> HttpResponse:
    """Datasets with their replicas, and the files with their errors."""
    task = get_object_or_404(Task, pk=task_id)
    datasets = list(Dataset.objects.of_task(task_id).shown()[: DATASETS + 1])
    places: dict[str, list[DatasetReplica]] = defaultdict(list)
    inputs = [dataset.name for dataset in datasets if dataset.type in INPUT_TYPES]
    for replica in DatasetReplica.objects.filter(dataset__in=inputs).order_by("-complete", "-files", "endpoint"):
        places[replica.dataset].append(replica)
    made = [dataset.name for dataset in datasets if dataset.type not in INPUT_TYPES]
    staged, removed, now = staged_of(task_id), removed_files.counts(task_id), timezone.now()
    catalogued = dict(CatalogueDataset.objects.filter(name__in=made).values_list("name", "id"))
    return list_page.show(
        request,
        FETCHING if caller_of(request).may_fetch(task.user, task.working_group) else LISTING,
        File.objects.filter(task_id=task_id).as_seen(),
        api_args=(task_id,),
        task=task,
        tab="task-inputs",
        tab_title="Files",
        datasets=[
            (
                dataset,
                places.get(dataset.name, []),
                catalogued.get(dataset.name),
                staged.get(dataset.name),
                removed.get(dataset.id, 0),
            )
            for dataset in datasets[:DATASETS]
        ],
        more_datasets=len(datasets) > DATASETS,
        now=now,
        **_transfers(task_id, now),
    )


def _transfers(task_id: int, now: datetime) -> dict[str, Any]:
    """What is staged, copied and gathered for a task: sums, and the rules that are open or failed."""
    sums = link_use.of_task(task_id)
    if not any(sum.open or sum.failed for sum in sums):
        return {"moving": sums}
    rules, how_far = link_use.rules_of_note(RULES, task_id), progress(task_id)
    return {
        "moving": sums,
        "staging": staging_in_words(how_far, now) if how_far.left else "",
        "rules": link_use.noted(rules, link_use.links(now), now),
        "more_rules": len(rules) == RULES,
    }
