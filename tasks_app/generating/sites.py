"""The sites as the broker sees them: their descriptions, and how many jobs run and wait there."""

from __future__ import annotations

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
    )
