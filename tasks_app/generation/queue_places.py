"""Who wants places in queues, and how many each has: read once for a pass of the job generator."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from brokerage_app.formulas.queue_room import QueueUsers
from jedisite.database.sql import hot_cursor
from tasks_app.domain.states import TASK_GENERATING
from tasks_app.models import Task

_WHO = """
SELECT DISTINCT coalesce(t.username, '') FROM jedi_tasks t
 WHERE t.status = ANY(%(statuses)s) AND t.next_check_at <= clock_timestamp() + %(soon)s AND {condition}
"""
_QUEUED = """
SELECT coalesce(computingsite, ''), coalesce(produsername, ''), count(*) FROM jobs
 WHERE jobstatus IN ('defined', 'assigned', 'activated', 'sent', 'starting') GROUP BY 1, 2
"""


class QueuePlaces:
    """Users whose tasks could get jobs now or `soon`, when there is room again, and their queued jobs.

    `condition` is SQL of ours on the row `t`, with `values`. Nothing is read before the first question; jobs that the pass
    makes are counted on.
    """

    def __init__(self, condition: str, values: Mapping[str, Any], soon: timedelta) -> None:
        self._condition, self._values = condition, {**values, "soon": soon, "statuses": sorted(TASK_GENERATING)}
        self._users: frozenset[str] | None = None
        self._queued: dict[str, Counter[str]] = defaultdict(Counter)

    def queue_users(self, task: Task) -> QueueUsers:
        """The users who want places, beside that of the task, and how many jobs it has queued where."""
        if self._users is None:
            self._read()
        user = task.user or ""
        return QueueUsers(len((self._users or frozenset()) | {user}), self._queued[user])

    def made(self, task: Task, queue: str, jobs: int) -> None:
        if self._users is not None:
            self._queued[task.user or ""][queue] += jobs

    def _read(self) -> None:
        with hot_cursor() as cursor:
            cursor.execute(_WHO.format(condition=self._condition), self._values)
            self._users = frozenset(user for (user,) in cursor)
            if len(self._users) > 1:
                cursor.execute(_QUEUED)
                for queue, user, jobs in cursor:
                    self._queued[user][queue] = jobs
