"""How often pilots of each queue call. Counted in the process and written a few times a minute, not once a call.

What a process has not written when it is killed is lost: brokers ask whether a queue has pilots at all, and how many roughly.
"""

from __future__ import annotations

import threading
import time

from jedisite.sql import hot_cursor, numbers, texts

WRITE_EVERY_S = 10.0
_ADD = """
INSERT INTO sitedata (site, hour, getjob, updatejob)
SELECT c.site, date_trunc('hour', clock_timestamp()), c.got, c.updated
  FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) c (site, got, updated) JOIN queues q ON q.name = c.site ORDER BY c.site
    ON CONFLICT (hour, site) DO UPDATE SET getjob = sitedata.getjob + excluded.getjob,
       updatejob = sitedata.updatejob + excluded.updatejob
"""

_guard = threading.Lock()
_counts: dict[str, list[int]] = {}
_next_write = 0.0


def count(queue: str, *, got: int = 0, updated: int = 0) -> None:
    """Count calls for jobs and updates of jobs. Every ten seconds one of the calls writes what was counted."""
    global _next_write
    now = time.monotonic()
    with _guard:
        row = _counts.setdefault(queue, [0, 0])
        row[0] += got
        row[1] += updated
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
        cursor.execute(
            _ADD,
            [texts(queue for queue, _ in rows), numbers(got for _, (got, _) in rows), numbers(n for _, (_, n) in rows)],
        )
