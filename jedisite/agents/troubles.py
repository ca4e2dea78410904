"""Troubles: after an unexpected failure an agent puts the task or job aside, for longer each time.

The others of the same pass are not held up. A turn that succeeds takes the trouble away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

import psycopg
import structlog
from django.db import InterfaceError, OperationalError, connection, transaction

from jedisite.agents.passes import renew_lease
from jedisite.agents.turns import TurnTooLongError, turn
from jedisite.processes.logs import sentence_of

log = structlog.get_logger(__name__)
FIRST_WAIT_S: Final = 60
LONGEST_WAIT_S: Final = 3600
CIRCUMSTANCES: Final = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)
"""Errors that no job is at fault for: a lost database, a deadlock, a time-out of a statement. The pass comes again."""

_NOTE = f"""
INSERT INTO agent_troubles AS t (agent, kind, subject, jeditaskid, failures, since, last_at, next_try, error)
VALUES (%(agent)s, %(kind)s, %(subject)s, %(task)s, 1, clock_timestamp(), clock_timestamp(),
        clock_timestamp() + interval '{FIRST_WAIT_S} seconds', %(error)s)
ON CONFLICT (agent, kind, subject) DO UPDATE
   SET failures = t.failures + 1, last_at = excluded.last_at, error = excluded.error, jeditaskid = excluded.jeditaskid,
       next_try = clock_timestamp()
                  + least({FIRST_WAIT_S} * 2 ^ least(t.failures, 20), {LONGEST_WAIT_S}) * interval '1 second'
"""  # noqa: S608 - numbers of ours


def left_aside(kind: str, subject: str) -> str:
    """SQL: whether the agent `%(agent)s` leaves a subject aside now. `subject` is a column of ours."""
    return f"""EXISTS (SELECT 1 FROM agent_troubles x WHERE x.agent = %(agent)s AND x.kind = '{kind}'
                          AND x.subject = {subject} AND x.next_try > clock_timestamp())"""  # noqa: S608


def note(agent: str, kind: str, subject: int, error: str, task: int | None = None) -> None:
    """Record a failure of this agent on this subject: it is put aside for 1 min, then 2, 4 … up to an hour."""
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, {"agent": agent, "kind": kind, "subject": subject, "task": task, "error": error})


def clear(agent: str, kind: str, subjects: Iterable[int]) -> list[int]:
    """Delete the troubles of subjects that succeeded. Returns the subjects that had one."""
    ids = sorted(subjects)
    if not ids:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM agent_troubles WHERE agent = %s AND kind = %s AND subject = ANY(%s) RETURNING subject",
            [agent, kind, ids],
        )
        return [subject for (subject,) in cursor.fetchall()]


def forget(before: datetime) -> None:
    """Delete troubles whose subject was to be tried again before a time, and never was: nobody looks at it any more."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM agent_troubles WHERE next_try < %s", [before])


def aside(agent: str, kind: str, subjects: Iterable[int]) -> set[int]:
    """The subjects that this agent has put aside now."""
    ids = sorted(subjects)
    if not ids:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT subject FROM agent_troubles WHERE agent = %s AND kind = %s AND subject = ANY(%s)
                  AND next_try > clock_timestamp()""",
            [agent, kind, ids],
        )
        return {subject for (subject,) in cursor.fetchall()}


def each(agent: str, tasks: Iterable[int], work: Callable[[int], int]) -> int:
    """Do an agent's work on each of these tasks, but for those left aside; one that fails does not stop the others.

    `work` takes a task's number and returns how much it has moved. The lease of the pass starts anew with each task.
    Returns the sum. For claimed tasks: `claims.for_each`.
    """
    ids = list(tasks)
    skipped, done, well = aside(agent, "task", ids), 0, []
    for task_id in ids:
        if task_id in skipped:
            continue
        renew_lease()
        try:
            with turn(agent, task_id):
                done += work(task_id)
        except (Exception, TurnTooLongError) as exc:
            log.exception("agent.turn_failed", agent=agent, task=task_id)
            note(agent, "task", task_id, sentence_of(exc), task_id)
        else:
            well.append(task_id)
    clear(agent, "task", well)
    return done


def salvage(agent: str, jobs: Sequence[int], work: Callable[[list[int]], int]) -> int:
    """Do work on a set of jobs of which some fail: on halves, and halves of these, until those at fault stand alone.

    `work` is one transaction on the jobs it is given, and returns how many it moved. Those at fault are left aside.
    """
    if not jobs:
        return 0
    try:
        with transaction.atomic():
            done = work(list(jobs))
    except CIRCUMSTANCES:
        raise
    except Exception as exc:
        if len(jobs) > 1:
            middle = len(jobs) // 2
            return salvage(agent, jobs[:middle], work) + salvage(agent, jobs[middle:], work)
        log.exception("agent.job_failed", agent=agent, job=jobs[0])
        note(agent, "job", jobs[0], sentence_of(exc))
        return 0
    clear(agent, "job", jobs)
    return done
