"""Ends the open jobs of a task: queued ones at once, the others through their pilots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import psycopg

from jedisite.database.sql import hot_cursor, numbers, texts
from jedisite.vocabulary.words import plural
from tasks_app.domain import range_jobs
from tasks_app.domain.killcodes import Kill, KilledJob, When, error_code, kill_result
from tasks_app.domain.states import JOB_AT_PILOT, JOB_QUEUED, JobStatus
from tasks_app.outcomes.end_hooks import EVENT_MERGE
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book
from tasks_app.refining.offered import MERGES


class KillOrder(NamedTuple):
    """One job that is to be killed, as its locked row says it is; the code of the kill and a sentence for people.

    `sub_status` stands in the place of the code's, of a job that ends at once."""

    job_id: int
    task_id: int | None
    job: KilledJob
    code: int
    reason: str
    sub_status: str | None = None


class Killed(NamedTuple):
    """How many jobs ended at once, and how many pilots were told to stop theirs."""

    ended: int
    told: int


def kill_jobs(
    cursor: psycopg.Cursor[Any],
    orders: Iterable[KillOrder],
    *,
    by: str,
    production_role: bool = False,
    keep_unmerged: bool = False,
    further: Iterable[Outcome] = (),
) -> Killed:
    """Kill jobs whose rows the caller's transaction has locked, in the order of their ids; see `kill_result`.

    The code stays on the job, in the error of the task buffer, so that a job which its pilot stops later ends as the
    code says. A job that was told the same already is left as it is. `further` are other ends of jobs that are booked
    with these, since a transaction books once: else two could lock each other's datasets.
    """
    outcomes, told = list(further), []
    for order in orders:
        result = kill_result(order.code, order.job, production_role=production_role, keep_unmerged=keep_unmerged)
        if result.when == When.NOW:
            outcomes.append(
                Outcome(
                    order.job_id,
                    order.task_id,
                    result.status,
                    "taskbuffer",
                    error_code(order.code),
                    order.reason,
                    by=by,
                    sub_status=order.sub_status or result.sub_status,
                    spares_attempt=result.spares_attempt,
                )
            )
        elif result.when == When.NEXT_HEARTBEAT:
            told.append(order)
    if told:
        cursor.execute(
            """UPDATE jobs j SET commandtopilot = 'tobekilled', taskbuffererrorcode = k.code,
                      taskbuffererrordiag = left(k.reason, 500), modificationtime = clock_timestamp()
                 FROM unnest(%s::bigint[], %s::int[], %s::text[]) k (id, code, reason) WHERE j.pandaid = k.id
                  AND (j.commandtopilot IS DISTINCT FROM 'tobekilled' OR j.taskbuffererrorcode IS DISTINCT FROM k.code)""",
            [
                numbers(o.job_id for o in told),
                numbers(error_code(o.code) for o in told),
                texts(o.reason for o in told),
            ],
        )
    return Killed(book(cursor, outcomes) if outcomes else 0, len(told))


def end_jobs(
    task_id: int,
    *,
    by: str,
    reason: str,
    code: int = Kill.JEDI,
    running_too: bool = True,
    keep_unmerged: bool = False,
    production_role: bool = False,
) -> str:
    """Kill the jobs of a task with a code of the table of kill codes. Returns what was done, as a sentence.

    Queued jobs and those that wait for their merge end now, cancelled or closed as the code says; pilots of the others
    are told to stop, or with a forcing code those end now too; so are jobs whose outputs are being gathered: the mover
    does. `running_too` False leaves these and jobs at pilots alone,
    `keep_unmerged` those that wait for their merge, and merge jobs with them. Jobs that have given their files to a merge
    job wait for it in any case: they can be ended when it has. Jobs whose final report is being booked always end by that.
    """
    at_work = JOB_AT_PILOT | {JobStatus.TRANSFERRING} if running_too else frozenset()
    wanted = JOB_QUEUED | {JobStatus.MERGING} | at_work
    with hot_cursor() as cursor:
        # All jobs are locked before any dataset is, as everybody does who ends jobs: else two of them could lock each other out.
        cursor.execute(
            f"""SELECT pandaid, jobstatus, coalesce(prodsourcelabel, ''), {range_jobs.is_of_ranges()} FROM jobs
                WHERE jeditaskid = %s AND jobstatus = ANY(%s)
                  AND (%s OR processingtype IS DISTINCT FROM %s AND eventservice IS DISTINCT FROM %s)
                ORDER BY pandaid FOR UPDATE""",  # noqa: S608 - a constant of ours
            [task_id, sorted(wanted), not keep_unmerged, MERGES, EVENT_MERGE],
        )
        orders = [
            KillOrder(job, task_id, KilledJob(JobStatus(status), label, event_service), code, reason)
            for job, status, label, event_service in cursor.fetchall()
        ]
        done = kill_jobs(cursor, orders, by=by, production_role=production_role, keep_unmerged=keep_unmerged)
    queued = sum(o.job.status in JOB_QUEUED for o in orders)
    became = kill_result(code, KilledJob(JobStatus.ACTIVATED)).status
    at_once = done.ended - queued
    if not orders:
        return "no job was queued or running" if running_too else "no job was queued"
    said = [f"{plural(queued, 'queued job was', 'queued jobs were')} {became}"]
    if done.told:
        said.append(f"{plural(done.told, 'running one was', 'running ones were')} told to stop")
    if at_once > 0:
        said.append(f"{plural(at_once, 'other was', 'others were')} {became} at once")
    return ", ".join(said)


def open_jobs(task_id: int) -> int:
    """How many jobs of a task have not ended."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT count(*) FROM jobs WHERE jeditaskid = %s
                  AND jobstatus NOT IN ('finished', 'failed', 'cancelled', 'closed')""",
            [task_id],
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0
