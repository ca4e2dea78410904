"""How jobs end, or wait for their merge: one statement for all jobs of a booking. Part of the door for states of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from jedisite.database.sql import numbers, texts
from tasks_app.domain.states import JOB_FINAL, JobStatus
from tasks_app.lifecycle.job_moves import before_said

NEWS = (*sorted(JOB_FINAL), JobStatus.MERGING)
"""What a booking can make of a job."""


class JobEnd(NamedTuple):
    """What becomes of a job, by whom and why; `stored` is how many bytes of output it left."""

    job_id: int
    status: str
    stored: int
    by: str
    reason: str


# What a merge job counts stays with the job that waited for it. A job whose pilot was told to stop it has its reason.
_END = f"""
WITH ended AS (
    UPDATE jobs j SET jobstatus = e.status, endtime = coalesce(j.endtime, greatest(clock_timestamp(), j.starttime)),
           statechangetime = clock_timestamp(), modificationtime = clock_timestamp(), commandtopilot = NULL,
           outputfilebytes = CASE WHEN j.jobstatus = 'merging' THEN j.outputfilebytes ELSE e.bytes END
      FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::text[]) e (id, status, bytes, actor, reason)
     WHERE j.pandaid = e.id AND {before_said("e.status", NEWS, "j.")}
    RETURNING j.pandaid, j.jobstatus, j.computingsite, e.actor,
              CASE WHEN e.reason = '' AND j.jobstatus IN ('cancelled', 'closed')
                   THEN coalesce(j.taskbuffererrordiag, '') ELSE e.reason END AS reason),
logged AS (
    INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor, reason)
    SELECT pandaid, jobstatus, clock_timestamp(), computingsite, actor, reason FROM ended)
SELECT pandaid FROM ended ORDER BY pandaid"""  # noqa: S608 - states of the table


def write_ends(cursor: psycopg.Cursor[Any], ends: Sequence[JobEnd]) -> list[int]:
    """Jobs that the caller has locked end, each in its own way, if the table allows it. Returns those that did, in order."""
    ids, statuses, stored, actors, reasons = zip(*ends, strict=True) if ends else ((),) * 5
    cursor.execute(_END, [numbers(ids), texts(statuses), numbers(stored), texts(actors), texts(reasons)])
    return [job for (job,) in cursor.fetchall()]
