"""The order in which shares are served: the most under-used first. Kept in the process for some seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from django.db import connection

from brokerage_app.grid import installed_policy
from jedisite.database.sql import texts

CACHE_S: Final = 10.0
"""How old the order may be, and with it what is known of the shares that are configured."""

EXECUTING: Final = ("sent", "running")
QUEUED: Final = ("activated",)
_POWER = """
SELECT j.gshare, sum(p.power) FILTER (WHERE j.jobstatus = ANY(%(first)s)),
       sum(p.power) FILTER (WHERE j.jobstatus = ANY(%(second)s))
  FROM jobs j LEFT JOIN queues q ON q.name = j.computingsite
 CROSS JOIN LATERAL (SELECT greatest(coalesce(j.corecount, 1), 1) * coalesce(q.core_power, 10.0) AS power) p
 WHERE j.jobstatus = ANY(%(all)s) AND j.gshare IS NOT NULL
 GROUP BY j.gshare
"""


@dataclass(frozen=True)
class ShareOrder:
    """Names of shares in the order in which their jobs are sent; jobs of others come after them."""

    names: tuple[str, ...]

    @cached_property
    def places(self) -> Mapping[str | None, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def text(self) -> str:
        """As a parameter of a statement."""
        return texts(self.names)

    def place_of(self, share: str | None) -> int:
        return self.places.get(share, len(self.names))

    def text_from(self, place: int) -> str:
        return texts(self.names[place:]) if place else self.text


_lock = threading.Lock()
_kept: tuple[float, ShareOrder | None] | None = None


def share_order() -> ShareOrder | None:
    """The present order, at most CACHE_S old, or a little older while another thread reads it; None without shares."""
    global _kept
    kept = _kept
    if kept is not None and time.monotonic() - kept[0] < CACHE_S:
        return kept[1]
    if kept is not None and not _lock.acquire(blocking=False):
        return kept[1]
    if kept is None:
        _lock.acquire()
    try:
        if _kept is kept:
            _kept = (time.monotonic(), read())
        return _kept[1] if _kept else None
    finally:
        _lock.release()


def forget() -> None:
    """Read the shares at the next call."""
    global _kept
    _kept = None


def read() -> ShareOrder | None:
    """The order by what is executing and queued now."""
    tree = installed_policy.share_tree()
    return ShareOrder(tree.serving_order(*powers())) if tree else None


def powers() -> tuple[dict[str, float], dict[str, float]]:
    """HS of the jobs of each share that execute, and of those that are queued: their cores, times the power of a core of
    their queue."""
    values = {"first": list(EXECUTING), "second": list(QUEUED), "all": [*EXECUTING, *QUEUED]}
    with connection.cursor() as cursor:
        cursor.execute(_POWER, values)
        rows = cursor.fetchall()
    executing = {share: float(power) for share, power, _ in rows if power is not None}
    return executing, {share: float(power) for share, _, power in rows if power is not None}
