"""The merge job of a jobset: one core, urgent, where `merge_slots` finds a place for it. It reads what is done."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import psycopg

from brokerage_app.models import GlobalShare
from events_app.consumers.copying import CopyKind, JobCopy
from events_app.ends.merge_inputs import give_inputs
from events_app.ends.merge_slots import merge_slot
from events_app.lifecycle.range_moves import is_in
from events_app.rules.event_states import EventStatus
from events_app.rules.merge_commands import merge_command
from jedisite.database.sql import numbers
from tasks_app.domain.jumbo_use import WAITING_QUEUE
from tasks_app.outcomes.end_hooks import EventJob

PRIORITY: Final = 5000
SHARE: Final = "Express"
"""Where there is such a share."""
MARK: Final = "esmerge"
"""The word of special handling of a merge job."""
OF_CONSUMER: Final = "eventservice"
"""That of consumers."""

FAILURES_LEFT: Final = 5
"""After its merge job is made, a file may fail so many times more, however many its task allows."""


# A jumbo job packs outputs of ranges of several files together.
_MERGED: Final = f"""
SELECT coalesce(j.transformation, ''), coalesce(p.jobparameters, ''),
       ARRAY(SELECT o.lfn FROM job_files o WHERE o.pandaid = ANY(%(owners)s::bigint[]) AND o.type = 'output' ORDER BY o.row_id),
       EXISTS (SELECT FROM jedi_events e WHERE e.jeditaskid = %(task)s AND e.fileid = ANY(%(files)s::bigint[])
                  AND e.is_jumbo = 1 AND {is_in({EventStatus.DONE}, "e.")})
  FROM jobs j LEFT JOIN job_params p ON p.pandaid = j.pandaid WHERE j.pandaid = %(job)s
"""


def merge_copy(cursor: psycopg.Cursor[Any], job: EventJob, owners: Collection[int], files: Collection[int]) -> JobCopy:
    """The merge job that follows a consumer, of these files. `owners`: the jobs of the jobset that have its outputs."""
    values = {"owners": numbers(owners), "job": job.job_id, "task": job.task_id, "files": numbers(files)}
    cursor.execute(_MERGED, values)
    row = cursor.fetchone()
    assert row is not None
    program, params, outputs, with_jumbo = row
    command = merge_command(params, program, outputs, files if with_jumbo else ())
    words = [word for word in job.special_handling.split(",") if word not in ("", OF_CONSUMER)]
    share = GlobalShare.objects.filter(pk=SHARE).exists()
    return JobCopy(
        job.job_id,
        CopyKind.MERGE,
        merge_slot(cursor, job.task_id, _queue_of(cursor, job), files),
        priority=PRIORITY,
        gshare=SHARE if share else None,
        transformation=command.transformation,
        params=command.parameters,
        special_handling=",".join([*words, MARK]),
    )


# ruff: noqa: S608 - every piece is a constant of ours
_WORKED: Final = f"""
SELECT j.computingsite FROM {{jobs}} j WHERE j.pandaid IN (
       SELECT e.pandaid FROM jedi_events e JOIN job_files f ON f.fileid = e.fileid AND f.type IN ('input', 'pseudo_input')
        WHERE e.jeditaskid = %(task)s AND f.pandaid = %(job)s AND {is_in({EventStatus.DONE}, "e.")})
 ORDER BY j.pandaid DESC LIMIT 1
"""


def _queue_of(cursor: psycopg.Cursor[Any], job: EventJob) -> str:
    """Where the consumer was; after one that waited, where the last range was processed."""
    if job.site != WAITING_QUEUE:
        return job.site
    for table in ("jobs", "jobs_archive"):
        cursor.execute(_WORKED.format(jobs=table), {"task": job.task_id, "job": job.job_id})
        if (row := cursor.fetchone()) is not None:
            return str(row[0])
    return job.site


# What would go to the storage of the consumers' queue goes to that of the merge job's, as its log does.
_OUTPUTS: Final = """
UPDATE job_files o SET destinationse = l.destinationse
  FROM job_files l, job_files b
 WHERE o.pandaid = %(job)s AND o.type = 'output' AND l.pandaid = %(job)s AND l.type = 'log'
   AND b.pandaid = %(old)s AND b.type = 'log' AND o.destinationse = b.destinationse AND o.destinationse <> l.destinationse
"""
_LIMIT: Final = """
UPDATE jedi_dataset_contents SET maxfailure = least(maxfailure, coalesce(failedattempt, 0) + %(more)s)
 WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND pandaid = %(job)s
"""


def begin(cursor: psycopg.Cursor[Any], old: EventJob, merge_job: int, files: Collection[int]) -> None:
    """A merge job, which has files and outputs by now, gets what it reads; it writes where its queue does. Its files may
    fail FAILURES_LEFT times more."""
    values = {"task": old.task_id, "job": merge_job, "old": old.job_id, "files": numbers(files), "more": FAILURES_LEFT}
    cursor.execute(_OUTPUTS, values)
    cursor.execute(_LIMIT, values)
    give_inputs(cursor, old.task_id, merge_job, files)
