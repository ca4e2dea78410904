"""The order in which lines of jobs are served: urgent ones, then the most under-used. Kept in the process for some seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.db import connection

from brokerage_app.grid import installed_policy
from brokerage_app.policy.division import serving_order
from jedisite.database.sql import texts
from tasks_app.domain.lines import URGENT, of_queue, of_share, queue_of

CACHE_S: Final = 10.0
"""How old the order may be, and with it what is known of the shares that are configured."""

EXECUTING: Final = ("sent", "running")
QUEUED: Final = ("activated",)
_POWER = """
SELECT j.{of}, sum(p.power) FILTER (WHERE j.jobstatus = ANY(%(first)s)),
       sum(p.power) FILTER (WHERE j.jobstatus = ANY(%(second)s))
  FROM jobs j LEFT JOIN queues q ON q.name = j.computingsite
 CROSS JOIN LATERAL (SELECT greatest(coalesce(j.corecount, 1), 1) * coalesce(q.core_power, 10.0) AS power) p
 WHERE j.jobstatus = ANY(%(all)s) AND j.{of} IS NOT NULL
 GROUP BY j.{of}
"""


@dataclass(frozen=True)
class LineOrder:
    """Lines in the order in which their jobs are sent, that of urgent ones first; jobs in others come after them, by priority."""

    names: tuple[str, ...]

    @cached_property
    def places(self) -> Mapping[str | None, int]:
        return {name: place for place, name in enumerate(self.names)}

    @property
    def has_shares(self) -> bool:
        """Whether anything is served by shares; else jobs that are not urgent go by priority alone."""
        return len(self.names) > 1

    @property
    def is_of_queues(self) -> bool:
        """Whether work queues are served, not shares of the tree."""
        return queue_of(self.names[-1]) is not None

    @cached_property
    def text(self) -> str:
        """As a parameter of a statement."""
        return texts(self.names)

    def place_of(self, line: str | None) -> int:
        return self.places.get(line, len(self.names))


_lock = threading.Lock()
_kept: tuple[float, LineOrder] | None = None


def line_order() -> LineOrder:
    """The present order, at most CACHE_S old, or a little older while another thread reads it."""
    global _kept
    kept = _kept
    if kept is not None and time.monotonic() - kept[0] < CACHE_S:
        return kept[1]
    if kept is not None and not _lock.acquire(blocking=False):
        return kept[1]
    if kept is None:
        _lock.acquire()
    try:
        if _kept is kept or _kept is None:
            _kept = (time.monotonic(), read())
        return _kept[1]
    finally:
        _lock.release()


def forget() -> None:
    """Read the shares at the next call."""
    global _kept
    _kept = None


def read() -> LineOrder:
    """The order by what is executing and queued now: of global shares or, where there is no tree of them, of work queues.

    Where these have no shares either, only urgent jobs have a line."""
    tree = installed_policy.share_tree()
    if tree:
        return LineOrder((URGENT, *map(of_share, tree.serving_order(*powers_of_shares()))))
    queues = installed_policy.queue_rows()
    if all(row.share is None for row in queues):
        return LineOrder((URGENT,))
    return LineOrder((URGENT, *map(of_queue, serving_order(queues, *powers_of_queues()))))


def powers_of_shares() -> tuple[dict[str, float], dict[str, float]]:
    """HS of the jobs of each share that execute, and of those that are queued: their cores, times the power of a core of
    their queue."""
    return _powers("gshare")


def powers_of_queues() -> tuple[dict[int, float], dict[int, float]]:
    """The same of each work queue, by id."""
    return _powers("workqueue_id")


def _powers(of: str) -> tuple[dict[Any, float], dict[Any, float]]:
    values = {"first": list(EXECUTING), "second": list(QUEUED), "all": [*EXECUTING, *QUEUED]}
    with connection.cursor() as cursor:
        cursor.execute(_POWER.format(of=of), values)
        rows = cursor.fetchall()
    executing = {key: float(power) for key, power, _ in rows if power is not None}
    return executing, {key: float(power) for key, _, power in rows if power is not None}
