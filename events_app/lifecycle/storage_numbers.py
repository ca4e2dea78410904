"""Where the storages that pilots name by number keep a file: the site works addresses out itself, and believes none."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from events_app.lifecycle.zip_rows import SCOPE
from jedisite.database.sql import hot_cursor, numbers
from tasks_app.ddm.addresses import WAYS, storage_path
from tasks_app.ddm.local_files import file_url

_ROOTS: Final = "SELECT number, path, data -> 'arprotocols' FROM storage_endpoints WHERE number = ANY(%s::int[])"


class Storages:
    """The storages of these numbers, by one query. The first address to which pilots write there counts."""

    def __init__(self, wanted: Iterable[int]) -> None:
        self._roots: dict[int, str] = {}
        if some := sorted(set(wanted)):
            with hot_cursor() as cursor:
                cursor.execute(_ROOTS, [numbers(some)])
                self._roots = {number: _root(path, told) for number, path, told in cursor.fetchall()}

    def knows(self, number: int) -> bool:
        """Whether there is such a storage, and pilots can write to it."""
        return bool(self._roots.get(number))

    def address(self, number: int, lfn: str) -> str:
        """Of a file of consumers. Raises KeyError."""
        root = self._roots[number]
        if root.startswith("/"):
            return file_url(storage_path(Path(root), SCOPE, lfn))
        return root.rstrip("/") + quote(str(storage_path(Path("/"), SCOPE, lfn)))


def _root(path: str, told: Any) -> str:
    """A folder of this machine, or the beginning of addresses; "" when the storage says no place."""
    if path:
        return path
    protocols = told if isinstance(told, dict) else {}
    ways = [one for way in WAYS for one in (protocols.get(way) or []) if isinstance(one, dict)]
    for one in ways:
        endpoint, folder = one.get("endpoint"), one.get("path")
        if isinstance(endpoint, str) and isinstance(folder, str) and endpoint and folder.startswith("/"):
            here = endpoint.rstrip("/") in ("file:", "file://localhost")
            return folder if here else f"{endpoint.rstrip('/')}{folder}"
    return ""
