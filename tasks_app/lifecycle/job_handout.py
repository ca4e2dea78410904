"""Hot path: jobs are handed to pilots. Part of the door for states of jobs; `dispatch.handing_out` runs these statements."""

from __future__ import annotations

import hashlib

from tasks_app.domain.lines import LINE
from tasks_app.domain.states import JobStatus
from tasks_app.lifecycle.job_moves import before

# ruff: noqa: S608 - every piece is a constant of ours
# Each job has a secret of its own, made of its number and of what is drawn for the call; `secret_of` makes the same.
_SECRET_HASH = (
    "sha256(convert_to(encode(sha256(convert_to(j.pandaid || ':' || %(drawn)s::text, 'UTF8')), 'hex'), 'UTF8'))"
)
# The jobs that {chosen} picks and locks go to a pilot, with all that it needs: one statement, one transaction.
HAND_OUT = f"""
WITH chosen AS ({{chosen}}),
logged AS (
    INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor)
    SELECT pandaid, 'sent', clock_timestamp(), %(site)s, %(by)s FROM chosen)
UPDATE jobs j
   SET jobstatus = 'sent', fence = fence + 1, secret_hash = {_SECRET_HASH}, modificationhost = %(node)s,
       workerid = %(worker)s, modificationtime = clock_timestamp(), statechangetime = clock_timestamp(),
       heartbeat_at = clock_timestamp()
  FROM chosen
 WHERE j.pandaid = chosen.pandaid
RETURNING j.pandaid, jeditaskid, attemptnr, fence, transformation, processingtype, prodsourcelabel, corecount, minramcount,
       maxwalltime, maxdiskcount, jobname, currentpriority, produsername, jobsetid, reqid, atlasrelease, homepackage,
       cmtconfig, container_name, resource_type, gshare, workqueue_id, specialhandling, maxcpucount, transfertype, nucleus, cloud,
       jobdefinitionid, eventservice,
       (SELECT p.jobparameters FROM job_params p WHERE p.pandaid = j.pandaid),
       ARRAY(SELECT ARRAY[f.type, f.lfn, f.scope, f.guid, f.fsize::text, f.checksum, f.dataset, f.destinationse, f.surl]
               FROM job_files f WHERE f.pandaid = j.pandaid ORDER BY f.row_id)
"""
# What {chosen} picks from. Only one state may become `sent`, so each of them can use an index on the jobs in that state.
_WAITING = f"""
    SELECT pandaid FROM jobs
     WHERE computingsite = %(site)s AND {before(JobStatus.SENT)}
       AND (%(label)s = '' OR prodsourcelabel = %(label)s OR prodsourcelabel = %(also)s){{whose}}"""
# The oldest first.
BY_NUMBER = (
    _WAITING
    + """
       AND pandaid > %(job)s
     ORDER BY pandaid LIMIT {count} FOR UPDATE SKIP LOCKED"""
)
# Line after line until there are enough: a nested loop takes them in the order of the array, and nothing sorts after it.
# The first is gone on with behind the last job handed out.
BY_LINE = (
    """
    SELECT pandaid FROM (
    SELECT of_line.pandaid FROM unnest((%(lines)s::text[])[%(first)s:]) WITH ORDINALITY line (name, number)
     CROSS JOIN LATERAL ("""
    + _WAITING
    + f"""
       AND {LINE} = line.name
       AND ((currentpriority * -1), pandaid) > (CASE WHEN line.number = 1 THEN %(priority)s ELSE -2147483648 END,
                                                CASE WHEN line.number = 1 THEN %(job)s ELSE 0 END)
     ORDER BY (currentpriority * -1), pandaid LIMIT {{count}} FOR UPDATE SKIP LOCKED) of_line
    UNION ALL
    SELECT other.pandaid FROM ("""
    + _WAITING
    + f"""
       AND ({LINE} = ANY(%(lines)s::text[])) IS NOT TRUE
       AND ((currentpriority * -1), pandaid) > (%(other_priority)s, %(other_job)s)
     ORDER BY (currentpriority * -1), pandaid LIMIT {{count}} FOR UPDATE SKIP LOCKED) other) jobs LIMIT {{count}}"""
)


def secret_of(job_id: int, drawn: str) -> str:
    """The secret with which a job was handed out, given what was drawn for the call. It tells nothing of those of other jobs."""
    return hashlib.sha256(f"{job_id}:{drawn}".encode()).hexdigest()
