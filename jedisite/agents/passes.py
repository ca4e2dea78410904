"""Agents: short bounded passes, run by django-q2, made due by a ticker.

An agent is a function of no arguments that makes one pass and returns a `Pass`. It may run anywhere and twice at once:
its claims on rows make that correct; the lease in the table of agents only saves work. The ticker hands due agents
to django-q2; a django-q2 schedule of one minute is the floor that holds when no ticker runs.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import traceback
from contextvars import ContextVar
from typing import Any

import structlog
from django.db import connection, transaction

from jedisite.agents import turns
from jedisite.agents.registry import REGISTRY, Pass, UnknownAgentError
from jedisite.agents.turns import PULSE
from jedisite.database.sql import hot_cursor

log = structlog.get_logger(__name__)

HOST = socket.gethostname()[:40]
QUEUED_FOR_S = 30
"""A pass that django-q2 has not started after this time is handed out again."""
MAX_BACK_OFF_S = 60


def owner() -> str:
    """Name of this process as a holder of locks: host and process id."""
    return f"{HOST}-{os.getpid()}"


def is_dead(holder: str) -> bool:
    """Whether a holder of locks was a process of this host that is gone. Processes of other hosts are unknown: False."""
    host, _, pid = holder.rpartition("-")
    if host != HOST or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def free_dead_leases() -> list[str]:
    """Free the leases of agents whose process was killed on this host, and make them due. Returns their names.

    Leases of other hosts' dead processes run out by themselves.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, lease_owner FROM agents WHERE lease_until > clock_timestamp()")
        dead = [(name, holder) for name, holder in cursor.fetchall() if holder and is_dead(holder)]
        for name, holder in dead:
            cursor.execute(
                """UPDATE agents SET lease_until = NULL, lease_owner = NULL, due_at = clock_timestamp()
                    WHERE name = %s AND lease_owner = %s""",
                [name, holder],
            )
    return [name for name, _ in dead]


def count_anew() -> int:
    """Make overdue agents due now, when a site or a ticker starts. Returns their number.

    While nothing ran, none of them was late. They are taken in the same order. Nor does a pass count that died with the site
    as one that does not end.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE agents SET unended_since = NULL
                WHERE unended_since IS NOT NULL AND (lease_until IS NULL OR lease_until < clock_timestamp())"""
        )
        cursor.execute(
            """
            WITH overdue AS (SELECT name, due_at FROM agents WHERE due_at < clock_timestamp() FOR UPDATE SKIP LOCKED)
            UPDATE agents a SET due_at = statement_timestamp() - n.place * interval '1 microsecond'
              FROM (SELECT name, row_number() OVER (ORDER BY due_at DESC, name DESC) AS place FROM overdue) n
             WHERE a.name = n.name
            """
        )
        return cursor.rowcount


_current: ContextVar[tuple[str, int] | None] = ContextVar("current agent pass", default=None)


def _pulse() -> None:
    """Update the heartbeat of this cluster's workers."""
    path = os.environ.get(PULSE)
    if path:
        with contextlib.suppress(OSError), open(path, "a"):
            os.utime(path)


def overdue(seconds: float) -> bool:
    """Whether a pass was handed to django-q2 that long ago, and nobody has started it."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT EXISTS (SELECT 1 FROM agents WHERE NOT paused AND due_at < clock_timestamp() - %s * interval '1 second'
                                 AND (lease_until IS NULL OR lease_until < clock_timestamp()))
                   OR EXISTS (SELECT 1 FROM agents WHERE NOT paused AND queued_at IS NOT NULL
                                 AND (last_started_at IS NULL
                                      OR last_started_at < clock_timestamp() - (%s + period_s) * interval '1 second'))""",
            [seconds, seconds],
        )
        return bool(cursor.fetchone()[0])


def renew_lease() -> None:
    """Renew the lease of the pass that runs here; long passes call it now and then."""
    _pulse()
    turns.renewed()
    current = _current.get()
    if current is not None:
        with connection.cursor() as cursor:
            cursor.execute(
                """UPDATE agents SET lease_until = clock_timestamp() + lease_s * interval '1 second'
                    WHERE name = %s AND fence = %s AND lease_until < clock_timestamp() + lease_s * interval '0.7 second'""",
                current,
            )


def synchronise_after_migrate(**_: Any) -> None:
    """Make the partitions of today, and see to the rows of agents."""
    from jedisite.agents.housekeeping import keep_partitions

    keep_partitions()
    give_rows()


def give_rows() -> None:
    """Give every registered agent its row and its django-q2 schedule of one minute."""
    from django_q.models import Schedule

    from jedisite.models import Agent

    known = Agent.objects.in_bulk()
    Agent.objects.bulk_create(
        [
            Agent(name=spec.name, title=spec.title, period_s=spec.period_s, lease_s=spec.lease_s)
            for spec in REGISTRY.values()
            if spec.name not in known
        ],
        ignore_conflicts=True,  # another host may migrate at the same moment
    )
    for agent in known.values():
        spec = REGISTRY.get(agent.name)
        if spec is not None and (agent.title, agent.lease_s) != (spec.title, spec.lease_s):
            Agent.objects.filter(name=agent.name).update(title=spec.title, lease_s=spec.lease_s)
    scheduled = set(Schedule.objects.values_list("name", flat=True))
    Schedule.objects.bulk_create(
        [
            Schedule(
                name=f"agent {name}",
                func="jedisite.agents.passes.run_floor",
                args=f"'{name}'",
                schedule_type=Schedule.MINUTES,
                minutes=1,
                repeats=-1,
            )
            for name in REGISTRY
            if f"agent {name}" not in scheduled
        ]
    )


_last_kick: dict[str, float] = {}
_kick_guard = threading.Lock()


def kick(*names: str, at_most_every_s: float = 0.0) -> None:
    """Make agents due now, when the current transaction commits.

    `at_most_every_s` spares hot paths the statement: a process repeats a kick only after that time.
    """
    if at_most_every_s:
        now = time.monotonic()
        with _kick_guard:
            names = tuple(n for n in names if now - _last_kick.get(n, -1e9) >= at_most_every_s)
            _last_kick.update(dict.fromkeys(names, now))
    if names:
        transaction.on_commit(lambda: _make_due(names))


def _make_due(names: tuple[str, ...]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE agents SET due_at = clock_timestamp() WHERE name = ANY(%s) AND due_at > clock_timestamp()",
            [list(names)],
        )


def take_due() -> list[str]:
    """Claim the agents that are due, for handing to django-q2, and set when they are due again. One statement."""
    with hot_cursor() as cursor:
        cursor.execute(
            """
            UPDATE agents SET due_at = clock_timestamp() + period_s * interval '1 second', queued_at = clock_timestamp()
             WHERE name IN (
                SELECT name FROM agents
                 WHERE due_at <= clock_timestamp() AND NOT paused
                   AND (lease_until IS NULL OR lease_until < clock_timestamp())
                   AND (queued_at IS NULL OR queued_at < clock_timestamp() - %s * interval '1 second')
                 ORDER BY due_at FOR UPDATE SKIP LOCKED)
            RETURNING name
            """,
            [QUEUED_FOR_S],
        )
        return [name for (name,) in cursor.fetchall()]


def tick() -> list[str]:
    """Hand every due agent to django-q2. Returns their names."""
    from django_q.tasks import async_task

    names = [name for name in take_due() if name in REGISTRY]
    for name in names:
        async_task("jedisite.agents.passes.run_agent", name, task_name=name, group=name, ack_failure=True, save=False)
    return names


def run_floor(name: str) -> int | None:
    """What the one-minute schedule runs: a pass, unless one has started within the agent's period."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT last_started_at IS NULL
                   OR last_started_at < clock_timestamp() - greatest(period_s, 20) * interval '1 second'
                 FROM agents WHERE name = %s""",
            [name],
        )
        row = cursor.fetchone()
    return run_agent(name) if row and row[0] else None


def run_agent(name: str, *, even_if_paused: bool = False) -> int | None:
    """Make one pass under the agent's lease and record it.

    Returns the number of items, or None when another process holds the lease or the agent is paused.
    A failing pass is recorded and retried later with a growing pause; it raises nothing.
    Raises UnknownAgentError.
    """
    spec = REGISTRY.get(name)
    if spec is None:
        raise UnknownAgentError(f"there is no agent {name}; there are {', '.join(sorted(REGISTRY))}")
    _pulse()
    fence = _take_lease(name, even_if_paused)
    if fence is None:
        return None
    started = time.monotonic()
    error, result = "", Pass()
    with structlog.contextvars.bound_contextvars(agent=name, fence=fence):
        token = _current.set((name, fence))
        try:
            result = spec.run()
        except Exception as exc:
            log.exception("agent.pass_failed")
            error = _text_of(exc)
        except BaseException as exc:
            # Its time is over, or the process is to end.
            log.exception("agent.pass_broken_off")
            _release(name, fence, time.monotonic() - started, result, _text_of(exc))
            raise
        finally:
            _current.reset(token)
        duration = time.monotonic() - started
        if result.items:
            log.info("agent.pass", items=result.items, seconds=round(duration, 3), note=result.note)
    _release(name, fence, duration, result, error)
    return result.items


def _text_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-8000:].replace("\x00", "�")


def _take_lease(name: str, even_if_paused: bool) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE agents SET lease_owner = %s, lease_until = clock_timestamp() + lease_s * interval '1 second',
                   fence = fence + 1, queued_at = NULL, last_started_at = clock_timestamp(),
                   unended_since = coalesce(unended_since, clock_timestamp())
             WHERE name = %s AND (NOT paused OR %s) AND (lease_until IS NULL OR lease_until < clock_timestamp())
            RETURNING fence
            """,
            [owner(), name, even_if_paused],
        )
        row = cursor.fetchone()
    return row[0] if row else None


@transaction.atomic
def _release(name: str, fence: int, duration: float, result: Pass, error: str) -> None:
    """Record the pass and free the lease, if it is still ours."""
    worth_a_row = bool(result.items or error)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE agents a SET lease_until = NULL, lease_owner = NULL, last_ended_at = clock_timestamp(), unended_since = NULL,
                   passes = a.passes + 1,
                   last_duration_s = %(duration)s, last_items = %(items)s, last_error = %(error)s,
                   errors_in_a_row = CASE WHEN %(error)s = '' THEN 0 ELSE a.errors_in_a_row + 1 END,
                   due_at = CASE
                     WHEN %(error)s <> '' THEN greatest(a.due_at, clock_timestamp()
                          + least(a.period_s * 2 ^ least(a.errors_in_a_row, 10), %(most)s) * interval '1 second')
                     WHEN %(more)s THEN clock_timestamp() ELSE a.due_at END,
                   last_recorded_at = CASE WHEN %(row)s OR old.quiet THEN clock_timestamp() ELSE a.last_recorded_at END
              FROM (SELECT name, last_recorded_at IS NULL OR last_recorded_at < clock_timestamp() - interval '1 minute' AS quiet
                      FROM agents WHERE name = %(name)s AND fence = %(fence)s FOR UPDATE) old
             WHERE a.name = old.name
            RETURNING old.quiet, a.last_started_at
            """,
            {
                "name": name,
                "fence": fence,
                "duration": duration,
                "items": result.items,
                "error": error,
                "more": result.more,
                "row": worth_a_row,
                "most": MAX_BACK_OFF_S,
            },
        )
        row = cursor.fetchone()
        if row is None or not (worth_a_row or row[0]):
            return
        cursor.execute(
            """INSERT INTO agent_passes (agent, started_at, duration_s, items, note, error, host)
               VALUES (%s, %s, %s, %s, %s, %s, %s)""",
            [name, row[1], duration, result.items, result.note, error, owner()],
        )
