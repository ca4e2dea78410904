"""Room at destinations: a copy begins where its file fits beside what copies that have begun still have to write there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jedisite.database.sql import hot_cursor
from tasks_app.domain.words import size
from tasks_app.transfers.file_copies import NoRoomError
from tasks_app.transfers.rules.copy_waits import NO_ROOM
from tasks_app.transfers.storages import Storage


@dataclass(slots=True)
class Room:
    """`left`: copies that have begun, by request: their destination, and the bytes that they still have to write."""

    stores: Mapping[str, Storage]
    left: dict[int, tuple[str, int]]

    def check(self, request: int, endpoint: str, part: Path, whole: int) -> None:
        """Raises NoRoomError when the rest of a copy does not fit. One that has begun has its room."""
        if request in self.left:
            return
        try:
            disk, device = os.statvfs(self.stores[endpoint].path), self._device(endpoint)
            wanted = whole - (part.lstat().st_size if part.exists() else 0)
        except OSError:
            return  # the copy says what is wrong
        taken = sum(left for other, left in self.left.values() if self._device(other) == device)
        free = max(disk.f_bavail * disk.f_frsize - taken, 0)
        if wanted > free:
            raise NoRoomError(f"{NO_ROOM}{endpoint}: {size(free)} free, {size(wanted)} wanted")

    def _device(self, endpoint: str) -> int | None:
        """Endpoints may share a file system."""
        try:
            return os.stat(self.stores[endpoint].path).st_dev
        except (KeyError, OSError):
            return None

    def note(self, request: int, endpoint: str, has: int, whole: int) -> None:
        """How far a copy has come: what is whole, or has nothing, needs no room kept."""
        if 0 < has < whole:
            self.left[request] = endpoint, whole - has
        else:
            self.left.pop(request, None)


def room_now(stores: Mapping[str, Storage]) -> Room:
    with hot_cursor() as cursor:
        cursor.execute(
            "SELECT id, destination, bytes - bytes_copied FROM transfer_requests WHERE status = 'active' AND bytes_copied > 0"
        )
        return Room(stores, {request: (endpoint, left) for request, endpoint, left in cursor.fetchall()})
