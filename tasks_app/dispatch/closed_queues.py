"""Queues whose pilots get no jobs: offline or paused ones, and those whose storage takes no outputs. Kept for some seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Final

from brokerage_app.grid.closed_storage import queues_without_storage
from brokerage_app.models import Queue

CLOSED: Final = ("offline", "paused")
CACHE_S: Final = 2.0
"""How long after the change of a status a process may still hand out a job."""

_lock = threading.Lock()
_kept: tuple[float, Mapping[str, str]] | None = None


def why_closed(queue: str) -> str:
    """Why pilots of a queue get no jobs now, as a sentence; "" when they do. A queue that the site has not is open."""
    global _kept
    kept = _kept
    if kept is None or time.monotonic() - kept[0] >= CACHE_S:
        with _lock:
            if _kept is kept:
                _kept = (time.monotonic(), _read())
            kept = _kept
    return kept[1].get(queue, "") if kept else ""


def forget() -> None:
    """Read the queues at the next call."""
    global _kept
    _kept = None


def _read() -> dict[str, str]:
    rows = Queue.objects.filter(status__in=CLOSED).values_list("name", "status", "status_reason")
    unstored = {name: f"No jobs: {why}." for name, why in queues_without_storage().items()}
    return unstored | {name: _sentence(name, status, reason.strip()) for name, status, reason in rows}


def _sentence(name: str, status: str, reason: str) -> str:
    return f"No jobs: the queue {name} is {status}" + (f" ({reason.rstrip('.')})." if reason else ".")
