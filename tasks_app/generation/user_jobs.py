"""How many jobs each user has, for the priorities of the next ones."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from brokerage_app.grid.configured import configuration
from jedisite.database.sql import hot_cursor
from tasks_app.domain.priorities import Boost, SerialPriority, Who, boost_of, read_boosts
from tasks_app.domain.states import JOB_OPEN
from tasks_app.domain.users_work import is_users, users_jobs
from tasks_app.generation.rules.common_facts import TaskFacts
from tasks_app.refining.offered import MERGES

_COUNTS = f"""
SELECT CASE WHEN coalesce(workinggroup, '') = '' THEN coalesce(produsername, '') ELSE '' END, coalesce(workinggroup, ''),
       count(*) FROM jobs j
 WHERE jobstatus = ANY(%s) AND {users_jobs("j")} AND processingtype IS DISTINCT FROM %s GROUP BY 1, 2
"""  # noqa: S608 - a constant


class UserJobs:
    """Jobs that have not ended, by user or working group, and who is boosted (USER_JOB_PRIO_BOOST_DICTS).

    For one pass: read once, at the first task of a user, and counted on as jobs are made.
    """

    def __init__(self) -> None:
        self._counts: Counter[Who] | None = None
        self._boosts: tuple[Boost, ...] = ()

    def priorities(self, task: TaskFacts, now: datetime) -> SerialPriority | None:
        """The priorities of the next jobs of a task; None when their number does not count: not a user's."""
        if not is_users(task.label, task.task_type):
            return None
        if self._counts is None:
            self._counts = _read()
            self._boosts = read_boosts(configuration().get("dbproxy", "USER_JOB_PRIO_BOOST_DICTS"))
        boost = boost_of(self._boosts, task.user, task.working_group or "", now)
        return SerialPriority(task.priority, self._counts[_who(task.user, task.working_group)], boost)

    def made(self, user: str, working_group: str | None, jobs: int) -> None:
        """So many jobs were made for a user's task."""
        if self._counts is not None:
            self._counts[_who(user, working_group)] += jobs


def _who(user: str, working_group: str | None) -> Who:
    return ("", working_group) if working_group else (user, "")


def _read() -> Counter[Who]:
    with hot_cursor() as cursor:
        cursor.execute(_COUNTS, [sorted(JOB_OPEN), MERGES])
        return Counter({(user, group): count for user, group, count in cursor})
