"""Addresses that PanDA's clients and pilots know."""

from __future__ import annotations

from django.urls import path

from tasks_app.api.panda import (
    command_calls,
    creds,
    file_server,
    harvester_calls,
    job_calls,
    legacy,
    legacy_others,
    metaconfig,
    pilot_bulk_calls,
    pilot_calls,
    pilot_worker_calls,
    recovery_calls,
    site_data,
    statistics_calls,
    system_calls,
    task_calls,
    task_info,
    workflow_calls,
)
from tasks_app.api.panda.calls import addresses

MODULES = (
    command_calls,
    creds,
    file_server,
    harvester_calls,
    job_calls,
    legacy,
    legacy_others,
    metaconfig,
    pilot_calls,
    pilot_bulk_calls,
    pilot_worker_calls,
    recovery_calls,
    statistics_calls,
    system_calls,
    task_calls,
    task_info,
    workflow_calls,
)

urlpatterns = [
    *addresses(MODULES),
    path("server/panda/<str:name>", legacy_others.no_such_call, name="no_such_call"),
    path("cache/schedconfig/<str:name>.all.json", site_data.schedconfig, name="schedconfig"),
    path("cache/pandaqueues.json", site_data.queue_map, name="queue_map"),
    path("cache/ddmendpoints.json", site_data.storage_map, name="storage_map"),
    path("cache/<str:name>", site_data.sandbox, name="sandbox"),
    path("trf/user/<str:name>", site_data.transform, name="transform"),
]
