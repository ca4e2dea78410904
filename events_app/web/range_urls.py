"""Addresses of the pages and the resource of event ranges."""

from __future__ import annotations

from django.urls import path

from events_app.lists.range_resources import TaskRangeViewSet
from events_app.web import event_tasks, range_listing, task_ranges
from tasks_app.api.v2.urls import LIST

app_name = "events"
urlpatterns = [
    path("events/", event_tasks.event_tasks, name="events"),
    path("tasks/<int:task_id>/events/", task_ranges.task_ranges, name="task"),
    path("tasks/<int:task_id>/events/ranges/", range_listing.ranges, name="ranges"),
    path("api/v2/tasks/<bigint:task_id>/events/", TaskRangeViewSet.as_view(LIST), name="api-ranges"),
]
