"""What waits for the agents, for the workers of django-q2, and in the database itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.db import connection
from django.urls import reverse

from tasks_app.domain import words
from tasks_app.domain.states import TASK_GENERATING, TaskStatus
from tasks_app.generation.task_turns import HAS_WORK


@dataclass(frozen=True, slots=True)
class Source:
    """Where an agent finds its work: rows of a statement of ours. `statuses` are those of tasks, if it looks for tasks."""

    things: str
    rows: str
    statuses: tuple[str, ...] = ()


def _tasks(statuses: Iterable[str], condition: str = "TRUE") -> Source:
    """Tasks that are due and that nobody has claimed."""
    ordered = tuple(sorted(str(status) for status in statuses))
    names = ", ".join(f"'{status}'" for status in ordered)
    return Source(
        "tasks",
        f"""SELECT 1 FROM jedi_tasks t WHERE t.status IN ({names}) AND t.lockedby IS NULL
               AND t.next_check_at <= clock_timestamp() AND {condition}""",  # noqa: S608 - states and conditions of ours
        ordered,
    )


SOURCES: Final[dict[str, Source]] = {
    "refiner": _tasks([TaskStatus.REGISTERED, TaskStatus.STAGED, TaskStatus.REREFINE]),
    "feeder": _tasks([TaskStatus.DEFINED]),
    "task_broker": _tasks([TaskStatus.ASSIGNING]),
    "job_generator": _tasks(TASK_GENERATING, HAS_WORK),
    "post_processor": _tasks([TaskStatus.PREPARED, TaskStatus.PASSED, TaskStatus.TOBROKEN, TaskStatus.TOABORT]),
    "pending": _tasks([TaskStatus.PENDING]),
    "adder": Source("reports", "SELECT 1 FROM job_output_report"),
    "commando": Source("commands", "SELECT 1 FROM task_commands WHERE comm_status IN ('waiting', 'working')"),
    "messages": Source("messages", "SELECT 1 FROM messages_out WHERE position IS NULL"),
    "message_processor": Source("messages", "SELECT 1 FROM messages_in WHERE processed IS NULL AND parked IS NULL"),
    "production_systems": Source(
        "rows",
        """SELECT 1 FROM t_task WHERE status = 'waiting'
           UNION ALL SELECT 1 FROM prodsys_comm WHERE comm_status = 'waiting'""",
    ),
    "notification": Source("mails", "SELECT 1 FROM notifications WHERE sent IS NULL AND not_sent = ''"),
    "periodic": Source(
        "schedules", "SELECT 1 FROM periodic_tasks WHERE ended IS NULL AND next_due <= clock_timestamp()"
    ),
}
"""By agent. Agents that look at everything from time to time have no backlog."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits for an agent, counted to just above words.COUNT_CAP."""

    number: int
    things: str
    url: str

    @property
    def text(self) -> str:
        return f"{words.capped(self.number)} {self.things if self.number != 1 else self.things[:-1]}"


def backlogs() -> dict[str, Backlog]:
    """The backlog of each agent that has one. One query."""
    parts = [f"SELECT '{name}', (SELECT count(*) FROM ({source.rows} LIMIT %s) r)" for name, source in SOURCES.items()]  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), [words.COUNT_CAP + 1] * len(parts))
        found: dict[str, int] = dict(cursor.fetchall())
    return {name: Backlog(found[name], source.things, _address(source)) for name, source in SOURCES.items()}


def _address(source: Source) -> str:
    """The list of the tasks among which those are that wait; "" where no page lists the things."""
    if not source.statuses:
        return ""
    return f"{reverse('dashboard:tasks')}?{urlencode({'status': ','.join(source.statuses)}, safe=',')}"


@dataclass(frozen=True, slots=True)
class Machinery:
    """The queue of django-q2, and the database: its connections, locks that are waited for, the oldest transaction."""

    queued: int
    in_work: int
    oldest_queued_s: float
    connections: int
    active: int
    most_connections: int
    waiting_locks: int
    oldest_transaction_s: float
    database_bytes: int


_MACHINERY = """
SELECT q.queued, q.in_work, q.oldest, c.connections, c.active, current_setting('max_connections')::int,
       (SELECT count(*) FROM pg_locks WHERE NOT granted), c.oldest, pg_database_size(current_database())
  FROM (SELECT count(*) FILTER (WHERE lock <= now()) AS queued, count(*) FILTER (WHERE lock > now()) AS in_work,
               coalesce(extract(epoch FROM max(now() - lock) FILTER (WHERE lock <= now())), 0)::float AS oldest
          FROM django_q_ormq) q,
       (SELECT count(*) AS connections, count(*) FILTER (WHERE state = 'active') AS active,
               coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::float AS oldest
          FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()) c
"""


def machinery() -> Machinery:
    """One query."""
    with connection.cursor() as cursor:
        cursor.execute(_MACHINERY)
        return Machinery(*cursor.fetchone())
