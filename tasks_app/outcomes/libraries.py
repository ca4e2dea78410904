"""What becomes of the jobs that wait for a library, once the job that builds it has ended: they start, or end with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import psycopg
from django.db import transaction
from django.db.models.functions import Now

from jedisite.agents import troubles
from jedisite.database.sql import hot_cursor
from jedisite.vocabulary.words import plural
from tasks_app.domain.job_errors import main_error
from tasks_app.domain.states import TASK_MOVES, DatasetStatus, JobStatus, TaskStatus
from tasks_app.lifecycle import dataset_moves, outbox, task_moves
from tasks_app.lifecycle.job_moves import give_library
from tasks_app.models import Dataset, Job, Task
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book
from tasks_app.params.buildstep import FAILED_BUILDS
from tasks_app.params.splitrule import SplitRule
from tasks_app.transfers import settling

BUILD_FAILED: Final = 300
"""taskbuffer error: the job that built the library did not make it."""
SUB_STATUS: Final = "buildfailed"
JOBS_A_STEP = 20_000
"""Waiting jobs that one transaction starts or ends."""

_ENDED = """
SELECT d.jeditaskid, d.datasetid FROM jedi_datasets d
 WHERE d.type = 'lib' AND d.status = 'running' AND EXISTS (
       SELECT 1 FROM jedi_dataset_contents c WHERE c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid AND c.type = 'lib'
          AND c.status <> 'defined')
 ORDER BY d.datasetid LIMIT %s
"""

_FORGOTTEN = """
SELECT DISTINCT f.jeditaskid, f.datasetid FROM jobs j
  JOIN job_files f ON f.pandaid = j.pandaid AND f.type = 'lib' AND f.fileid IS NOT NULL
  JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
 WHERE j.jobstatus = 'defined' AND j.statechangetime < %s AND c.status <> 'defined'
 ORDER BY f.datasetid LIMIT %s
"""


def ended_libraries(limit: int) -> list[tuple[int, int]]:
    """(task id, dataset id) of libraries whose build has ended and whose waiting jobs nobody has seen to."""
    with hot_cursor() as cursor:
        cursor.execute(_ENDED, [limit])
        return cursor.fetchall()


def forgotten_libraries(waiting_since: datetime, limit: int) -> list[tuple[int, int]]:
    """The same for libraries that jobs still wait for since that time, whatever the dataset says."""
    with hot_cursor() as cursor:
        cursor.execute(_FORGOTTEN, [waiting_since, limit])
        return cursor.fetchall()


def settle(task_id: int, dataset_id: int, *, by: str) -> int:
    """Start the jobs that wait for a library, or end them with its build. Returns how many.

    A library that is still being built, and one that was settled meanwhile, are left alone.
    """
    moved = 0
    while step := _settle_step(task_id, dataset_id, by):
        moved += step
    return moved


@transaction.atomic
def _settle_step(task_id: int, dataset_id: int, by: str) -> int:
    """One transaction. The task's row is locked first, as by everybody who makes jobs that wait for a library."""
    task = Task.objects.select_for_update().get(pk=task_id)
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT c.fileid, c.status, c.pandaid FROM jedi_dataset_contents c
                WHERE c.jeditaskid = %s AND c.datasetid = %s AND c.type = 'lib'""",
            [task_id, dataset_id],
        )
        row = cursor.fetchone()
        if row is None or row[1] == "defined":
            return 0
        file_id, status, build_id = row
        waiting = _waiting(cursor, file_id)
        if status == "finished":
            _activate(cursor, task, file_id, waiting, by)
        elif waiting:
            reason = f"the job that built the library {_how(build_id)}"
            book(
                cursor,
                [
                    Outcome(
                        job, task_id, JobStatus.CLOSED, "taskbuffer", BUILD_FAILED, reason, by=by, sub_status=SUB_STATUS
                    )
                    for job in waiting
                ],
            )
        if len(waiting) < JOBS_A_STEP:
            _conclude(cursor, task, dataset_id, status, build_id, by)
    return len(waiting)


def _waiting(cursor: psycopg.Cursor[Any], file_id: int) -> list[int]:
    """Jobs that wait for a file, locked in the order of their ids."""
    cursor.execute(
        """SELECT j.pandaid FROM jobs j
            WHERE j.pandaid = ANY(ARRAY(SELECT f.pandaid FROM job_files f WHERE f.fileid = %s AND f.type = 'lib'))
              AND j.jobstatus = 'defined' ORDER BY j.pandaid LIMIT %s FOR UPDATE""",
        [file_id, JOBS_A_STEP],
    )
    return [job for (job,) in cursor.fetchall()]


def _activate(cursor: psycopg.Cursor[Any], task: Task, file_id: int, waiting: list[int], by: str) -> None:
    """One statement for all: they get what is known of the file now, and pilots may have them.

    Jobs of a paused task are held back like its others.
    """
    if waiting:
        status = JobStatus.THROTTLED if task.status == TaskStatus.PAUSED else JobStatus.ACTIVATED
        copied = settling.waiting_jobs(cursor, waiting)
        free = [job for job in waiting if job not in copied]
        give_library(cursor, task.id, file_id, free, status, by=by, reason="its library is ready")
        if copied:
            reason = "its library is ready; its input is being copied to the queue"
            give_library(cursor, task.id, file_id, sorted(copied), JobStatus.ASSIGNED, by=by, reason=reason)
        if SplitRule.parse(task.split_rule).flag("PC"):
            outbox.jobs_changed(cursor, waiting)


def _conclude(cursor: psycopg.Cursor[Any], task: Task, dataset_id: int, status: str, build_id: int, by: str) -> None:
    """Close the dataset; nothing more comes into it. A task of which no build goes well is broken."""
    filled = Dataset.objects.filter(pk=dataset_id, status=DatasetStatus.RUNNING)
    became = DatasetStatus.DONE if status == "finished" else DatasetStatus.FAILED
    closed = dataset_moves.move(filled, became, state="closed", modification_time=Now())
    if closed and status == "failed" and TaskStatus.TOBROKEN in TASK_MOVES[TaskStatus(task.status)]:
        failed = _failures(cursor, task.id)
        if failed >= FAILED_BUILDS:
            reason = (
                f"its sources could not be built: {plural(failed, 'build job')} failed, the last one {_how(build_id)}"
            )
            task_moves.move_task(task.id, TaskStatus.TOBROKEN, by=by, reason=reason, error_dialog=reason)


def _failures(cursor: psycopg.Cursor[Any], task_id: int) -> int:
    """How many builds of a task failed; 0 when one went well."""
    cursor.execute(
        """SELECT count(*) FILTER (WHERE c.status = 'failed'), count(*) FILTER (WHERE c.status = 'finished')
             FROM jedi_datasets d JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid
            WHERE d.jeditaskid = %s AND d.type = 'lib' AND c.jeditaskid = %s AND c.type = 'lib'""",
        [task_id, task_id],
    )
    row = cursor.fetchone()
    return 0 if row is None or row[1] else int(row[0])


def _how(build_id: int) -> str:
    """How a build job ended: `(123 at SITE) failed: exe:65, the compiler found an error`."""
    job = Job.objects.filter(pk=build_id).first()
    if job is None:
        return f"({build_id}) has ended"
    error = main_error(vars(job))
    why = f": {error.key}, {error.detail or error.sentence}" if error else ""
    return f"({build_id} at {job.site}) {'failed' if job.status == JobStatus.FAILED else 'was ' + job.status}{why}"


def settle_all(found: Iterable[tuple[int, int]], *, by: str) -> int:
    """Settle each (task, dataset); a task for which that fails is put aside for a while. Returns the number of moved jobs."""
    datasets = defaultdict(list)
    for task_id, dataset_id in found:
        datasets[task_id].append(dataset_id)

    def work(task_id: int) -> int:
        return sum(settle(task_id, dataset_id, by=by) for dataset_id in datasets[task_id])

    return troubles.each(by, datasets, work)
