"""API v2: computing queues, storage, work queues and agents."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers

from brokerage_app.grid.filtersets import QueueFilter, StorageFilter
from brokerage_app.models import Queue, StorageEndpoint, WorkQueue
from jedisite.identity.callers import Right
from jedisite.models import Agent, AgentPass
from jedisite.web.paging import ByName, OldestFirst
from tasks_app.api.v2.base import Lists, Resource, one_of
from tasks_app.lists.filtersets import WorkerFilter
from tasks_app.lists.queue_columns import QUEUES
from tasks_app.lists.worker_columns import WORKERS
from tasks_app.models import Worker


class QueueSerializer(serializers.ModelSerializer[Queue]):
    class Meta:
        model = Queue
        exclude = ["data"]


class AgentSerializer(serializers.ModelSerializer[Agent]):
    """An agent; of its last error, the last line."""

    last_error = serializers.SerializerMethodField()

    class Meta:
        model = Agent
        exclude = ["fence", "queued_at", "unended_since"]

    def get_last_error(self, agent: Agent) -> str:
        return agent.last_error.strip().rpartition("\n")[2]


class QueueDetailSerializer(serializers.ModelSerializer[Queue]):
    """A queue with `data`, its whole description as the information system gave it."""

    class Meta:
        model = Queue
        fields = "__all__"


@extend_schema_view(
    list=extend_schema(summary="Computing queues", description="By name. Memory and disk in MB, times in seconds."),
    retrieve=extend_schema(summary="A computing queue", description="Memory and disk in MB, times in seconds."),
)
class QueueViewSet(Lists, mixins.RetrieveModelMixin, Resource):
    rights = {"list": Right.SITE_DATA, "retrieve": Right.SITE_DATA}
    queryset = Queue.objects.all()
    pagination_class = ByName
    filterset_class = QueueFilter
    columns = QUEUES
    orderings = ("site_name", "status")
    small_orderings = (
        "cloud",
        "pledged_cores",
        "type",
        "core_count",
        "max_memory_mb",
        "max_walltime_s",
        "work_dir_mb",
        "core_power",
        "last_update",
    )

    def get_serializer_class(self) -> Any:
        return QueueSerializer if self.action == "list" else QueueDetailSerializer


class StorageSerializer(serializers.ModelSerializer[StorageEndpoint]):
    class Meta:
        model = StorageEndpoint
        exclude = ["data"]


@extend_schema_view(
    list=extend_schema(summary="Storage endpoints", description="By name. Space in GB; null is unknown."),
    retrieve=extend_schema(summary="A storage endpoint", description="Space in GB; null is unknown."),
)
class StorageViewSet(Lists, mixins.RetrieveModelMixin, Resource):
    rights = {"list": Right.SITE_DATA, "retrieve": Right.SITE_DATA}
    queryset = StorageEndpoint.objects.all()
    serializer_class = StorageSerializer
    pagination_class = ByName
    filterset_class = StorageFilter
    orderings = ("site_name", "space_free_gb")


class WorkQueueSerializer(serializers.ModelSerializer[WorkQueue]):
    class Meta:
        model = WorkQueue
        fields = "__all__"


@extend_schema_view(
    list=extend_schema(
        summary="Work queues",
        description="As configured; /api/v2/shares/ shows the fraction of the CPUs that each share has now.",
    )
)
class WorkQueueViewSet(Lists, Resource):
    rights = {"list": Right.READ}
    queryset = WorkQueue.objects.all()
    serializer_class = WorkQueueSerializer
    pagination_class = OldestFirst
    orderings = ("name", "order")


@extend_schema_view(
    list=extend_schema(
        summary="Agents", description="When each agent is due, and what its last pass did. Times in seconds."
    ),
    retrieve=extend_schema(summary="An agent", description="When the agent is due, and what its last pass did."),
)
class AgentViewSet(Lists, mixins.RetrieveModelMixin, Resource):
    rights = {"list": Right.READ, "retrieve": Right.READ}
    queryset = Agent.objects.all()
    serializer_class = AgentSerializer
    pagination_class = ByName
    orderings = ("due_at", "last_ended_at")


class PassSerializer(serializers.ModelSerializer[AgentPass]):
    """A pass of an agent; of its error, the last line."""

    error = serializers.SerializerMethodField()

    class Meta:
        model = AgentPass
        fields = ["id", "agent", "started_at", "duration_s", "items", "note", "error", "host"]

    def get_error(self, row: AgentPass) -> str:
        return row.error.strip().rpartition("\n")[2]


@extend_schema_view(
    list=extend_schema(
        summary="Passes of an agent",
        description="Passes that did something or failed, and one per minute of the others, newest first.",
    )
)
class PassViewSet(Lists, Resource):
    rights = {"list": Right.READ}
    queryset = AgentPass.objects.all()
    serializer_class = PassSerializer

    def get_queryset(self) -> QuerySet[AgentPass]:
        if getattr(self, "swagger_fake_view", False):
            return AgentPass.objects.all()
        return AgentPass.objects.filter(agent=one_of(Agent, self.kwargs["name"]).name)


class WorkerSerializer(serializers.ModelSerializer[Worker]):
    class Meta:
        model = Worker
        fields = "__all__"


@extend_schema_view(
    list=extend_schema(
        summary="Workers",
        description="Batch jobs in which pilots run, newest first. `job=` finds the workers that got a job. Memory in MB.",
    )
)
class WorkerViewSet(Lists, Resource):
    rights = {"list": Right.READ}
    queryset = Worker.objects.all()
    serializer_class = WorkerSerializer
    filterset_class = WorkerFilter
    columns = WORKERS
    small_orderings = (
        "worker_id",
        "harvester",
        "site",
        "status",
        "node",
        "cores",
        "last_update",
        "submitted",
        "started",
        "ended",
    )
