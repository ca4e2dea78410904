"""In which order work queues get jobs where no tree of shares steers: by their own shares, a partition as one queue."""

from __future__ import annotations

from brokerage_app.grid import installed_policy
from brokerage_app.policy.division import generating_order
from jedisite.database.sql import hot_cursor
from tasks_app.counts.line_order import powers_of_queues
from tasks_app.domain.states import TASK_GENERATING
from tasks_app.generation.groups import Throttle

_WAITING = """
SELECT DISTINCT t.workqueue_id FROM jedi_tasks t
 WHERE t.status = ANY(%(statuses)s) AND t.workqueue_id IS NOT NULL AND {has_work}
"""


def order_of(throttle: Throttle, has_work: str) -> tuple[int, ...]:
    """Ids of work queues, those first that are furthest below their part; empty where there is a tree of shares, or no task
    of a queue with a share waits (`has_work`: SQL on the row `t`)."""
    if throttle.queues.shares or not throttle.allowances:
        return ()
    with hot_cursor() as cursor:
        cursor.execute(_WAITING.format(has_work=has_work), {"statuses": sorted(TASK_GENERATING)})
        waiting = [queue for (queue,) in cursor.fetchall()]
    return generating_order(installed_policy.queue_rows(), *powers_of_queues(), waiting)
