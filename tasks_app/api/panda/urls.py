"""Addresses that PanDA's clients and pilots know."""

from __future__ import annotations

from django.urls import path

from tasks_app.api import site_data
from tasks_app.api.panda import (
    commands,
    creds,
    file_server,
    harvester,
    job,
    legacy,
    legacy_others,
    metaconfig,
    pilot,
    pilot_bulk,
    pilot_worker,
    recovery,
    statistics,
    system,
    task,
    taskinfo,
    workflow,
)
from tasks_app.api.panda.calls import addresses

MODULES = (
    commands,
    creds,
    file_server,
    harvester,
    job,
    legacy,
    legacy_others,
    metaconfig,
    pilot,
    pilot_bulk,
    pilot_worker,
    recovery,
    statistics,
    system,
    task,
    taskinfo,
    workflow,
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
