"""The door for the states of jobs: sets of queued jobs move here, and every condition is made from the table of moves.

No other statement changes the state of a stored job than those of this module and of those beside it: `job_handout` (to
pilots), `job_reports` (what pilots say) and `job_ends`. Each says in its WHERE from which states it moves, as the table
has it, so that a move which `JOB_MOVES` does not allow changes no row; and each writes the log, with who did it.
New jobs are stored by `generation`, with the first row of their log: nothing moves there. The archive takes ended jobs as
they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from jedisite.database.sql import hot_cursor, numbers
from tasks_app.domain.states import JOB_MOVES, JobStatus
from tasks_app.lifecycle.conditions import as_said, is_one_of, may_become
from tasks_app.lifecycle.job_hooks import Slot


def before(new: str, among: Iterable[str] = tuple(JobStatus), row: str = "") -> str:
    """SQL: a job is in one of the states `among`, and may become `new` from there. `row` is its alias with a dot."""
    return is_one_of(f"{row}jobstatus", may_become(JOB_MOVES, [new]) & set(among))


def before_said(said: str, news: Iterable[str], row: str = "") -> str:
    """SQL: `said`, an expression, is one of the states `news`, and a job may become that from where it is."""
    return as_said(said, {new: before(new, row=row) for new in news})


# ruff: noqa: S608 - every piece is a constant of ours, or a state of the table
# The jobs of `locked` move to {new}.
_MOVE = """,
moved AS (
    UPDATE jobs SET jobstatus = '{new}', statechangetime = clock_timestamp(), modificationtime = clock_timestamp()
     WHERE pandaid IN (SELECT pandaid FROM locked) RETURNING pandaid, computingsite)
INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor, reason)
SELECT pandaid, '{new}', clock_timestamp(), computingsite, %(by)s, %(reason)s FROM moved"""


def move_jobs_of_task(task_id: int, old: str, new: str, *, by: str, reason: str) -> int:
    """All jobs of a task go from one queued state to another; those that somebody has locked are waited for. How many."""
    with hot_cursor() as cursor:
        cursor.execute(
            f"""WITH locked AS (SELECT pandaid FROM jobs WHERE jeditaskid = %(task)s AND {before(new, [old])}
                                 ORDER BY pandaid FOR UPDATE){_MOVE.format(new=JobStatus(new))}""",
            {"task": task_id, "by": by, "reason": reason},
        )
        return cursor.rowcount


def move_free_jobs(old: str, new: str, which: str, values: dict[str, Any], *, by: str, reason: str, limit: int) -> int:
    """Up to `limit` jobs go from one queued state to another, oldest first. Returns how many.

    `which` is SQL of ours on the row `j`, with `values`. Jobs that somebody else has locked are left out.
    """
    with hot_cursor() as cursor:
        cursor.execute(
            f"""WITH locked AS (SELECT j.pandaid FROM jobs j WHERE {before(new, [old], "j.")} AND {which}
                                 ORDER BY j.pandaid LIMIT %(limit)s FOR UPDATE OF j SKIP LOCKED)
                {_MOVE.format(new=JobStatus(new))}""",
            {**values, "by": by, "reason": reason, "limit": limit},
        )
        return cursor.rowcount


def move_some(cursor: psycopg.Cursor[Any], jobs: Iterable[int], old: str, new: str, *, by: str, reason: str) -> int:
    """Those of these jobs that are `old` become `new`, in the caller's transaction. Returns how many."""
    cursor.execute(
        f"""WITH locked AS (SELECT pandaid FROM jobs WHERE pandaid = ANY(%(jobs)s::bigint[]) AND {before(new, [old])}
                             ORDER BY pandaid FOR UPDATE){_MOVE.format(new=JobStatus(new))}""",
        {"jobs": numbers(jobs), "by": by, "reason": reason},
    )
    return cursor.rowcount


_PLACE = f"""
WITH locked AS MATERIALIZED (
    SELECT pandaid FROM jobs WHERE pandaid = ANY(%(jobs)s::bigint[]) AND {before(JobStatus.ACTIVATED, [JobStatus.WAITING])}
     ORDER BY pandaid FOR UPDATE SKIP LOCKED),
sent AS (
    UPDATE job_files f SET destinationse = %(log_endpoint)s
      FROM locked l WHERE f.pandaid = l.pandaid AND f.type = 'log' AND %(log_endpoint)s::text IS NOT NULL),
moved AS (
    UPDATE jobs SET jobstatus = '{JobStatus.ACTIVATED}', computingsite = %(queue)s, corecount = %(cores)s,
           minramcount = %(memory_mb)s, resource_type = %(resource_type)s, statechangetime = clock_timestamp(),
           modificationtime = clock_timestamp()
     WHERE pandaid IN (SELECT pandaid FROM locked) RETURNING pandaid, computingsite)
INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor, reason)
SELECT pandaid, '{JobStatus.ACTIVATED}', clock_timestamp(), computingsite, %(by)s, %(reason)s FROM moved
"""


def place_waiting(cursor: psycopg.Cursor[Any], jobs: Iterable[int], place: Slot, *, by: str, reason: str) -> int:
    """Those of these jobs that wait get a queue, where pilots may have them. Returns how many."""
    cursor.execute(_PLACE, {"jobs": numbers(jobs), **place._asdict(), "by": by, "reason": reason})
    return cursor.rowcount


# Jobs that wait for a library get what is known of its file, and move.
_GIVE_LIBRARY = """
WITH made AS (SELECT fileid, fsize, checksum, guid, surl FROM jedi_dataset_contents
               WHERE jeditaskid = %(task)s AND fileid = %(file)s),
given AS (
    UPDATE job_files f SET status = 'ready', fsize = m.fsize, checksum = m.checksum, guid = m.guid, surl = m.surl
      FROM made m WHERE f.fileid = m.fileid AND f.type = 'lib' AND f.pandaid = ANY(%(jobs)s::bigint[])),
locked AS (SELECT pandaid FROM jobs WHERE pandaid = ANY(%(jobs)s::bigint[]) AND {before})"""


def give_library(
    cursor: psycopg.Cursor[Any], task_id: int, file_id: int, jobs: Sequence[int], new: str, *, by: str, reason: str
) -> None:
    """Defined jobs, locked by the caller, get the library that they waited for, and become `new`: pilots may have them,
    or they are held back."""
    cursor.execute(
        f"{_GIVE_LIBRARY.format(before=before(new, [JobStatus.DEFINED]))}{_MOVE.format(new=JobStatus(new))}",
        {"task": task_id, "file": file_id, "jobs": numbers(jobs), "by": by, "reason": reason},
    )
