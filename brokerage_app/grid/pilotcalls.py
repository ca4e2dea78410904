"""How often pilots of each queue call. Counted in the process and written a few times a minute, not once a call.

What a process has not written when it is killed is lost: brokers ask whether a queue has pilots at all, and how many roughly.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from jedisite.database.sql import hot_cursor, numbers, texts

WRITE_EVERY_S = 10.0
_ADD = """
INSERT INTO sitedata (site, hour, getjob, updatejob, lastgetjob)
SELECT c.site, date_trunc('hour', clock_timestamp()), c.got, c.updated,
       CASE WHEN c.got > 0 THEN clock_timestamp() - c.ago_ms * interval '1 millisecond' END
  FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) c (site, got, updated, ago_ms)
  JOIN queues q ON q.name = c.site ORDER BY c.site
    ON CONFLICT (hour, site) DO UPDATE SET getjob = sitedata.getjob + excluded.getjob,
       updatejob = sitedata.updatejob + excluded.updatejob, lastgetjob = greatest(sitedata.lastgetjob, excluded.lastgetjob)
"""


@dataclass(slots=True)
class _Calls:
    """Calls of one queue that are not written yet. `last_got`: when the last call for a job came, on the monotonic clock."""

    got: int = 0
    updated: int = 0
    last_got: float = 0.0


_guard = threading.Lock()
_counts: dict[str, _Calls] = {}
_next_write = 0.0


def count(queue: str, *, got: int = 0, updated: int = 0) -> None:
    """Count calls for jobs and updates of jobs. Every ten seconds one of the calls writes what was counted."""
    global _next_write
    now = time.monotonic()
    with _guard:
        row = _counts.get(queue)
        if row is None:
            row = _counts[queue] = _Calls()
        row.updated += updated
        if got:
            row.got += got
            row.last_got = now
        if now < _next_write:
            return
        _next_write = now + WRITE_EVERY_S
    write()


def write() -> None:
    """Write what was counted since the last time. Names that are no queues are dropped."""
    with _guard:
        rows = sorted(_counts.items())
        _counts.clear()
    if not rows:
        return
    with hot_cursor() as cursor:
        now = time.monotonic()
        cursor.execute(
            _ADD,
            [
                texts(queue for queue, _ in rows),
                numbers(row.got for _, row in rows),
                numbers(row.updated for _, row in rows),
                numbers(int(1000 * (now - row.last_got)) if row.got else 0 for _, row in rows),
            ],
        )
