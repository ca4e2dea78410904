"""API v2: datasets and files."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, serializers

from jedisite.identity.callers import Right
from jedisite.web.paging import KeysetPagination, OldestFirst
from tasks_app.api.v2.base import Lists, OfTask, Resource, one_of
from tasks_app.api.v2.job_serializers import FileSerializer
from tasks_app.api.v2.task_serializers import DatasetSerializer
from tasks_app.lists.dataset_columns import DATASETS
from tasks_app.lists.file_columns import DATASET_FILES, FILES
from tasks_app.lists.filtersets import DatasetFilter, FileFilter, NamedFileFilter, TaskFileFilter
from tasks_app.models import Dataset, File, Sandbox, Task
from tasks_app.models.dataset import UNMERGED_TYPES

UNMERGED = OpenApiParameter("unmerged", OpenApiTypes.BOOL, description="also list datasets of unmerged files")


@extend_schema_view(
    list=extend_schema(
        summary="Datasets",
        description="Every use of every dataset by a task, newest first, with its counters: `name=` finds the tasks "
        "that read or make a dataset. Datasets of unmerged files are included.",
    ),
    retrieve=extend_schema(summary="A dataset of a task", description="One use of a dataset, with its counters."),
)
class DatasetViewSet(Lists, mixins.RetrieveModelMixin, Resource):
    rights = {"list": Right.READ, "retrieve": Right.READ}
    queryset = Dataset.objects.all()
    serializer_class = DatasetSerializer
    filterset_class = DatasetFilter
    columns = DATASETS
    orderings = ("name",)
    small_orderings = ("files", "files_finished", "files_failed", "files_missing", "modification_time")


@extend_schema_view(
    list=extend_schema(
        summary="Datasets of a task",
        description="In the order of creation, with their counters; datasets of unmerged files only on request.",
        parameters=[UNMERGED],
    )
)
class TaskDatasetViewSet(Lists, OfTask):
    rights = {"list": Right.READ}
    queryset = Dataset.objects.all()
    serializer_class = DatasetSerializer
    pagination_class = OldestFirst
    switches = ("unmerged",)

    def of_task(self, task: Task) -> QuerySet[Any]:
        found = super().of_task(task)
        return found if self.switch("unmerged") else found.exclude(type__in=UNMERGED_TYPES)


@extend_schema_view(
    list=extend_schema(
        summary="Files of a dataset",
        description="In the order of creation. Sizes in bytes; events are counted from 0.",
    )
)
class DatasetFileViewSet(Lists, Resource):
    rights = {"list": Right.READ}
    queryset = File.objects.as_seen()
    serializer_class = FileSerializer
    filterset_class = FileFilter
    pagination_class = OldestFirst
    columns = DATASET_FILES

    def get_queryset(self) -> QuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        dataset = one_of(Dataset, self.kwargs["dataset_id"])
        return File.objects.as_seen().all_of_dataset(dataset.id, dataset.task_id)


@extend_schema_view(
    list=extend_schema(
        summary="Files of a name",
        description="Every use of a file by a task: its dataset, its state, and the job that reads or made it.",
    )
)
class FileViewSet(Lists, Resource):
    rights = {"list": Right.READ}
    queryset = File.objects.as_seen()
    serializer_class = FileSerializer
    filterset_class = NamedFileFilter


class DatasetByDataset(KeysetPagination):
    """The order of the primary key within a task: by the id of a file alone, those of all other tasks would be read."""

    ordering = "dataset_id"
    has_nulls = False


@extend_schema_view(
    list=extend_schema(
        summary="Files of a task",
        description="Dataset by dataset, each in the order of creation; `unfinished=true` leaves out finished files.",
    )
)
class TaskFileViewSet(Lists, OfTask):
    rights = {"list": Right.READ}
    queryset = File.objects.as_seen()
    serializer_class = FileSerializer
    filterset_class = TaskFileFilter
    pagination_class = DatasetByDataset
    columns = FILES


class SandboxSerializer(serializers.ModelSerializer[Sandbox]):
    class Meta:
        model = Sandbox
        fields = ["id", "name", "size", "sha256", "created", "last_used"]


@extend_schema_view(
    list=extend_schema(
        summary="One's own sandboxes",
        description="Archives with the code of one's own tasks, newest first. Sizes in bytes.",
    )
)
class SandboxViewSet(Lists, Resource):
    rights = {"list": Right.READ}
    queryset = Sandbox.objects.all()
    serializer_class = SandboxSerializer

    def get_queryset(self) -> QuerySet[Any]:
        # A name is the key by which the archive is fetched.
        found: QuerySet[Any] = super().get_queryset()
        return found if getattr(self, "swagger_fake_view", False) else found.filter(owner=self.caller.name)
