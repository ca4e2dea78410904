"""Hot path: what the ends of jobs make of their files, in sets. Part of the door for states of files; `outcomes.outcomes`
and `outcomes.unmerged` run these statements.

`made`, in those that store outputs, is what pilots said of the files that they stored.
"""

from __future__ import annotations

from typing import Final

from tasks_app.domain.job_file_states import JobFileStatus
from tasks_app.domain.states import FileStatus
from tasks_app.lifecycle.conditions import as_said
from tasks_app.lifecycle.file_moves import EITHER, MOST, OUTPUT, before

F = FileStatus
# ruff: noqa: S608 - every piece is a constant of ours
# A file of a job that failed is tried again (`again`) while it has attempts left and has not failed too often; `won` ends it,
# and those of `partial` without some of their events.
# Only a row that still names a job of these counts: a file that was given to another job since is not theirs. What came
# of the job is found by its place in the sorted list of jobs: a join would make the server read the whole dataset
# when it knows little of it.
BOOK_INPUTS: Final = f"""
WITH booked AS (
    UPDATE jedi_dataset_contents c
       SET status = CASE WHEN NOT (%(won)s::bool[])[width_bucket(c.pandaid, %(ids)s::bigint[])] THEN 'ready'
                         WHEN c.fileid = ANY(%(partial)s::bigint[]) THEN 'partial' ELSE 'finished' END,
           attemptnr = coalesce(c.attemptnr, 0) + 1,
           maxattempt = CASE WHEN (%(spared)s::bool[])[width_bucket(c.pandaid, %(ids)s::bigint[])]
                                  AND coalesce(c.attemptnr, 0) + 1 < %(most_spared)s AND c.maxattempt < {MOST}
                             THEN c.maxattempt + 1 ELSE c.maxattempt END,
           failedattempt = coalesce(c.failedattempt, 0)
                           + (%(failed)s::bool[])[width_bucket(c.pandaid, %(ids)s::bigint[])]::int,
           lastattempttime = clock_timestamp()
     WHERE c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.fileid BETWEEN %(first)s AND %(last)s
       AND c.fileid = ANY(ARRAY(SELECT f.fileid FROM job_files f WHERE f.pandaid = ANY(%(ids)s::bigint[])
                                   AND f.datasetid = %(dataset)s AND f.fileid IS NOT NULL))
       AND c.pandaid = ANY(%(ids)s::bigint[]) AND {before(EITHER, F.FINISHED, F.READY, row="c.")} AND c.keeptrack = 1
    RETURNING c.fileid, c.status IN ('finished', 'partial') AS won,
              coalesce(c.endevent - c.startevent + 1, c.nevents, 0) AS events,
              c.status = 'ready' AND (c.maxattempt IS NULL OR c.attemptnr < c.maxattempt)
                                 AND (c.maxfailure IS NULL OR c.failedattempt < c.maxfailure) AS again),
waiting AS (
    INSERT INTO file_retries (fileid, jeditaskid, datasetid)
    SELECT fileid, %(task)s, %(dataset)s FROM booked WHERE again ON CONFLICT DO NOTHING)
SELECT %(dataset)s::bigint, count(*) FILTER (WHERE won), count(*) FILTER (WHERE NOT won AND NOT again),
       count(*) FILTER (WHERE again), coalesce(sum(events) FILTER (WHERE won), 0)
  FROM booked HAVING count(*) > 0
"""

_MADE = """
WITH made AS (SELECT * FROM unnest(%(files)s::bigint[], %(sizes)s::bigint[], %(sums)s::text[], %(guids)s::text[],
                                   %(events)s::bigint[], %(surls)s::text[]) m (id, size, checksum, guid, events, surl)),"""
# The conditions by numbers of files besides the join: see `hash_joins`.
_THEIRS = """c.jeditaskid = %(task)s AND c.datasetid = o.datasetid AND c.fileid = o.fileid AND c.keeptrack = 1
       AND c.fileid = ANY(ARRAY(SELECT fileid FROM of_jobs))
       AND c.datasetid = ANY(ARRAY(SELECT DISTINCT datasetid FROM of_jobs))"""
# Not what a merge job has: that is `running`.
_UNUSED = (F.DEFINED, F.READY)
_ENDED = as_said(
    "o.became",
    {new: before(OUTPUT, new, among=_UNUSED, row="c.") for new in (F.FINISHED, F.FAILED, F.CANCELLED, F.NOOUTPUT)},
)
BOOK_OUTPUTS: Final = f"""{_MADE}
of_jobs AS (
    SELECT f.row_id, f.fileid, f.datasetid, m.id IS NOT NULL AS here, m.size, m.checksum, m.guid, m.events, m.surl,
           CASE WHEN m.id IS NOT NULL THEN 'finished' WHEN e.status = 'failed' THEN 'failed'
                WHEN e.status = 'finished' THEN 'nooutput' ELSE 'cancelled' END AS became
      FROM unnest(%(ids)s::bigint[], %(statuses)s::text[]) e (id, status)
      JOIN job_files f ON f.pandaid = e.id AND f.pandaid = ANY(%(ids)s::bigint[])
                      AND f.type IN ('output', 'log', 'trn_output', 'trn_log')
      LEFT JOIN made m ON m.id = f.fileid),
rows AS (
    UPDATE job_files f SET status = CASE WHEN o.here THEN '{JobFileStatus.FINISHED}'
                                         WHEN o.became = 'nooutput' THEN '{JobFileStatus.NO_OUTPUT}'
                                         ELSE '{JobFileStatus.FAILED}' END,
           fsize = coalesce(o.size, f.fsize), checksum = coalesce(o.checksum, f.checksum),
           guid = coalesce(o.guid, f.guid), nevents = coalesce(o.events, f.nevents), surl = coalesce(o.surl, f.surl)
      FROM of_jobs o WHERE f.row_id = o.row_id AND f.row_id = ANY(ARRAY(SELECT row_id FROM of_jobs))),
booked AS (
    UPDATE jedi_dataset_contents c
       SET status = o.became,
           fsize = coalesce(o.size, c.fsize), checksum = coalesce(o.checksum, c.checksum),
           guid = coalesce(o.guid, c.guid), nevents = coalesce(o.events, c.nevents), keeptrack = 0,
           surl = coalesce(o.surl, c.surl)
      FROM of_jobs o
     WHERE {_THEIRS}
       AND {_ENDED}
    RETURNING c.datasetid, o.here, o.became, coalesce(o.events, 0) AS events, c.boundaryid IS NOT NULL AS was_ready)
SELECT datasetid, count(*) FILTER (WHERE here), count(*) FILTER (WHERE became IN ('failed', 'cancelled')),
       -count(*) FILTER (WHERE was_ready),
       coalesce(sum(events), 0)
  FROM booked GROUP BY datasetid
"""

# What jobs stored waits to be merged; each file may be given to a merge job so many times more. What they need not have made, and
# did not, is decided.
HOLD_OUTPUTS: Final = f"""{_MADE}
of_jobs AS (
    SELECT f.row_id, f.fileid, f.datasetid, f.pandaid, m.id IS NOT NULL AS here, m.size, m.checksum, m.guid, m.events, m.surl
      FROM job_files f LEFT JOIN made m ON m.id = f.fileid
     WHERE f.pandaid = ANY(%(ids)s::bigint[]) AND f.type IN ('trn_output', 'trn_log')),
rows AS (
    UPDATE job_files f SET status = CASE WHEN o.here THEN '{JobFileStatus.FINISHED}' ELSE '{JobFileStatus.NO_OUTPUT}' END,
           fsize = o.size, checksum = o.checksum,
           guid = coalesce(o.guid, f.guid), nevents = o.events, surl = o.surl
      FROM of_jobs o WHERE f.row_id = o.row_id AND f.row_id = ANY(ARRAY(SELECT row_id FROM of_jobs))),
ready AS (
    UPDATE jedi_dataset_contents c
       SET status = 'ready', boundaryid = o.pandaid, maxattempt = coalesce(c.attemptnr, 0) + %(attempts)s, fsize = o.size,
           checksum = o.checksum, guid = coalesce(o.guid, c.guid), nevents = o.events, surl = o.surl
      FROM of_jobs o
     WHERE {_THEIRS} AND o.here AND {before(OUTPUT, F.READY, among=[F.DEFINED], row="c.")}
    RETURNING c.datasetid, c.fileid),
not_made AS (
    UPDATE jedi_dataset_contents c SET status = 'nooutput', keeptrack = 0
      FROM of_jobs o
     WHERE {_THEIRS} AND NOT o.here AND {before(OUTPUT, F.NOOUTPUT, among=[F.DEFINED], row="c.")}),
queued AS (
    INSERT INTO file_retries (fileid, jeditaskid, datasetid) SELECT fileid, %(task)s, datasetid FROM ready
        ON CONFLICT DO NOTHING)
SELECT datasetid, 0::bigint, 0::bigint, count(*), 0::bigint FROM ready GROUP BY datasetid
"""

# After the ends of merge jobs: what they merged, and what has no attempt left, is done with, and the jobs that made it
# are to be ended.
CONCLUDE_MERGES: Final = f"""
WITH over AS (
    UPDATE jedi_dataset_contents c
       SET status = CASE c.status WHEN 'ready' THEN 'notmerged' ELSE c.status END, keeptrack = 0
     WHERE c.jeditaskid = %(task)s AND c.type IN ('trn_output', 'trn_log') AND c.pandaid = ANY(%(ids)s::bigint[])
       AND c.fileid = ANY(ARRAY(SELECT fileid FROM job_files WHERE pandaid = ANY(%(ids)s::bigint[]) AND type = 'input'))
       AND c.datasetid = ANY(ARRAY(SELECT DISTINCT datasetid FROM job_files
                                    WHERE pandaid = ANY(%(ids)s::bigint[]) AND type = 'input'))
       AND c.keeptrack = 1 AND (c.status = 'finished' OR ({before(OUTPUT, F.NOTMERGED, among=[F.READY], row="c.")}
                                                          AND c.attemptnr >= c.maxattempt))
    RETURNING c.boundaryid, c.status, c.pandaid)
INSERT INTO job_output_report (pandaid, jeditaskid, attemptnr, jobstatus, data)
SELECT boundaryid, %(task)s, 0, CASE WHEN bool_and(status = 'finished') THEN %(merged)s ELSE %(not_merged)s END,
       jsonb_build_object('merge_job', max(pandaid))
  FROM over GROUP BY boundaryid ON CONFLICT DO NOTHING
"""
