"""Hot path: jobs move by what their pilots say. Part of the door for states of jobs; `dispatch.reports` and
`dispatch.bulk_reports` run these statements.

{mine} is the condition that the report comes from whom the job was handed to. {given} and {measures} set what the report
says of the job besides. A report of a list has its values in columns that begin with `said_`.
"""

from __future__ import annotations

from typing import Final

from tasks_app.domain.job_file_states import JobFileStatus
from tasks_app.domain.states import JobStatus
from tasks_app.lifecycle.job_moves import before, before_said

# ruff: noqa: S608 - every piece is a constant of ours
ALIVE: Final = (JobStatus.STARTING, JobStatus.RUNNING)
"""What a report can make of a job whose pilot is at work."""

# A pilot is further on with its job: it starts, or runs.
ADVANCE = f"""
WITH moved AS (
    UPDATE jobs SET jobstatus = %(status)s, heartbeat_at = clock_timestamp(), statechangetime = clock_timestamp(),
           modificationtime = clock_timestamp(), starttime = coalesce(starttime, %(start)s, clock_timestamp()){{given}}
     WHERE {{mine}} AND {before_said("%(status)s", ALIVE)}
    RETURNING pandaid, computingsite, commandtopilot),
logged AS (
    INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor)
    SELECT pandaid, %(status)s, clock_timestamp(), computingsite, %(by)s FROM moved)
SELECT commandtopilot FROM moved
"""

# A pilot has ended with its job: the report is kept for the adder. It takes the place of a line that says how the job would
# end otherwise: the line would find the job holding, and then nothing would be left by which it ends.
_INSTEAD = """ON CONFLICT (pandaid) DO UPDATE
           SET attemptnr = excluded.attemptnr, jobstatus = excluded.jobstatus, data = excluded.data"""
# A pilot's clock may be behind ours, and say whole seconds only: no job ends before it starts.
_FINAL_PARTS = f"""
WITH moved AS (
    UPDATE jobs SET jobstatus = 'holding', heartbeat_at = clock_timestamp(), statechangetime = clock_timestamp(),
           modificationtime = clock_timestamp(), starttime = coalesce(starttime, %(start)s, statement_timestamp()),
           endtime = greatest(coalesce(%(end)s, clock_timestamp()),
                              coalesce(starttime, %(start)s, statement_timestamp())){{given}}
     WHERE {{mine}} AND {before(JobStatus.HOLDING)}
    RETURNING pandaid, jeditaskid, attemptnr, computingsite),
kept AS (
    INSERT INTO job_output_report (pandaid, jeditaskid, attemptnr, jobstatus, data)
    SELECT pandaid, jeditaskid, coalesce(attemptnr, 0), %(status)s, %(outputs)s FROM moved
        {_INSTEAD}),
logged AS (
    INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor)
    SELECT pandaid, 'holding', clock_timestamp(), computingsite, %(by)s FROM moved)
"""
FINAL = f"{_FINAL_PARTS}SELECT pandaid FROM moved"
FINAL_WITH_METADATA = f"""{_FINAL_PARTS}, described AS (
    INSERT INTO job_metadata (pandaid, metadata) SELECT pandaid, %(metadata)s FROM moved ON CONFLICT DO NOTHING)
SELECT pandaid FROM moved
"""

# Before a report counts: inputs of a job that merges outputs of ranges of events, which it cannot read.
CORRUPT = f"""
UPDATE job_files SET status = '{JobFileStatus.CORRUPTED}'
 WHERE pandaid = (SELECT pandaid FROM jobs WHERE {{mine}} AND {before(JobStatus.HOLDING)})
   AND type = 'zipinput' AND lfn = ANY(%(corrupted)s::text[])
"""

# How each statement for a list begins. Rows are locked in the order of their numbers, whatever order the join takes.
BEGIN = """
WITH given AS MATERIALIZED (SELECT * FROM unnest({arrays}) said ({names})),
held AS MATERIALIZED (
    SELECT pandaid AS held FROM jobs WHERE pandaid = ANY(%(job)s::bigint[]) ORDER BY pandaid FOR NO KEY UPDATE)"""
OF_THEM = "FROM held JOIN given ON said_job = held WHERE pandaid = held AND {mine}"

# The same as ADVANCE, for a list.
ADVANCES = f"""{BEGIN},
moved AS (
    UPDATE jobs SET jobstatus = said_status, heartbeat_at = clock_timestamp(), statechangetime = clock_timestamp(),
           modificationtime = clock_timestamp(), starttime = coalesce(starttime, said_start, clock_timestamp()){{measures}}
      {OF_THEM} AND {before_said("said_status", ALIVE)}
    RETURNING said_n, pandaid, said_status, computingsite, said_by, commandtopilot),
logged AS (
    INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor)
    SELECT pandaid, said_status, clock_timestamp(), computingsite, said_by FROM moved)
SELECT said_n, commandtopilot FROM moved
"""

# The same as FINAL, for a list; {errors} sets all errors, to NULL where a report has none.
FINALS = f"""{BEGIN},
moved AS (
    UPDATE jobs SET jobstatus = 'holding', heartbeat_at = clock_timestamp(), statechangetime = clock_timestamp(),
           modificationtime = clock_timestamp(), starttime = coalesce(starttime, said_start, statement_timestamp()),
           endtime = greatest(coalesce(said_end, clock_timestamp()), coalesce(starttime, said_start, statement_timestamp())),
           {{errors}}{{measures}}
      {OF_THEM} AND {before(JobStatus.HOLDING)}
    RETURNING said_n, pandaid, jeditaskid, attemptnr, computingsite, said_status, said_by, said_outputs, said_metadata),
kept AS (
    INSERT INTO job_output_report (pandaid, jeditaskid, attemptnr, jobstatus, data)
    SELECT pandaid, jeditaskid, coalesce(attemptnr, 0), said_status, said_outputs::jsonb FROM moved
        {_INSTEAD}),
described AS (
    INSERT INTO job_metadata (pandaid, metadata)
    SELECT pandaid, said_metadata::jsonb FROM moved WHERE said_metadata IS NOT NULL ON CONFLICT DO NOTHING),
logged AS (
    INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor)
    SELECT pandaid, 'holding', clock_timestamp(), computingsite, said_by FROM moved)
SELECT said_n, NULL::text FROM moved
"""
