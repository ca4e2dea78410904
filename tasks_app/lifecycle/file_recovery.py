"""Outputs that were made are lost, and the inputs of the jobs that made them are processed again. Part of the door for
states of files. In the caller's transaction, which holds the task's row and counts on the datasets what is returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg

from jedisite.database.sql import numbers
from tasks_app.domain.job_file_states import JobFileStatus
from tasks_app.domain.states import FILE_PROCESSED, FileStatus
from tasks_app.lifecycle import attempts
from tasks_app.lifecycle.file_moves import INPUT, OUTPUT, before

F = FileStatus
# ruff: noqa: S608 - every piece is a constant of ours
_LOSE: Final = f"""
WITH gone AS (
    UPDATE jedi_dataset_contents SET status = 'lost'
     WHERE jeditaskid = %(task)s AND fileid = ANY(%(outputs)s::bigint[]) AND {before(OUTPUT, F.LOST)}
    RETURNING fileid, datasetid, coalesce(nevents, 0) AS events),
noted AS (
    UPDATE job_files SET status = '{JobFileStatus.LOST}'
     WHERE pandaid = ANY(%(jobs)s::bigint[]) AND fileid = ANY(ARRAY(SELECT fileid FROM gone)))
SELECT datasetid, count(*), sum(events)::bigint FROM gone GROUP BY 1"""


def lose(
    cursor: psycopg.Cursor[Any], task_id: int, outputs: Sequence[int], jobs: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Outputs of finished jobs are lost. Returns the dataset, the number of files and of their events, of each dataset."""
    cursor.execute(_LOSE, {"task": task_id, "outputs": numbers(outputs), "jobs": numbers(jobs)})
    return cursor.fetchall()


_PROCESS_AGAIN: Final = f"""
WITH again AS (
    UPDATE jedi_dataset_contents c SET status = 'ready',
           maxattempt = CASE WHEN c.maxattempt <= c.attemptnr THEN c.attemptnr + %(more)s ELSE c.maxattempt END,
           maxfailure = CASE WHEN c.maxfailure <= c.failedattempt THEN c.failedattempt + %(more)s ELSE c.maxfailure END
     WHERE c.jeditaskid = %(task)s AND c.fileid = ANY(%(inputs)s::bigint[])
       AND {before(INPUT, F.READY, among=FILE_PROCESSED, row="c.")}
    RETURNING c.fileid, c.datasetid, coalesce(c.endevent - c.startevent + 1, c.nevents, 0) AS events),
waiting AS (
    INSERT INTO file_retries (fileid, jeditaskid, datasetid)
    SELECT fileid, %(task)s, datasetid FROM again ON CONFLICT DO NOTHING)
SELECT datasetid, count(*), sum(events)::bigint FROM again GROUP BY 1"""


def process_again(cursor: psycopg.Cursor[Any], task_id: int, inputs: Sequence[int]) -> list[tuple[int, int, int]]:
    """Inputs that were processed are ready again, each with an attempt. Returns the same as `lose`."""
    more = attempts.added_to(task_id)
    cursor.execute(_PROCESS_AGAIN, {"task": task_id, "inputs": numbers(inputs), "more": more})
    return cursor.fetchall()


_ONE_MORE: Final = f"""
WITH again AS (
    UPDATE jedi_dataset_contents c
       SET maxattempt = CASE WHEN c.maxattempt <= c.attemptnr THEN c.attemptnr + 1 ELSE c.maxattempt END,
           maxfailure = CASE WHEN c.maxfailure <= c.failedattempt THEN c.failedattempt + 1 ELSE c.maxfailure END
     WHERE c.jeditaskid = %(task)s AND c.fileid = ANY(%(inputs)s::bigint[]) AND c.status = 'ready' AND c.keeptrack = 1
       AND {attempts.NONE_LEFT}
    RETURNING c.fileid, c.datasetid),
waiting AS (
    INSERT INTO file_retries (fileid, jeditaskid, datasetid)
    SELECT fileid, %(task)s, datasetid FROM again ON CONFLICT DO NOTHING)
SELECT datasetid, count(*) FROM again GROUP BY 1"""


def one_more(cursor: psycopg.Cursor[Any], task_id: int, inputs: Sequence[int]) -> list[tuple[int, int]]:
    """Inputs without an attempt left get one. Returns (dataset id, number of files)."""
    cursor.execute(_ONE_MORE, {"task": task_id, "inputs": numbers(inputs)})
    return cursor.fetchall()


# The job whose output has a part of them is the one that has processed them.
_PARTIAL_AGAIN: Final = f"""
WITH partial AS (
    UPDATE jedi_dataset_contents c SET status = 'partial', pandaid = coalesce((
           SELECT max(o.pandaid) FROM job_files f
             JOIN jedi_dataset_contents o ON o.jeditaskid = %(task)s AND o.pandaid = f.pandaid AND o.type = 'output'
              AND o.status = 'finished'
            WHERE f.fileid = c.fileid AND f.datasetid = c.datasetid), c.pandaid)
     WHERE c.jeditaskid = %(task)s AND c.fileid = ANY(%(inputs)s::bigint[]) AND c.keeptrack = 1
       AND {before(INPUT, F.PARTIAL, among=[F.READY], row="c.")}
       AND (c.attemptnr >= c.maxattempt OR c.failedattempt >= c.maxfailure)
    RETURNING c.datasetid, coalesce(c.endevent - c.startevent + 1, c.nevents, 0) AS events)
SELECT datasetid, count(*), sum(events)::bigint FROM partial GROUP BY 1"""


def partial_again(cursor: psycopg.Cursor[Any], task_id: int, inputs: Sequence[int]) -> list[tuple[int, int, int]]:
    """Inputs without an attempt left, of which an output has a part, are partial. Returns the same as `lose`."""
    cursor.execute(_PARTIAL_AGAIN, {"task": task_id, "inputs": numbers(inputs)})
    return cursor.fetchall()


def take_inputs_from(cursor: psycopg.Cursor[Any], jobs: Sequence[int], inputs: Sequence[int] | None = None) -> None:
    """These inputs of jobs, or all, count for the jobs no longer: other jobs process them."""
    cursor.execute(
        f"""UPDATE job_files SET status = '{JobFileStatus.AGAIN}' WHERE pandaid = ANY(%(jobs)s::bigint[])
               AND CASE WHEN %(inputs)s::bigint[] IS NULL THEN type IN ('input', 'pseudo_input', 'random_seed')
                        ELSE fileid = ANY(%(inputs)s::bigint[]) END""",
        {"jobs": numbers(jobs), "inputs": None if inputs is None else numbers(inputs)},
    )
