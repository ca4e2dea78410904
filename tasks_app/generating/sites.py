"""The sites as the broker sees them: their descriptions, and how many jobs run and wait there."""

from __future__ import annotations

from typing import Any

from brokerage_app.models import Queue
from brokerage_app.snapshot import SiteView
from jedisite.sql import hot_cursor

_COUNTS = """
SELECT computingsite, count(*) FILTER (WHERE jobstatus = 'running'),
       count(*) FILTER (WHERE jobstatus IN ('assigned', 'activated', 'sent', 'starting')),
       count(*) FILTER (WHERE jobstatus IN ('pending', 'defined'))
  FROM jobs WHERE jobstatus = ANY(ARRAY['activated', 'assigned', 'defined', 'holding', 'merging', 'pending', 'running', 'sent',
                                        'starting', 'throttled', 'transferring', 'waiting'])
 GROUP BY computingsite
"""


def load_sites() -> list[SiteView]:
    """One view of each queue, for one pass."""
    with hot_cursor() as cursor:
        cursor.execute(_COUNTS)
        counts = {site: (running, queued, defined) for site, running, queued, defined in cursor}
    return [view_of(queue, *counts.get(queue.name, (0, 0, 0))) for queue in Queue.objects.order_by("name")]


def view_of(queue: Queue, running: int = 0, queued: int = 0, defined: int = 0) -> SiteView:
    return SiteView(
        name=queue.name,
        status=queue.status,
        cores=queue.core_count,
        max_memory_mb=queue.max_memory_mb or 0,
        min_memory_mb=queue.min_memory_mb,
        max_walltime_s=queue.max_walltime_s or 0,
        min_walltime_s=queue.min_walltime_s,
        work_dir_mb=queue.work_dir_mb or 0,
        running=running,
        queued=queued,
        defined=defined,
        core_power=queue.core_power,
        capability=queue.capability,
        portion=_portion(queue.data),
        direct_io=bool(queue.data.get("direct_access_lan")),
        direct_io_only=queue.data.get("maxinputsize") == -1,
    )


def _portion(data: dict[str, Any]) -> int:
    """Jobs that a site takes at a time, as the information system gives it among the queue's own parameters."""
    params = data.get("params")
    value = params.get("job_chunk_size") if isinstance(params, dict) else None
    return value if isinstance(value, int) and value > 0 else 0
