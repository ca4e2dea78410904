"""The storages of queues by activity, and the one to which each writes what has no destination of its own.

The first of the list for outputs counts, for analysis jobs that of their own scope if there is one, or, without any, the
storage that the queue names: what `SiteView.written` says, for statements that have no view of the grid.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from brokerage_app.grid.cric import SCOPE_SUFFIX
from brokerage_app.models import Queue, QueueEndpoint
from jedisite.database.sql import hot_cursor, texts

# ruff: noqa: S608 - every piece is a constant of ours
_FIRST: Final = """(SELECT r.ddm_endpoint_name FROM panda_ddm_relation r
   WHERE r.panda_site_name = q.name AND r.scope = '{}' AND r.order_write IS NOT NULL
   ORDER BY r.order_write, r.ddm_endpoint_name COLLATE "C" LIMIT 1)"""
WRITTEN: Final = f"coalesce({_FIRST.format('default')}, q.storage_id)"
"""Of jobs that are none of analysis, by the row `q` of a queue, in SQL; NULL where the queue has no storage."""
WRITTEN_BY_ANALYSIS: Final = f"coalesce({_FIRST.format('analysis')}, {WRITTEN})"
"""The same of analysis jobs."""


def written_storages(queues: Iterable[str], *, analysis: bool = False) -> dict[str, str]:
    """To which storage each of these queues writes; those that have none are left out. One statement."""
    written = WRITTEN_BY_ANALYSIS if analysis else WRITTEN
    with hot_cursor() as cursor:
        cursor.execute(f"SELECT q.name, {written} FROM queues q WHERE q.name = ANY(%s)", [texts(queues)])
        return {name: storage for name, storage in cursor.fetchall() if storage}


def storages_by_activity(queues: Iterable[Queue], *, named: bool = True) -> dict[str, dict[str, list[str]]]:
    """By queue and activity, as `astorages` of a queue's description has them: the first is used first. One statement.

    `named`: where a list says nothing on outputs, or there is none at all, a queue has the storage that it names.
    """
    rows = list(queues)
    orders: dict[str, dict[str, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    for row in QueueEndpoint.objects.filter(queue__in=[queue.name for queue in rows]):
        suffix = SCOPE_SUFFIX if row.scope == "analysis" else ""
        for activity, order in (("read_lan", row.order_read), ("write_lan", row.order_write)):
            if order is not None:
                orders[row.queue_id][f"{activity}{suffix}"].append((order, row.endpoint_id))
    found = {}
    for queue in rows:
        listed = orders[queue.name]
        used = {activity: [name for _, name in sorted(listed[activity])] for activity in sorted(listed)}
        if named and queue.storage_id:
            used = ({} if used else {"read_lan": [queue.storage_id]}) | {"write_lan": [queue.storage_id]} | used
        found[queue.name] = used
    return found
