"""The merge job of a jobset: one core, urgent, at the queue of the consumer that ended last. It reads what is done."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import psycopg

from brokerage_app.formulas.resource_type_of import type_of_job
from brokerage_app.grid.repository import resource_types
from brokerage_app.models import GlobalShare
from events_app.consumers.copying import CopyKind, JobCopy, Place
from events_app.lifecycle.range_moves import is_in
from events_app.rules.event_states import EventStatus
from events_app.rules.merge_commands import merge_command
from jedisite.database.sql import numbers
from tasks_app.domain.jumbo_use import WAITING_QUEUE
from tasks_app.outcomes.end_hooks import EventJob

PRIORITY: Final = 5000
MEMORY_MB: Final = 2000
SHARE: Final = "Express"
"""Where there is such a share."""
MARK: Final = "esmerge"
"""The word of special handling of a merge job."""
OF_CONSUMER: Final = "eventservice"
"""That of consumers."""

# ruff: noqa: S608 - every piece is a constant of ours
# Of a range that was processed twice the later job counts. What lies in no zip file is called as pilots call it.
_READS: Final = f"""
WITH done AS MATERIALIZED (
    SELECT DISTINCT ON (e.fileid, r.first) e.fileid, r.first, e.pandaid, e.attemptnr, e.ziprow_id, e.objstore_id,
           e.path_convention
      FROM jedi_events e, generate_series(e.def_min_eventid, e.def_max_eventid, e.events_per_range) r (first)
     WHERE e.jeditaskid = %(task)s AND e.fileid = ANY(%(files)s::bigint[]) AND {is_in({EventStatus.DONE})}
     ORDER BY e.fileid, r.first, e.pandaid DESC)
INSERT INTO job_files (pandaid, jeditaskid, type, lfn, scope, guid, fsize, checksum, destinationse, surl, status, dataset)
SELECT %(job)s, %(task)s, 'zipinput', z.lfn, z.scope, z.guid, z.fsize, z.checksum, z.destinationse, z.surl, 'ready', z.dataset
  FROM job_files z WHERE z.row_id = ANY(ARRAY(SELECT ziprow_id FROM done WHERE ziprow_id IS NOT NULL))
UNION ALL
SELECT %(job)s, %(task)s, 'zipinput',
       regexp_replace(o.lfn, '[.][0-9]+$', '.1') || '.' ||
           concat_ws('-', %(task)s::bigint, d.pandaid, d.fileid, d.first, d.attemptnr),
       'transient', NULL, NULL, NULL, concat_ws('/', d.objstore_id, d.path_convention), NULL, 'ready', NULL
  FROM done d, job_files o WHERE d.ziprow_id IS NULL AND o.pandaid = %(job)s AND o.type = 'output'
"""


def merge_copy(cursor: psycopg.Cursor[Any], job: EventJob, owners: Collection[int]) -> JobCopy:
    """The merge job that follows a consumer. `owners`: the jobs of the jobset that have its outputs."""
    cursor.execute(
        """SELECT coalesce(j.transformation, ''), coalesce(p.jobparameters, ''),
                  ARRAY(SELECT o.lfn FROM job_files o WHERE o.pandaid = ANY(%s::bigint[]) AND o.type = 'output' ORDER BY o.row_id)
             FROM jobs j LEFT JOIN job_params p ON p.pandaid = j.pandaid WHERE j.pandaid = %s""",
        [numbers(owners), job.job_id],
    )
    row = cursor.fetchone()
    assert row is not None
    command = merge_command(row[1], row[0], row[2])
    words = [word for word in job.special_handling.split(",") if word not in ("", OF_CONSUMER)]
    share = GlobalShare.objects.filter(pk=SHARE).exists()
    kind = type_of_job(1, MEMORY_MB, resource_types())
    return JobCopy(
        job.job_id,
        CopyKind.MERGE,
        Place(_queue_of(cursor, job), None, None, MEMORY_MB, kind),
        priority=PRIORITY,
        gshare=SHARE if share else None,
        transformation=command.transformation,
        params=command.parameters,
        special_handling=",".join([*words, MARK]),
    )


_WORKED: Final = f"""
SELECT j.computingsite FROM {{jobs}} j WHERE j.pandaid IN (
       SELECT e.pandaid FROM jedi_events e JOIN job_files f ON f.fileid = e.fileid AND f.type IN ('input', 'pseudo_input')
        WHERE e.jeditaskid = %(task)s AND f.pandaid = %(job)s AND {is_in({EventStatus.DONE}, "e.")})
 ORDER BY j.pandaid DESC LIMIT 1
"""


def _queue_of(cursor: psycopg.Cursor[Any], job: EventJob) -> str:
    """Where the merge job runs: where the consumer was; after one that waited, where the last range was processed."""
    if job.site != WAITING_QUEUE:
        return job.site
    for table in ("jobs", "jobs_archive"):
        cursor.execute(_WORKED.format(jobs=table), {"task": job.task_id, "job": job.job_id})
        if (row := cursor.fetchone()) is not None:
            return str(row[0])
    return job.site


def give_inputs(cursor: psycopg.Cursor[Any], task_id: int, merge_job: int, files: Collection[int]) -> None:
    """A merge job, which has its outputs already, reads the zip files of what is done, and what lies in none."""
    cursor.execute(_READS, {"task": task_id, "job": merge_job, "files": numbers(files)})
