from __future__ import annotations

from django.urls import path

from tasks_app.api import panda_commands, panda_v1, site_data

urlpatterns = [
    *(path(f"api/v1/task/{name}", panda_commands.view_of(name), name=f"task_{name}") for name in panda_commands.NAMES),
    path("api/v1/system/is_alive", panda_v1.is_alive, name="is_alive"),
    path("api/v1/pilot/acquire_jobs", panda_v1.acquire_jobs, name="acquire_jobs"),
    path("api/v1/pilot/update_job", panda_v1.update_one_job, name="update_job"),
    path("cache/schedconfig/<str:name>.all.json", site_data.schedconfig, name="schedconfig"),
    path("cache/ddmendpoints.json", site_data.storage_map, name="storage_map"),
    path("cache/<str:name>", site_data.sandbox, name="sandbox"),
    path("trf/user/<str:name>", site_data.transform, name="transform"),
]
