"""What pilots read of a site, in the shapes that PanDA's pilots expect, and the transforms that ship with the project.

PanDA's pilots read all of it without a token, so it is open to everybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.db.models import F
from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response

from brokerage_app.grid.written_storage import storages_by_activity
from brokerage_app.models import Queue, StorageEndpoint
from jedisite.identity.callers import Right, needs
from tasks_app.ddm.local_storage import ENDPOINT
from tasks_app.submission import sandboxes

FILES = "file://localhost"
TRANSFORMS = Path(__file__).resolve().parents[2] / "transforms"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,100}")


# What pilots and harvester read of a queue's description. The rest stays inside: these pages are open to all.
_READ = frozenset(
    {
        "acopytools",
        "acopytools_schemas",
        "allow_lan",
        "allow_wan",
        "appdir",
        "aprotocols",
        "astorages",
        "atlas_site",
        "capability",
        "catchall",
        "cloud",
        "cmtconfig",
        "container_options",
        "container_type",
        "copytools",
        "corecount",
        "direct_access_lan",
        "direct_access_wan",
        "environ",
        "gstat",
        "is_cvmfs",
        "jobseed",
        "maxinputsize",
        "maxrss",
        "maxtime",
        "maxwdir",
        "minrss",
        "mintime",
        "params",
        "pilot_manager",
        "pilot_url",
        "pilot_version",
        "pledgedcpu",
        "prefetch",
        "python_version",
        "region",
        "releases",
        "resource_type",
        "state",
        "status",
        "system",
        "tier",
        "timefloor",
        "type",
        "use_pcache",
        "vo_name",
        "workflow",
        "zip_time_gap",
    }
)
LOCAL_COPY = "mv"
LOCAL_LAYOUT = "mv_final_destination"
"""Word of catchall: PanDA's pilots then put outputs at `<storage>/<scope>/<2 digits>/<2 digits>/<name>`, as ours does."""
_MINUTES = re.compile(r"[0-9]{1,4}")
_OF_RANGES = ("es_events", "es_failover", "es_events_read")
"""What PanDA's pilots call files with outputs of ranges of events: when they write them, here or elsewhere, and read them."""
_WAYS = ("read_lan", "write_lan", "read_wan", "write_wan", "pr", "pw", "pl")
_READS = {"pr", "es_events_read"}


def queue_data(queue: Queue, storages: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """One queue as a pilot reads it, with its storages by activity. Memory and disk in MB, times in seconds.

    A queue whose description names no copy tool moves its files on a disk that pilots share with the storage.
    """
    told = {key: value for key, value in queue.data.items() if key in _READ and value is not None}
    ways = {
        way: storages.get("read_lan" if way in _READS else way, ()) or storages.get("write_lan", ())
        for way in (*_WAYS, *_OF_RANGES)
    }
    ways = {way: list(names) or [ENDPOINT] for way, names in ways.items() if way != "read_wan"}
    if isinstance(given := told.get("astorages"), dict) and given:
        ways = given
    catchall = queue.catchall
    if not told.get("copytools") and LOCAL_LAYOUT not in catchall:
        catchall = ",".join(filter(None, (catchall, LOCAL_LAYOUT)))
    defaults = {
        "copytools": {LOCAL_COPY: {}},
        "acopytools": {activity: [LOCAL_COPY] for activity in ("pr", "pw", "pl", "default", *_OF_RANGES)},
        "params": {"internet_protocol_version": "IPv4"},
    }
    return {
        **told,
        **{key: told.get(key) or value for key, value in defaults.items()},
        "astorages": {**ways, **storages},
        "nickname": queue.name,
        "panda_resource": queue.name,
        "atlas_site": queue.site_name,
        "state": "ACTIVE",
        "status": queue.status,
        "type": "unified",
        "corecount": queue.core_count,
        "maxrss": queue.max_memory_mb or 0,
        "maxtime": queue.max_walltime_s or 0,
        "maxwdir": queue.work_dir_mb or 0,
        "catchall": catchall,
    }


def queues_data(queues: Iterable[Queue]) -> dict[str, dict[str, Any]]:
    """The same of several, by name."""
    rows = list(queues)
    storages = storages_by_activity(rows)
    return {queue.name: queue_data(queue, storages[queue.name]) for queue in rows}


@needs(Right.NOTHING)
def schedconfig(request: HttpRequest, name: str) -> HttpResponse:
    """`?timefloor=60`: what whoever starts the pilot has chosen where the queue's description says nothing."""
    queue = Queue.objects.filter(pk=name).first()
    if queue is None:
        return JsonResponse({"error": f"there is no queue {name}"}, status=404)
    chosen = request.GET.get("timefloor", "")
    floor = {"timefloor": int(chosen)} if _MINUTES.fullmatch(chosen) else {}
    return JsonResponse(floor | queues_data([queue])[name])


@needs(Right.NOTHING)
def queue_map(request: HttpRequest) -> HttpResponse:
    return JsonResponse(queues_data(Queue.objects.order_by("name")))


@needs(Right.NOTHING)
def storage_map(request: HttpRequest) -> HttpResponse:
    storages = StorageEndpoint.objects.order_by("name").annotate(holds_files=F("folder__holds_files"))
    return JsonResponse({one.name: _storage_data(one, holds_files=bool(one.holds_files)) for one in storages})


def _storage_data(storage: StorageEndpoint, *, holds_files: bool) -> dict[str, Any]:
    """One endpoint as a pilot reads it. The protocols are those of its description, or its folder on this machine.

    `holds_files` is for our pilot: while its folder is empty, nothing is mounted there.
    """
    told = {key: storage.data.get(key) or {} for key in ("arprotocols", "rprotocols")}
    if storage.path:
        folder = {"endpoint": FILES, "path": storage.path.rstrip("/") + "/", "id": 1, "flavour": "FILE", "setup": ""}
        told = {"arprotocols": {way: [folder] for way in _WAYS}, "rprotocols": {"1": folder | {"settings": {}}}}
    return {
        "id": storage.number,
        "name": storage.name,
        "site": storage.site_name,
        "type": storage.type,
        "token": storage.token,
        "state": "ACTIVE",
        "is_deterministic": True,
        "resource": None,
        **told,
        **({"holds_files": True} if holds_files else {}),
    }


@needs(Right.NOTHING)
def sandbox(request: HttpRequest, name: str) -> HttpResponseBase:
    """An archive with a user's code. Its name is the key: jobs fetch it, and they bear no token."""
    row = sandboxes.find(name)
    if row is None:
        return HttpResponse("there is no such sandbox\n", status=404, content_type="text/plain")
    sandboxes.used(name)
    etag = f'"{row.sha256}"'
    same = get_conditional_response(request, etag=etag)
    if same is not None:
        return same
    kind = "application/octet-stream"
    return FileResponse(
        row.path.open("rb"), content_type=kind, as_attachment=True, filename=name, headers={"ETag": etag}
    )


@needs(Right.NOTHING)
def transform(request: HttpRequest, name: str) -> HttpResponseBase:
    """A payload script that ships with the project."""
    path = TRANSFORMS / name
    if not _NAME.fullmatch(name) or not path.is_file():
        return HttpResponse("there is no such transform\n", status=404, content_type="text/plain")
    return FileResponse(path.open("rb"), content_type="text/plain; charset=utf-8")
