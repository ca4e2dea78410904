"""Columns of the list of datasets: each use of a dataset by a task, where it lies, and who else reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Count, Q

from brokerage_app.models import DatasetReplica, ReplicaLookup
from jedisite.web.columns import Batch, Column, Columns, Row
from tasks_app.domain.states import TASK_FINAL
from tasks_app.models import Dataset
from tasks_app.models.dataset import INPUT_TYPES


def _places(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """How many storage endpoints have each dataset, as data management last said. Two queries."""
    names = {row["name"] for row in rows}
    counted = DatasetReplica.objects.filter(dataset__in=names).order_by().values_list("dataset")
    held = {
        name: (n, whole)
        for name, n, whole in counted.annotate(n=Count("id"), whole=Count("id", filter=Q(complete=True)))
    }
    asked = dict(ReplicaLookup.objects.filter(dataset__in=names).values_list("dataset", "at"))
    found = {}
    for row in rows:
        n, whole = held.get(row["name"], (0, 0))
        known = row["name"] in asked or n
        found[row["id"]] = {
            "replicas": whole if known else None,
            "partial_replicas": n - whole if known else None,
            "asked": asked.get(row["name"]),
        }
    return found


def _readers(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Open tasks that read each dataset. One query."""
    reading = Dataset.objects.filter(name__in={row["name"] for row in rows}, type__in=INPUT_TYPES)
    open_tasks = reading.exclude(task__status__in=sorted(TASK_FINAL)).order_by().values_list("name")
    counted: dict[Any, int] = dict(open_tasks.annotate(n=Count("task_id", distinct=True)))
    return {row["id"]: {"readers": counted.get(row["name"], 0)} for row in rows}


def _not_ready(rows: Sequence[Row]) -> Mapping[Any, Row]:
    return {row["id"]: {"not_ready": max(row["files"] - row["files_to_be_used"], 0)} for row in rows}


DATASETS = Columns(
    Dataset,
    (
        Column("name", "Dataset", "name"),
        Column("id", "Number", "id", shown=False),
        Column("task_id", "Task", "id"),
        Column("task_status", "Task status", "task_status", source="task__status"),
        Column("user", "User", source="task__user", shown=False),
        Column("type", "Use", shown=False),
        Column("status", "Status", "status"),
        Column("files", "Files", "number", shown=False),
        Column("files_to_be_used", "Ready", "number", shown=False, help="files available to jobs or used by jobs"),
        Batch(
            (
                Column(
                    "not_ready",
                    "Not ready",
                    "number",
                    help="files not yet available to jobs: being staged, waiting for others, or held back for scouts",
                ),
            ),
            _not_ready,
            needs=("files", "files_to_be_used"),
        ),
        Column("files_used", "In jobs", "number", shown=False, help="files with a job"),
        Column("files_finished", "Finished", "number"),
        Column("files_failed", "Failed", "number", shown=False),
        Column("files_missing", "Missing", "number", help="files that data management has lost"),
        Column("files_on_hold", "On hold", "number", shown=False),
        Batch(
            (
                Column("replicas", "Complete at", "number", help="storage endpoints that have the whole dataset"),
                Column(
                    "partial_replicas",
                    "Partly at",
                    "number",
                    shown=False,
                    help="storage endpoints that have a part of the dataset",
                ),
                Column(
                    "asked",
                    "Queried",
                    "ago",
                    shown=False,
                    help="when data management was last queried for its locations",
                ),
            ),
            _places,
            needs=("name",),
        ),
        Batch(
            (Column("readers", "Open tasks", "number", help="open tasks that read the dataset"),),
            _readers,
            needs=("name",),
        ),
        Column("modification_time", "Changed", "ago"),
        Column("events", "Events", "number", shown=False),
        Column("events_used", "Events used", "number", shown=False),
        Column("state", "In data management", shown=False, help="open, closed, mutable or missing"),
        Column("state_check_time", "Checked", "ago", shown=False),
        Column("container_name", "Container", "name", shown=False),
        Column(
            "master_id", "Read with", "number_plain", shown=False, help="number of the dataset with which it is read"
        ),
        Column("destination", "Destination", shown=False),
        Column("creation_time", "Created", "ago", shown=False),
    ),
)
