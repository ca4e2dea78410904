"""The resource of a task's event ranges."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from events_app.lists.range_columns import RANGE_COLUMNS, as_seen
from events_app.lists.range_filters import RangeFilter
from events_app.models import Event
from jedisite.identity.callers import Right
from jedisite.web.paging import KeysetPagination
from tasks_app.api.v2.base import Lists, OfTask


class RangeSerializer(serializers.ModelSerializer[Event]):
    state = serializers.CharField(
        read_only=True, help_text="status in a word; `no attempt left` for those that wait for ever"
    )
    ranges = serializers.IntegerField(read_only=True, help_text="number of ranges of this block")

    class Meta:
        model = Event
        fields = [
            "id",
            "task_id",
            "dataset_id",
            "file_id",
            "job_id",
            "event_offset",
            "state",
            "status",
            "min_event",
            "max_event",
            "events_per_range",
            "ranges",
            "attempt",
            "is_jumbo",
            "objstore_id",
            "zip_row_id",
            "error_code",
            "error_diag",
        ]


class InOrder(KeysetPagination):
    """The order of the primary key within a task."""

    ordering = "id"
    has_nulls = False


@extend_schema_view(
    list=extend_schema(
        summary="Ranges of events of a task",
        description="A row is a block: `ranges` neighbouring ranges of one file that have the same state, owner and attempts. "
        "`job_id` is the job that has them; it is the number of their jobset, as `event_offset` always is, while they are ready, "
        "and of those that were cancelled before a job had them. The filter `status` takes the words of `state`.",
    )
)
class TaskRangeViewSet(Lists, OfTask):
    rights = {"list": Right.READ}
    queryset = as_seen()
    serializer_class = RangeSerializer
    filterset_class = RangeFilter
    pagination_class = InOrder
    columns = RANGE_COLUMNS
