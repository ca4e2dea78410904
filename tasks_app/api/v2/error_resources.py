"""API v2: why jobs fail: kinds of errors, the failed jobs, and tables of them by two dimensions."""

from __future__ import annotations

from typing import Any

from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.response import Response

from jedisite.identity.callers import Right
from jedisite.web import exports
from jedisite.web.problems import InvalidFields
from tasks_app.api.v2.base import FORMAT, Lists, Resource
from tasks_app.domain import window
from tasks_app.failures import pivots
from tasks_app.failures.failure_queries import DIMENSIONS
from tasks_app.lists.failure_columns import FAILURES
from tasks_app.lists.filtersets import FailureFilter, FingerprintFilter
from tasks_app.models import ErrorFingerprint, JobFailure


class ErrorSerializer(serializers.ModelSerializer[ErrorFingerprint]):
    """Failures that are the same once numbers, names and paths are taken out of what was said."""

    class Meta:
        model = ErrorFingerprint
        fields = [
            "id",
            "component",
            "code",
            "category",
            "text",
            "example",
            "first_seen",
            "last_seen",
            "ticket",
            "known_until",
            "advice",
            "cause",
            "classified_by",
            "classified_at",
        ]


@extend_schema_view(
    list=extend_schema(
        summary="Kinds of errors",
        description="Newest first. `known=true`: those that somebody has marked as expected until a time in the future.",
    ),
    retrieve=extend_schema(summary="A kind of error"),
)
class ErrorViewSet(Lists, mixins.RetrieveModelMixin, Resource):
    rights = {"list": Right.READ, "retrieve": Right.READ}
    queryset = ErrorFingerprint.objects.all()
    serializer_class = ErrorSerializer
    filterset_class = FingerprintFilter


class FailureSerializer(serializers.ModelSerializer[JobFailure]):
    """A failed job; `fingerprint_id` is the kind of its error. Times in seconds; wasted is walltime times cores."""

    fingerprint_id = serializers.IntegerField()

    class Meta:
        model = JobFailure
        fields = [
            "id",
            "ended",
            "fingerprint_id",
            "task_id",
            "attempt",
            "site",
            "node",
            "user",
            "activity",
            "pilot_version",
            "walltime_s",
            "wasted_core_s",
        ]


@extend_schema_view(
    list=extend_schema(
        summary="Failed jobs",
        description="Newest first, with the time that each wasted; kept for 30 days. `error=` is a component and a code, such as "
        "`pilot:1305`.",
    )
)
class FailureViewSet(Lists, Resource):
    rights = {"list": Right.READ}
    queryset = JobFailure.objects.all()
    serializer_class = FailureSerializer
    filterset_class = FailureFilter
    columns = FAILURES


class PivotCellSerializer(serializers.Serializer[Any]):
    """Failed jobs of a row and a column."""

    row = serializers.CharField(source="row.key")
    row_label = serializers.CharField(source="row.label")
    column = serializers.CharField(source="column.key")
    column_label = serializers.CharField(source="column.label")
    failures = serializers.IntegerField()
    wasted_core_s = serializers.IntegerField()
    per_1000_ended = serializers.FloatField(source="rate", allow_null=True)


class PivotSerializer(serializers.Serializer[Any]):
    rows = serializers.CharField(source="rows_by.name")
    columns = serializers.CharField(source="columns_by.name")
    failures = serializers.IntegerField()
    wasted_core_s = serializers.IntegerField()
    per_1000_ended = serializers.FloatField(source="rate", allow_null=True)
    rate_of = serializers.CharField()
    cells = PivotCellSerializer(many=True, source="filled")


def _parameter(name: str, description: str, choices: Any = None) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.STR, description=description, enum=list(choices) if choices else None)


class ErrorPivotViewSet(Resource):
    rights = {"pivot": Right.READ}
    queryset = JobFailure.objects.all()
    serializer_class = PivotSerializer
    pagination_class = None
    filter_backends = []

    def known_parameters(self) -> set[str]:
        return {*FailureFilter.base_filters, "rows", "columns", "show", FORMAT}

    def get_renderers(self) -> list[Any]:
        return [*super().get_renderers(), exports.CSVExport(), exports.NDJSONExport()]

    def perform_content_negotiation(self, request: Any, force: bool = False) -> Any:
        forms = {renderer.format: renderer for renderer in self.get_renderers()}
        wanted = "json" if force else request.query_params.get(FORMAT, "json")
        if wanted not in forms:
            message = f"A table can be sent as one of: {', '.join(forms)}."
            raise InvalidFields([{"field": FORMAT, "rule": "known format", "message": message}])
        return forms[wanted], forms[wanted].media_type

    @extend_schema(
        summary="Failed jobs by two dimensions",
        description="The cells with failures of the rows and columns that have most, at most 40 by 12, as on the page. "
        "Rates count ended jobs of the row, or of the column when the row is a kind of error, by full hours. Accepts "
        "the filters of the list of failed jobs.",
        parameters=[
            _parameter("rows", "error if absent", DIMENSIONS),
            _parameter("columns", "site if absent", DIMENSIONS),
            _parameter("show", "measure by which rows and columns are chosen", pivots.MEASURES),
            _parameter("window", "length of a window that ends now; 12h if absent", window.CHOICES),
            _parameter("since", "start of the window, in UTC; instead of window"),
            _parameter("until", "its end"),
        ],
        responses=forced_singular_serializer(PivotSerializer),
    )
    def pivot(self, request: Any) -> HttpResponseBase:
        given = request.query_params
        filters = FailureFilter(
            {n: v for n, v in given.items() if n not in window.NAMES}, queryset=JobFailure.objects.all()
        )
        faults = [("filter", field, message) for field, said in filters.errors.items() for message in said]
        within = window.read(given, timezone.now())
        if within.fault:
            faults.append(("window", next(name for name in window.NAMES if given.get(name)), within.fault))
        rows, columns, measure, wrong = pivots.choice(given)
        faults += [("known choice", sentence.split()[0].lower(), sentence) for sentence in wrong]
        if faults:
            raise InvalidFields([{"field": f, "rule": r, "message": str(m)} for r, f, m in faults])
        found = pivots.pivot(filters.qs, within, rows, columns, measure)
        if isinstance(request.accepted_renderer, exports.Export):
            cells = PivotCellSerializer(found.filled, many=True).data
            names = list(PivotCellSerializer().fields)
            return exports.stream(request, names, [list(cells)])
        return Response(PivotSerializer(found).data)
