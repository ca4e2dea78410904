"""What pilots read of a site, in the shapes that PanDA's pilots expect, and the transforms that ship with the project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

from brokerage_app.models import Queue, StorageEndpoint
from jedisite.identity import Right, needs
from tasks_app import sandboxes

TRANSFORMS = Path(__file__).resolve().parent.parent / "transforms"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,100}")


def queue_data(queue: Queue) -> dict[str, Any]:
    """One queue as a pilot reads it. Memory and disk in MB, times in seconds."""
    endpoint = queue.storage_id or "LOCAL_SE"
    return {
        **queue.data,
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
        "copytools": {"mv": {}},
        "acopytools": {"pr": ["mv"], "pw": ["mv"], "pl": ["mv"]},
        "astorages": {key: [endpoint] for key in ("pr", "pw", "pl", "read_lan", "write_lan", "write_wan")},
        "catchall": queue.catchall or "mv_final_destination",
        "params": {"internet_protocol_version": "IPv4"},
    }


@needs(Right.SITE_DATA)
def schedconfig(request: HttpRequest, name: str) -> HttpResponse:
    queue = Queue.objects.filter(pk=name).first()
    if queue is None:
        return JsonResponse({"error": f"there is no queue {name}"}, status=404)
    return JsonResponse(queue_data(queue))


@needs(Right.SITE_DATA)
def storage_map(request: HttpRequest) -> HttpResponse:
    found = {}
    for number, storage in enumerate(StorageEndpoint.objects.order_by("name"), 1):
        protocol = [{"endpoint": "file://localhost", "path": storage.path.rstrip("/") + "/"}]
        ways = ("read_lan", "write_lan", "read_wan", "write_wan", "pr", "pw", "pl")
        found[storage.name] = {
            "id": number, "name": storage.name, "site": storage.site_name, "is_deterministic": True, "type": storage.type,
            "arprotocols": dict.fromkeys(ways, protocol),
        }  # fmt: skip
    return JsonResponse(found)


@needs(Right.NOTHING)
def sandbox(request: HttpRequest, name: str) -> HttpResponseBase:
    """An archive with a user's code. Its name is the key: jobs fetch it, and they bear no token."""
    path = sandboxes.path_of(name)
    if path is None:
        return HttpResponse("there is no such sandbox\n", status=404, content_type="text/plain")
    return FileResponse(path.open("rb"), content_type="application/octet-stream", as_attachment=True)


@needs(Right.NOTHING)
def transform(request: HttpRequest, name: str) -> HttpResponseBase:
    """A payload script that ships with the project."""
    path = TRANSFORMS / name
    if not _NAME.fullmatch(name) or not path.is_file():
        return HttpResponse("there is no such transform\n", status=404, content_type="text/plain")
    return FileResponse(path.open("rb"), content_type="text/plain; charset=utf-8")
