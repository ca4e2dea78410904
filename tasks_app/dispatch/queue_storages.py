"""Where jobs of a queue leave what they make, and how much room they have. Kept in the process for some seconds.

Pilots are told with every job: read along with each, it takes longer than to choose the job.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from brokerage_app.grid.written_storage import WRITTEN, WRITTEN_BY_ANALYSIS
from brokerage_app.models import StorageEndpoint
from jedisite.database.sql import hot_cursor
from tasks_app.dispatch.description import AtQueue
from tasks_app.transfers.storages import beginnings

CACHE_S: Final = 10.0
"""How long after a change a process may still tell pilots what was."""


_UNKNOWN: Final = AtQueue()
_lock = threading.Lock()
_kept: tuple[float, Mapping[str, AtQueue]] | None = None


def at_queue(name: str) -> AtQueue:
    """What holds at a queue, at most CACHE_S old. Two statements when it is read anew, none else."""
    global _kept
    kept = _kept
    if kept is None or time.monotonic() - kept[0] >= CACHE_S:
        with _lock:
            if _kept is kept:
                _kept = (time.monotonic(), _read())
            kept = _kept
    return kept[1].get(name, _UNKNOWN) if kept else _UNKNOWN


def forget() -> None:
    """Read the queues at the next call."""
    global _kept
    _kept = None


# ruff: noqa: S608 - pieces of ours
_QUEUES: Final = f"SELECT q.name, {WRITTEN}, {WRITTEN_BY_ANALYSIS}, coalesce(q.work_dir_mb, 0) FROM queues q"


def _read() -> dict[str, AtQueue]:
    rows = StorageEndpoint.objects.exclude(path="").values_list("name", "path", "closed_reads")
    local = frozenset(name for name, _, _ in rows)
    away = tuple(begins for _, path, closed in rows if closed for begins in beginnings(Path(path)))
    with hot_cursor() as cursor:
        cursor.execute(_QUEUES)
        return {
            name: AtQueue(usual, analysis, room_mb, local, away) for name, usual, analysis, room_mb in cursor.fetchall()
        }
