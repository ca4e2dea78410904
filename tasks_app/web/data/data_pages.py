"""Pages on data: uses of datasets, first those by open tasks, where they lie and what is not there yet, and one use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from django.db import connection
from django.db.models import Min
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from brokerage_app.models import DatasetReplica, ReplicaLookup
from jedisite.identity.callers import Right, caller_of, needs
from jedisite.web.columns import Row
from tasks_app.api.v2.data_resources import DatasetFileViewSet, DatasetViewSet
from tasks_app.domain import progress, words
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.inputs.locality import NOT_IN_DATA_MANAGEMENT
from tasks_app.inputs.missing_files import missing_of, total
from tasks_app.inputs.staging import staged_by
from tasks_app.lists.dataset_columns import DATASETS
from tasks_app.lists.file_columns import DATASET_FILES
from tasks_app.models import CatalogueDataset, Dataset, File, Task
from tasks_app.models.dataset import INPUT_TYPES, seen_status
from tasks_app.templatetags import dashboard as tags
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists import cells, list_page
from tasks_app.web.lists.cells import Cell
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing
from tasks_app.web.machinery.agent_pages import Figure

STUCK_AFTER: Final = timedelta(hours=24)
"""Inputs with files that are not ready and that have not changed for so long are called stuck."""
MOST_COUNTED: Final = 50_000
OTHERS: Final = 20
STAGING: Final = (TaskStatus.STAGING, TaskStatus.STAGED)
IN_USE: Final = {"in_use": "true"}
COLUMN = DATASETS.by_name
FILE_COLUMN = DATASET_FILES.by_name


def _name(row: Row, now: datetime) -> SafeString:
    return cells.link(reverse("dashboard:dataset", args=[row["id"]]), cells.shown("name", row["name"], now))


def _finished(row: Row, now: datetime) -> str | SafeString:
    """Finished files of all, and failed ones, with a bar."""
    done = progress.Progress(row["files"], row["files_finished"], row["files_failed"], 0)
    if not done.total:
        return words.count(row["files_finished"])
    failed = f", {words.count(done.failed)} failed" if done.failed else ""
    text = f"{words.count(done.finished)} of {words.count(done.total)}{failed}"
    return format_html('<span class="bar-text nowrap">{}</span>{}', text, tags.bar_of(done))


def _status(row: Row, now: datetime) -> str | SafeString:
    """In words that do not contradict its files, as a link to all that have it in the books."""
    seen = cells.shown("status", seen_status(row["type"], row["status"], row["files_finished"]), now)
    return (
        cells.link(f"{reverse('dashboard:data')}?{urlencode({'status': row['status']})}", seen)
        if row["status"]
        else seen
    )


def _files(name: str, status: str) -> Cell:
    """A number as a link to those files of the dataset."""

    def render(row: Row, now: datetime) -> str | SafeString:
        if not row[name]:
            return "0"
        url = f"{reverse('dashboard:dataset', args=[row['id']])}?{urlencode({'status': status}, safe=',')}"
        return cells.link(url, words.count(row[name]))

    return Cell(render, ("id",))


def _readers(row: Row) -> dict[str, str]:
    return {**IN_USE, "name": row["name"]}


LISTING = Listing(
    page="dashboard:data",
    api="api-v2:datasets",
    section="data",
    title="Data",
    one="dataset",
    many="datasets",
    view=DatasetViewSet,
    facets=(
        FacetOf("status", "Status", "status"),
        FacetOf("type", "Use", "type"),
        FacetOf("task_status", "Task status", "task__status"),
        FacetOf("user", "User", "task__user"),
    ),
    cells={
        "name": Cell(_name, ("id",)),
        "id": cells.to("dashboard:dataset", COLUMN["id"]),
        "task_id": cells.to("dashboard:task", COLUMN["task_id"]),
        "user": cells.to("dashboard:user", COLUMN["user"]),
        "status": Cell(_status, ("type", "files_finished")),
        "not_ready": _files("not_ready", "defined,staging,pending"),
        "files_finished": Cell(_finished, ("files", "files_failed")),
        "files_failed": _files("files_failed", "failed"),
        "files_missing": _files("files_missing", "missing,lost"),
        "readers": cells.counted("dashboard:data", COLUMN["readers"], _readers, ("name",)),
    },
    template="tasks_app/data.html",
    refresh_s=30,
    nothing_yet="No task has used a dataset yet.",
    preset=IN_USE,
)
FILES_LISTING = Listing(
    page="dashboard:dataset",
    api="api-v2:dataset-files",
    section="data",
    title="Files",
    one="file",
    many="files",
    view=DatasetFileViewSet,
    facets=(FacetOf("status", "Status", "status"),),
    cells=cells.of_files(FILE_COLUMN),
    template="tasks_app/dataset.html",
    refresh_s=30,
    nothing_yet="The files of this dataset are not listed yet.",
    has_views=False,
)
FETCHING = replace(FILES_LISTING, cells={**FILES_LISTING.cells, "lfn": cells.FETCHED})
"""The same for those who may have the files."""


@needs(Right.READ)
@require_safe
def data(request: HttpRequest) -> HttpResponse:
    """Datasets, those that open tasks read unless others are asked for; numbers of these, and the tasks that wait for staging."""
    now = timezone.now()
    waiting = Task.objects.filter(status__in=STAGING).order_by("-id")
    staging = list(waiting.only("id", "name", "status", "state_change_time", "modification_time")[: OTHERS + 1])
    staged = staged_by([task.id for task in staging])
    return list_page.show(
        request,
        LISTING,
        tiles=_tiles(now),
        staging=[(task, *staged.get(task.id, (0, 0))) for task in staging[:OTHERS]],
        more_staging=len(staging) > OTHERS,
        staging_statuses=",".join(STAGING),
        oldest_answer=ReplicaLookup.objects.aggregate(at=Min("at"))["at"],
        now=now,
    )


_SUMMARY = """
WITH used AS (
    SELECT d.type, d.status, d.nfiles - d.nfilestobeused AS not_ready, d.nfilesmissing, d.modificationtime, r.whole,
           d.type = 'input' AND d.status IS DISTINCT FROM 'removed' AS lies
      FROM jedi_tasks t JOIN jedi_datasets d USING (jeditaskid)
      LEFT JOIN (SELECT datasetname, bool_or(complete) AS whole FROM dataset_replicas GROUP BY datasetname) r USING (datasetname)
     WHERE NOT t.status = ANY(%(final)s) AND d.type = ANY(%(inputs)s) AND d.datasetname <> ALL(%(nowhere)s) LIMIT %(most)s)
SELECT count(*), count(*) FILTER (WHERE not_ready > 0), coalesce(sum(greatest(not_ready, 0)), 0)::bigint,
       count(*) FILTER (WHERE not_ready > 0 AND modificationtime < %(stuck)s),
       count(*) FILTER (WHERE nfilesmissing > 0), coalesce(sum(nfilesmissing), 0)::bigint,
       count(*) FILTER (WHERE lies AND whole IS NULL), count(*) FILTER (WHERE lies AND NOT whole)
  FROM used
"""


@dataclass(frozen=True, slots=True)
class Tile:
    """A number of inputs, linked to the list of them."""

    figure: Figure
    url: str


def _tiles(now: datetime) -> Sequence[Tile]:
    """Numbers over the inputs of open tasks. One query."""
    stuck_before = now - STUCK_AFTER
    with connection.cursor() as cursor:
        cursor.execute(
            _SUMMARY,
            {
                "final": sorted(TASK_FINAL),
                "inputs": list(INPUT_TYPES),
                "most": MOST_COUNTED,
                "stuck": stuck_before,
                "nowhere": sorted(NOT_IN_DATA_MANAGEMENT),
            },
        )
        used, not_ready, files, stuck, missing, missing_files, nowhere, in_part = cursor.fetchone()

    def tile(number: int, label: str, more: str = "", tone: str = "warn", **query: str) -> Tile:
        url = f"{reverse('dashboard:data')}?{urlencode({**IN_USE, **query})}"
        return Tile(Figure(words.capped(number, MOST_COUNTED - 1), label, more, tone if number else "ok"), url)

    return [
        tile(used, "inputs in use", tone="run"),
        tile(not_ready, "not all ready", words.plural(files, "file"), tone="run", not_ready="true"),
        tile(stuck, "unchanged for a day", not_ready="true", changed_before=f"{stuck_before:%Y-%m-%dT%H:%MZ}"),
        tile(missing, "with missing files", words.plural(missing_files, "file"), "bad", missing="true"),
        tile(nowhere, "at no known location", tone="bad", replicas="none"),
        tile(in_part, "incomplete everywhere", replicas="part"),
    ]


@needs(Right.READ)
@require_safe
def dataset_page(request: HttpRequest, dataset_id: int) -> HttpResponse:
    """One use of a dataset by a task: where it lies, who else uses it, and its files."""
    if dataset_id > keyset_pages.LARGEST_ID:
        raise Http404
    dataset = get_object_or_404(Dataset.objects.select_related("task"), pk=dataset_id)
    is_data = dataset.name not in NOT_IN_DATA_MANAGEMENT
    uses = Dataset.objects.used_or_made_by_tasks(dataset.name).exclude(pk=dataset.pk).select_related("task")
    others = list(uses[: OTHERS + 1]) if is_data else []  # else each task has its own, of one name
    return list_page.show(
        request,
        FETCHING if caller_of(request).may_fetch(dataset.task.user, dataset.task.working_group) else FILES_LISTING,
        File.objects.as_seen().all_of_dataset(dataset.id, dataset.task_id),
        api_args=(dataset.id,),
        dataset=dataset,
        done=progress.of_datasets([dataset], total(missing_of([dataset]).values()).files),
        not_ready=max(dataset.files - dataset.files_to_be_used, 0),
        replicas=DatasetReplica.objects.filter(dataset=dataset.name).order_by("-complete", "-files", "endpoint"),
        lookup=ReplicaLookup.objects.filter(pk=dataset.name).first(),
        catalogued=CatalogueDataset.objects.filter(name=dataset.name).first(),
        in_data_management=is_data,
        others=others[:OTHERS],
        more_others=len(others) > OTHERS,
        now=timezone.now(),
    )
