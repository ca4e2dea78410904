"""Claims: one process at a time works on a task. A claim is its lock with a fence, a number that grows with each claim and move.

Whoever comes late, after the watchdog has freed his claim, has an old fence and can write nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import connection, transaction

from jedisite.agents import troubles
from jedisite.agents.passes import kick, renew_lease
from jedisite.agents.turns import FOR_EACH_S, TurnTooLongError, turn
from jedisite.database.sql import hot_cursor, texts
from jedisite.processes.logs import sentence_of
from tasks_app.lifecycle.turn_order import Turns
from tasks_app.models import Task

log = structlog.get_logger(__name__)


class LostClaimError(RuntimeError):
    """Another process has taken the task over: nothing was written."""


def claim_tasks(
    by: str,
    statuses: Iterable[str],
    limit: int,
    *,
    agent: str = "",
    condition: str = "TRUE",
    values: Mapping[str, Any] | None = None,
    even_waiting: bool = False,
    turns: Turns | None = None,
) -> list[tuple[int, int]]:
    """Lock up to `limit` tasks of these states for a process and return (task id, fence) of each, most urgent first.

    Tasks that another holds are skipped, those that `agent` leaves aside after an error, and those that wait for their
    time unless `even_waiting`. `condition` is SQL of ours on the row `t`, with `values`. The lock is freed by a move or by
    `release_task`; the watchdog frees what its holder left.

    With `turns` work queues take turns, and in each of them users.
    """
    due = "TRUE" if even_waiting else "t.next_check_at <= clock_timestamp()"
    free = f"""t.status = ANY(%(statuses)s::text[]) AND t.lockedby IS NULL AND {due} AND {condition}
                   AND NOT {troubles.left_aside("task", "t.jeditaskid")}"""
    with hot_cursor() as cursor:
        cursor.execute(
            f"""
            WITH {turns.waiting(free) if turns else ""}
            chosen AS (
                SELECT t.jeditaskid, {"w.place" if turns else "0"} AS place
                  FROM jedi_tasks t {"JOIN waiting w USING (jeditaskid)" if turns else ""}
                 WHERE {"t.lockedby IS NULL AND t.status = ANY(%(statuses)s::text[])" if turns else free}
                 ORDER BY {"w.place" if turns else "t.currentpriority DESC NULLS LAST, t.jeditaskid"}
                 LIMIT %(limit)s FOR UPDATE OF t SKIP LOCKED)
            UPDATE jedi_tasks t SET lockedby = %(by)s, lockedtime = clock_timestamp(), fence = fence + 1
              FROM chosen WHERE t.jeditaskid = chosen.jeditaskid
            RETURNING t.jeditaskid, t.fence, t.currentpriority, chosen.place
            """,  # noqa: S608 - the conditions are ours, never a user's
            {
                **(values or {}),
                **(turns.values if turns else {}),
                "statuses": texts(statuses),
                "limit": limit,
                "by": by,
                "agent": agent,
            },
        )
        rows = cursor.fetchall()
    return [(task, fence) for task, fence, *_ in sorted(rows, key=lambda r: (r[3], -(r[2] or 0), r[0]))]


def states_in_use(statuses: Iterable[str]) -> frozenset[str]:
    """Those of these states that tasks are in. A pass that works on many states asks once, and claims only where something is.

    The order is that of an index: without it, the server might look for a state that no task is in from beginning to end.
    """
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT s.status FROM unnest(%s::text[]) s (status) CROSS JOIN LATERAL (
                   SELECT FROM jedi_tasks t WHERE t.status = s.status ORDER BY t.tasktype, t.creationdate LIMIT 1) one""",
            [texts(sorted(statuses))],
        )
        return frozenset(status for (status,) in cursor.fetchall())


def release_task(
    task_id: int, fence: int, *, wait: timedelta | None = timedelta(), note: str | None = None, thawed: bool = False
) -> None:
    """Free a claim without changing the state; agents look again after `wait`, or, with None, when they were to anyway. A claim
    that is gone is left alone.

    `note` becomes the sentence that the task's page shows. `thawed` says that something could be done for the task: the
    clock of how long it has been stuck ends.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jedi_tasks SET lockedby = NULL, lockedtime = NULL,
                      next_check_at = coalesce(clock_timestamp() + %s::float8 * interval '1 second', next_check_at),
                      errordialog = coalesce(%s, errordialog),
                      frozentime = CASE WHEN %s THEN NULL ELSE frozentime END
                WHERE jeditaskid = %s AND fence = %s""",
            [None if wait is None else wait.total_seconds(), note, thawed, task_id, fence],
        )


def for_each(
    claimed: Iterable[tuple[int, int]],
    work: Callable[[int, int], bool | None],
    *,
    by: str,
    for_s: float = FOR_EACH_S,
) -> int:
    """Do a pass's work on each claimed task: `work(task id, fence)`, which returns False when it found nothing to do.

    Returns how many went well and moved something.

    A task whose work fails unexpectedly, or takes too long, is left aside by this agent, longer each time; the others go
    on. After `for_s` seconds no further turn is begun: the rest is set free for the next pass, in the place where it was.
    """
    rest, well, moved = list(claimed), [], 0
    began = renewed = time.monotonic()
    while rest and time.monotonic() - began < for_s:
        if time.monotonic() - renewed > RENEW_CLAIMS_S:
            _renew(rest)
            renewed = time.monotonic()
        task_id, fence = rest.pop(0)
        renew_lease()
        try:
            with turn(by, task_id):
                moved += work(task_id, fence) is not False
        except LostClaimError:
            log.info("task.lost_claim", task=task_id, agent=by)
        except (Exception, TurnTooLongError) as exc:
            log.exception("task.pass_failed", task=task_id, agent=by)
            _fail(task_id, fence, by, exc)
        else:
            well.append(task_id)
    _recover(well, by)
    if rest:
        _give_back(rest)
        kick(by)
    return moved


RENEW_CLAIMS_S = 10.0
"""So old a claim may be when its turn comes; then the turn fits into the lease of the claim."""


def _give_back(claimed: Sequence[tuple[int, int]]) -> None:
    """Free claims that were not used. The tasks are due when they were, so that they keep their places."""
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jedi_tasks t SET lockedby = NULL, lockedtime = NULL FROM unnest(%s::bigint[], %s::bigint[]) c (id, fence)
                WHERE t.jeditaskid = c.id AND t.fence = c.fence AND t.lockedby IS NOT NULL""",
            [[task_id for task_id, _ in claimed], [fence for _, fence in claimed]],
        )


def _renew(claimed: Sequence[tuple[int, int]]) -> None:
    """The leases of these claims start anew, as far as they stand."""
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jedi_tasks t SET lockedtime = clock_timestamp() FROM unnest(%s::bigint[], %s::bigint[]) c (id, fence)
                WHERE t.jeditaskid = c.id AND t.fence = c.fence AND t.lockedby IS NOT NULL""",
            [[task_id for task_id, _ in claimed], [fence for _, fence in claimed]],
        )


_FAILED = "{by} had an unexpected error and will try again: "


@transaction.atomic
def _fail(task_id: int, fence: int, by: str, error: BaseException) -> None:
    said = sentence_of(error)
    troubles.note(by, "task", task_id, said, task_id)
    release_task(task_id, fence, note=_FAILED.format(by=by) + said)


@transaction.atomic
def _recover(tasks: Sequence[int], by: str) -> None:
    """What went well is no trouble any more, and its page says so."""
    for task_id in troubles.clear(by, "task", tasks):
        Task.objects.filter(pk=task_id, error_dialog__startswith=_FAILED.format(by=by)).update(error_dialog=None)


def still_holds(task_id: int, fence: int) -> bool:
    """Lock the task's row in this transaction and say whether the claim stands."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM jedi_tasks WHERE jeditaskid = %s AND fence = %s FOR UPDATE", [task_id, fence])
        return cursor.fetchone() is not None


def holders() -> list[str]:
    """Who holds claims on tasks."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT lockedby FROM jedi_tasks WHERE lockedby IS NOT NULL")
        return [holder for (holder,) in cursor.fetchall()]


def free_stale(dead: Sequence[str], before: datetime) -> list[tuple[int, str]]:
    """Free claims of these holders, and all of before a time. Returns the tasks with their states."""
    with connection.cursor() as cursor:
        cursor.execute(
            """WITH stale AS (SELECT jeditaskid FROM jedi_tasks WHERE lockedby IS NOT NULL
                                 AND (lockedby = ANY(%s) OR lockedtime <= %s)
                                 FOR UPDATE SKIP LOCKED)
               UPDATE jedi_tasks t SET lockedby = NULL, lockedtime = NULL, fence = fence + 1, next_check_at = clock_timestamp(),
                      rescuetime = clock_timestamp()
                 FROM stale WHERE t.jeditaskid = stale.jeditaskid RETURNING t.jeditaskid, t.status""",
            [list(dead), before],
        )
        return list(cursor.fetchall())
