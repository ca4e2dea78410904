"""Addresses of the resource API."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path, register_converter
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jedisite.identity.callers import HasRight, Right
from jedisite.web import openapi  # noqa: F401 - its extensions register themselves
from jedisite.web.paging import IdConverter
from tasks_app.api.v2 import data_resources, error_resources, grid_resources, job_resources
from tasks_app.api.v2 import task_resources as r
from tasks_app.api.v2.attention_items import AttentionViewSet
from tasks_app.api.v2.audit_trail import AuditViewSet
from tasks_app.api.v2.bulk_commands import BulkCommandViewSet
from tasks_app.api.v2.catalogue_files import CatalogueFilesViewSet
from tasks_app.api.v2.content import FileContentViewSet
from tasks_app.api.v2.lost_files import LostFilesViewSet
from tasks_app.api.v2.me import MeViewSet
from tasks_app.api.v2.message_resources import MessageViewSet
from tasks_app.api.v2.node_resources import WorkflowNodeViewSet
from tasks_app.api.v2.output_zip import OutputZipViewSet
from tasks_app.api.v2.queue_status import QueueHistoryViewSet, QueueStatusViewSet
from tasks_app.api.v2.sample_resources import SampleViewSet
from tasks_app.api.v2.share_resources import ShareViewSet
from tasks_app.api.v2.subjob_resources import SubjobViewSet
from tasks_app.api.v2.token_resources import TokenViewSet
from tasks_app.api.v2.transfer_resources import TransferRuleViewSet, TransferViewSet
from tasks_app.api.v2.why_resources import (
    JobWhyViewSet,
    ShareWhyViewSet,
    SiteWhyViewSet,
    TaskWhatIfViewSet,
    TaskWhyViewSet,
    VerdictViewSet,
)
from tasks_app.api.v2.workflow_resources import WorkflowCommandViewSet, WorkflowPackageViewSet, WorkflowViewSet

register_converter(IdConverter, "bigint")


class SchemaView(SpectacularJSONAPIView):
    permission_classes = [HasRight]
    rights = {"get": Right.NOTHING}


class DocsView(SpectacularSwaggerView):
    template_name = "api_docs.html"
    permission_classes = [HasRight]
    rights = {"get": Right.NOTHING}


# What a method of an address calls in its view set.
LIST: dict[str, Any] = {"get": "list"}
LIST_AND_CREATE: dict[str, Any] = {"get": "list", "post": "create"}
CREATE: dict[str, Any] = {"post": "create"}
ONE: dict[str, Any] = {"get": "retrieve"}


class RootView(APIView):
    """The addresses of all resources, by name."""

    permission_classes = (HasRight,)
    rights = {"get": Right.NOTHING}

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        named = [
            pattern for pattern in urlpatterns if isinstance(pattern, URLPattern) and "<" not in str(pattern.pattern)
        ]
        return Response(
            {
                str(p.name): request.build_absolute_uri(f"/{p.pattern}")
                for p in named
                if p.name and p.name not in NO_RESOURCES
            }
        )


NO_RESOURCES = ("root", "bulk-commands")

app_name = "api-v2"
urlpatterns = [
    path("api/v2/", RootView.as_view(), name="root"),
    path("api/v2/me/", MeViewSet.as_view(ONE), name="me"),
    path("api/v2/tasks/", r.TaskViewSet.as_view(LIST_AND_CREATE), name="tasks"),
    path("api/v2/tasks/bulk-commands/", BulkCommandViewSet.as_view(CREATE), name="bulk-commands"),
    path("api/v2/tasks/<bigint:pk>/", r.TaskViewSet.as_view(ONE), name="task"),
    path("api/v2/tasks/<bigint:task_id>/progress/", r.TaskProgressViewSet.as_view(ONE), name="task-progress"),
    path("api/v2/tasks/<bigint:task_id>/params/", r.TaskParamsViewSet.as_view(ONE), name="task-params"),
    path("api/v2/tasks/<bigint:task_id>/queue/", r.TaskQueueViewSet.as_view(ONE), name="task-queue"),
    path(
        "api/v2/tasks/<bigint:task_id>/datasets/", data_resources.TaskDatasetViewSet.as_view(LIST), name="task-datasets"
    ),
    path("api/v2/tasks/<bigint:task_id>/files/", data_resources.TaskFileViewSet.as_view(LIST), name="task-files"),
    path("api/v2/tasks/<bigint:task_id>/outputs.zip", OutputZipViewSet.as_view(ONE), name="task-outputs-zip"),
    path("api/v2/tasks/<bigint:task_id>/jobs/", job_resources.TaskJobViewSet.as_view(LIST), name="task-jobs"),
    path(
        "api/v2/tasks/<bigint:task_id>/subjobs/",
        SubjobViewSet.as_view({**ONE, **CREATE}),
        name="task-subjobs",
    ),
    path("api/v2/tasks/<bigint:task_id>/retries/", job_resources.TaskRetryViewSet.as_view(LIST), name="task-retries"),
    path("api/v2/tasks/<bigint:task_id>/log/", r.TaskLogViewSet.as_view(LIST), name="task-log"),
    path(
        "api/v2/tasks/<bigint:task_id>/commands/", r.TaskCommandViewSet.as_view(LIST_AND_CREATE), name="task-commands"
    ),
    path("api/v2/tasks/<bigint:task_id>/lost-files/", LostFilesViewSet.as_view(CREATE), name="task-lost-files"),
    path(
        "api/v2/tasks/<bigint:task_id>/changes/", r.TaskChangeViewSet.as_view({"post": "create"}), name="task-changes"
    ),
    path("api/v2/tasks/<bigint:task_id>/why/", TaskWhyViewSet.as_view(ONE), name="task-why"),
    path("api/v2/tasks/<bigint:task_id>/verdicts/", VerdictViewSet.as_view(LIST), name="task-verdicts"),
    path("api/v2/tasks/<bigint:task_id>/what-if/", TaskWhatIfViewSet.as_view(CREATE), name="task-what-if"),
    path("api/v2/sites/<path:name>/why/", SiteWhyViewSet.as_view(ONE), name="site-why"),
    path("api/v2/shares/<path:name>/why/", ShareWhyViewSet.as_view(ONE), name="share-why"),
    path("api/v2/datasets/", data_resources.DatasetViewSet.as_view(LIST), name="datasets"),
    path("api/v2/datasets/<bigint:pk>/", data_resources.DatasetViewSet.as_view(ONE), name="dataset"),
    path(
        "api/v2/datasets/<bigint:dataset_id>/files/",
        data_resources.DatasetFileViewSet.as_view(LIST),
        name="dataset-files",
    ),
    path("api/v2/catalogue/<path:name>/files/", CatalogueFilesViewSet.as_view(ONE), name="catalogue-files"),
    path("api/v2/files/", data_resources.FileViewSet.as_view(LIST), name="files"),
    path("api/v2/files/<bigint:pk>/content", FileContentViewSet.as_view(ONE), name="file-content"),
    path("api/v2/jobs/", job_resources.JobViewSet.as_view(LIST), name="jobs"),
    path("api/v2/jobs/<bigint:pk>/", job_resources.JobViewSet.as_view(ONE), name="job"),
    path("api/v2/jobs/<bigint:job_id>/files/", job_resources.JobFileViewSet.as_view(LIST), name="job-files"),
    path("api/v2/jobs/<bigint:job_id>/log/", job_resources.JobLogViewSet.as_view(LIST), name="job-log"),
    path("api/v2/jobs/<bigint:job_id>/why/", JobWhyViewSet.as_view(ONE), name="job-why"),
    path("api/v2/errors/", error_resources.ErrorViewSet.as_view(LIST), name="errors"),
    path("api/v2/errors/<bigint:pk>/", error_resources.ErrorViewSet.as_view(ONE), name="error"),
    path("api/v2/errors/pivot/", error_resources.ErrorPivotViewSet.as_view({"get": "pivot"}), name="errors-pivot"),
    path("api/v2/failures/", error_resources.FailureViewSet.as_view(LIST), name="failures"),
    path("api/v2/queues/", grid_resources.QueueViewSet.as_view(LIST), name="queues"),
    path("api/v2/queues/<path:name>/history/", QueueHistoryViewSet.as_view(LIST), name="queue-history"),
    path("api/v2/queues/<path:name>/status/", QueueStatusViewSet.as_view(CREATE), name="queue-status"),
    path("api/v2/queues/<path:pk>/", grid_resources.QueueViewSet.as_view(ONE), name="queue"),
    path("api/v2/storage/", grid_resources.StorageViewSet.as_view(LIST), name="storage"),
    path("api/v2/storage/<path:pk>/", grid_resources.StorageViewSet.as_view(ONE), name="storage-endpoint"),
    path("api/v2/transfers/", TransferViewSet.as_view(LIST), name="transfers"),
    path("api/v2/transfer-rules/", TransferRuleViewSet.as_view(LIST), name="transfer-rules"),
    path("api/v2/transfer-rules/<bigint:pk>/", TransferRuleViewSet.as_view(ONE), name="transfer-rule"),
    path("api/v2/workflows/", WorkflowViewSet.as_view(LIST_AND_CREATE), name="workflows"),
    path("api/v2/workflows/node-commands/", WorkflowNodeViewSet.as_view(CREATE), name="workflow-node-commands"),
    path("api/v2/workflows/<bigint:pk>/", WorkflowViewSet.as_view(ONE), name="workflow"),
    path(
        "api/v2/workflows/<bigint:workflow_id>/packages/",
        WorkflowPackageViewSet.as_view(LIST),
        name="workflow-packages",
    ),
    path(
        "api/v2/workflows/<bigint:workflow_id>/packages/<bigint:pk>/",
        WorkflowPackageViewSet.as_view(ONE),
        name="workflow-package",
    ),
    path("api/v2/workflows/<bigint:pk>/commands/", WorkflowCommandViewSet.as_view(CREATE), name="workflow-commands"),
    path("api/v2/work-queues/", grid_resources.WorkQueueViewSet.as_view(LIST), name="work-queues"),
    path("api/v2/attention/", AttentionViewSet.as_view(LIST), name="attention"),
    path("api/v2/attention/<bigint:pk>/", AttentionViewSet.as_view({**ONE, "post": "act"}), name="attention-item"),
    path("api/v2/samples/", SampleViewSet.as_view(LIST), name="samples"),
    path("api/v2/workers/", grid_resources.WorkerViewSet.as_view(LIST), name="workers"),
    path("api/v2/sandboxes/", data_resources.SandboxViewSet.as_view(LIST), name="sandboxes"),
    path("api/v2/agents/", grid_resources.AgentViewSet.as_view(LIST), name="agents"),
    path("api/v2/agents/<slug:pk>/", grid_resources.AgentViewSet.as_view(ONE), name="agent"),
    path("api/v2/agents/<slug:name>/passes/", grid_resources.PassViewSet.as_view(LIST), name="agent-passes"),
    path("api/v2/audit/", AuditViewSet.as_view(LIST), name="audit"),
    path("api/v2/shares/", ShareViewSet.as_view(LIST), name="shares"),
    path("api/v2/messages/", MessageViewSet.as_view(LIST_AND_CREATE), name="messages"),
    path("api/v2/tokens/", TokenViewSet.as_view(LIST_AND_CREATE), name="tokens"),
    path("api/v2/tokens/<bigint:pk>/", TokenViewSet.as_view({"delete": "destroy"}), name="token"),
    path("api/v2/task-parameters/", r.TaskParameterViewSet.as_view(LIST), name="task-parameters"),
    path("api/v2/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", DocsView.as_view(url_name="api-v2:schema"), name="docs"),
]
