"""The books of files that wait to be merged, and of the jobs that made them. In sets, in the caller's transaction.

A job whose output is to be merged does not end with its pilot's report: it is `merging`, its inputs stay running and
count as on hold, its files are ready for a merge job. When the merge is over, the jobs whose files were in it get a line
among the reports that the adder has to book, since their rows may not be locked after those of the merge job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg

from jedisite.agents.passes import kick
from jedisite.database.sql import hash_joins, numbers
from tasks_app.ddm import data_management, maker_of
from tasks_app.domain.states import DatasetStatus
from tasks_app.lifecycle import dataset_moves, file_ends
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import UNMERGED_TYPES
from tasks_app.outcomes.shared_datasets import at_work

MERGED: Final = "merged"
NOT_MERGED: Final = "notmerged"
"""What a line of `job_output_report` says of a job whose merge is over."""
NOT_MERGED_ERROR: Final = 300
"""taskbuffer error: no merge job could merge what the job had made."""
ATTEMPTS: Final = 3
"""How often the files of a job may be given to a merge job."""

Counts = list[tuple[int, int, int, int, int]]


def hold(cursor: psycopg.Cursor[Any], task_id: int, jobs: Sequence[int], stored: Mapping[str, Any]) -> Counts:
    """Make what these jobs stored ready to be merged; each file may be tried `ATTEMPTS` times.

    Returns what is to be counted, as `outcomes._count` reads it.
    """
    with hash_joins(cursor):
        cursor.execute(file_ends.HOLD_OUTPUTS, {**stored, "ids": numbers(jobs), "task": task_id, "attempts": ATTEMPTS})
        return cursor.fetchall()


def inputs_of(cursor: psycopg.Cursor[Any], task_id: int, jobs: Sequence[int]) -> dict[int, int]:
    """How many files of each dataset these jobs have in use."""
    cursor.execute(
        """SELECT f.datasetid, count(*) FROM job_files f
             JOIN jedi_dataset_contents c ON c.jeditaskid = %(task)s AND c.datasetid = f.datasetid AND c.fileid = f.fileid
            WHERE f.pandaid = ANY(%(ids)s::bigint[]) AND f.type IN ('input', 'pseudo_input', 'random_seed')
              AND c.pandaid = f.pandaid AND c.status = 'running' AND c.keeptrack = 1
            GROUP BY f.datasetid""",
        {"task": task_id, "ids": numbers(jobs)},
    )
    return dict(cursor.fetchall())


def in_merge_jobs(cursor: psycopg.Cursor[Any], jobs: Sequence[int]) -> list[int]:
    """Which of these jobs, which wait for their merge, have given a file to a merge job."""
    cursor.execute(
        """SELECT DISTINCT f.pandaid FROM job_files f
             JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
            WHERE f.pandaid = ANY(%s::bigint[]) AND f.type IN ('trn_output', 'trn_log') AND c.status <> 'ready'""",
        [numbers(jobs)],
    )
    return [job_id for (job_id,) in cursor]


def withdraw(cursor: psycopg.Cursor[Any], jobs: Sequence[int]) -> None:
    """Nobody merges what these jobs made any more."""
    cursor.execute(
        """DELETE FROM file_retries WHERE fileid = ANY(ARRAY(
               SELECT fileid FROM job_files WHERE pandaid = ANY(%s::bigint[]) AND type IN ('trn_output', 'trn_log')))""",
        [numbers(jobs)],
    )


def conclude(cursor: psycopg.Cursor[Any], task_id: int, merge_jobs: Sequence[int]) -> None:
    """After the ends of merge jobs: the jobs whose files were merged, or have no attempt left, are to be ended."""
    values = {"task": task_id, "ids": numbers(merge_jobs), "merged": MERGED, "not_merged": NOT_MERGED}
    cursor.execute(file_ends.CONCLUDE_MERGES, values)
    if cursor.rowcount:
        kick("adder")


LOGS_KEPT = timedelta(days=365)


def end_datasets(task: Task, now: datetime) -> None:
    """The task has ended: what was to be merged is deleted, but for the logs. They are kept for some time, since they
    are all that failed jobs leave."""
    rows = list(Dataset.objects.filter(task=task, type__in=UNMERGED_TYPES))
    if not rows:
        return
    outputs = {row.name for row in rows if row.type == "trn_output"}
    logs = {row.name for row in rows} - outputs
    maker, used = maker_of(task), at_work(task.id, outputs | logs)
    data_management().delete(sorted(outputs - used), by=maker)
    data_management().close(sorted(logs - used), by=maker)
    data_management().keep_until(sorted(logs), now + LOGS_KEPT, by=maker)
    dataset_moves.move(Dataset.objects.filter(pk__in=[row.id for row in rows]), DatasetStatus.DONE, state="closed")


def count_on_hold(cursor: psycopg.Cursor[Any], changes: Mapping[int, int]) -> None:
    """Add to the number of files on hold; the datasets are locked already."""
    rows: Iterable[tuple[int, int]] = sorted(changes.items())
    if rows:
        cursor.execute(
            """UPDATE jedi_datasets d SET nfilesonhold = nfilesonhold + n.files
                 FROM unnest(%s::bigint[], %s::bigint[]) n (id, files) WHERE d.datasetid = n.id""",
            [list(column) for column in zip(*rows, strict=True)],
        )
