"""Where a file lies on a storage element: the storage map, endpoints and deterministic paths. Pure."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from tasks_app.worker_node.pilot.errors import Code, JobFailedError
from tasks_app.worker_node.pilot.job import is_plain_name

# A scope becomes folders, one a dot: no part may be empty, which also rules out "..".
SCOPE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
HOSTS = ("file://localhost", "file://")
WRITE_PROTOCOLS = ("write_lan", "write_wan")


@dataclass(frozen=True, slots=True)
class Place:
    """Where one file goes: the storage's own folder, and the file's path in it. `url` is reported to the server."""

    base: Path
    path: Path

    @property
    def url(self) -> str:
        return "file://localhost" + quote(str(self.path))


def base_folder(endpoint: str, storage_map: Mapping[str, Any]) -> Path:
    """The folder of an endpoint on this machine. Raises JobFailedError when the map has none that can be written here."""
    entry = storage_map.get(endpoint)
    if not isinstance(entry, dict):
        raise JobFailedError(
            Code.NO_STORAGE, f"The storage {endpoint!r} is none of the {len(storage_map)} that are known"
        )
    protocols = entry.get("arprotocols")
    for kind in WRITE_PROTOCOLS:
        for protocol in (protocols.get(kind) or []) if isinstance(protocols, dict) else []:
            host, path = str(protocol.get("endpoint", "")), str(protocol.get("path", ""))
            if host.rstrip("/") in (known.rstrip("/") for known in HOSTS) and path.startswith("/"):
                return Path(path)
    raise JobFailedError(Code.NO_STORAGE_PROTOCOL, f"The storage {endpoint!r} has no file:// address to write to")


def base_folders(storage_map: Mapping[str, Any]) -> list[Path]:
    """The folders of all endpoints that can be written on this machine."""
    found = []
    for endpoint in storage_map:
        with contextlib.suppress(JobFailedError):
            found.append(base_folder(endpoint, storage_map))
    return found


def holding_folders(storage_map: Mapping[str, Any]) -> frozenset[Path]:
    """The folders of the endpoints in which the site has seen files: while one is empty, nothing is mounted there."""
    held = {
        name: entry
        for name, entry in storage_map.items()
        if isinstance(entry, dict) and entry.get("holds_files") is True
    }
    return frozenset(base_folders(held))


def default_endpoint(queue_data: Mapping[str, Any]) -> str:
    """The storage that a queue writes to when the job names none; empty when the queue has none either."""
    storages = queue_data.get("astorages")
    for kind in ("write_lan", "pw", "write_wan"):
        names = storages.get(kind) if isinstance(storages, dict) else None
        if isinstance(names, list) and names:
            return str(names[0])
    return ""


def endpoint_of_ranges(queue_data: Mapping[str, Any]) -> str:
    """The storage for outputs of ranges of events; where a queue names none, that for all outputs."""
    storages = queue_data.get("astorages")
    names = storages.get("es_events") if isinstance(storages, dict) else None
    return str(names[0]) if isinstance(names, list) and names else default_endpoint(queue_data)


def number_of(endpoint: str, storage_map: Mapping[str, Any]) -> int:
    """The number by which the site knows a storage. Raises JobFailedError."""
    entry = storage_map.get(endpoint)
    number = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(number, int) or isinstance(number, bool):
        raise JobFailedError(
            Code.NO_STORAGE, f"The storage {endpoint!r} has no number, by which files with ranges are found"
        )
    return number


def place(base: Path, scope: str, lfn: str) -> Place:
    """`<base>/a/b/<h0h1>/<h2h3>/x` for scope `a.b` and name `x`, h the md5 of `a.b:x`. Raises JobFailedError for names
    that would lead elsewhere."""
    if not SCOPE.fullmatch(scope):
        raise JobFailedError(
            Code.SETUP_FAILED, f"Output {lfn}: {scope!r} is not a scope that can be used as a folder name"
        )
    if not is_plain_name(lfn):
        raise JobFailedError(Code.SETUP_FAILED, f"{lfn!r} is not a valid name for an output")
    digest = hashlib.md5(f"{scope}:{lfn}".encode(), usedforsecurity=False).hexdigest()
    return Place(base, Path(PurePosixPath(base, *scope.split("."), digest[:2], digest[2:4], lfn)))
