"""The statements after those of jobs: files, workers, and what agents would have booked. See `statements`."""

from __future__ import annotations

from typing import Final

FILES: Final = (
    """
CREATE TEMP TABLE made_files ON COMMIT DROP AS
SELECT nextval(pg_get_serial_sequence('jedi_dataset_contents', 'fileid')) AS file, x.* FROM (
       SELECT m.n, f, CASE WHEN m.units > 0 THEN ((f::bigint * m.units + m.files - 1) / m.files)::int END AS k
         FROM made m, generate_series(1, m.files) f WHERE m.has_files ORDER BY m.n, f) x""",
    """
CREATE TEMP TABLE made_last ON COMMIT DROP AS
SELECT DISTINCT ON (n, k) n, k, job, status, is_final, try, ended FROM made_jobs ORDER BY n, k, try DESC""",
    "ANALYZE made_files",
    "ANALYZE made_last",
    """
INSERT INTO jedi_dataset_contents (jeditaskid, datasetid, fileid, creationdate, lastattempttime, lfn, guid, type, status, fsize,
       checksum, scope, attemptnr, maxattempt, failedattempt, maxfailure, nevents, keeptrack, ramcount, pandaid)
SELECT m.task, m.dataset, x.file, m.created, l.ended,
       'synthetic.' || m.task || '._' || lpad(f::text, 7, '0') || '.root', md5(m.task || '.' || f)::uuid::text, 'input',
       CASE WHEN l.status = 'finished' THEN 'finished' WHEN l.job IS NULL OR l.is_final THEN 'ready' ELSE 'running' END,
       1000000000 + f, 'ad:' || lpad(to_hex(f), 8, '0'), 'synthetic', a.attempts, 3,
       a.attempts - CASE WHEN l.status = 'finished' THEN 1 ELSE 0 END, 3, 10000, 1, 0, l.job
  FROM made_files x JOIN made m USING (n) LEFT JOIN made_last l ON l.n = x.n AND l.k = x.k
 CROSS JOIN LATERAL (SELECT CASE WHEN l.job IS NULL THEN 0 WHEN l.is_final THEN l.try ELSE l.try - 1 END AS attempts) a
 ORDER BY x.file""",
    """
INSERT INTO job_files (pandaid, jeditaskid, datasetid, fileid, lfn, type, scope, dataset, guid, fsize, checksum, status,
       attemptnr)
SELECT j.job, m.task, m.dataset, x.file, 'synthetic.' || m.task || '._' || lpad(f::text, 7, '0') || '.root', 'input', 'synthetic',
       'synthetic.in.' || m.task, md5(m.task || '.' || f)::uuid::text, 1000000000 + f, 'ad:' || lpad(to_hex(f), 8, '0'), 'ready',
       j.try
  FROM made_files x JOIN made m USING (n) JOIN made_jobs j ON j.n = x.n AND j.k = x.k ORDER BY j.job""",
    """
CREATE TEMP TABLE made_outputs ON COMMIT DROP AS
SELECT nextval(pg_get_serial_sequence('jedi_dataset_contents', 'fileid')) AS file, job, task, created, inputs,
       CASE WHEN status = 'finished' THEN 'finished' WHEN status = 'failed' THEN 'failed' WHEN is_final THEN 'cancelled'
            ELSE 'defined' END AS status
  FROM made_rows""",
    """
INSERT INTO jedi_dataset_contents (jeditaskid, datasetid, fileid, creationdate, lfn, type, status, fsize, checksum, scope,
       attemptnr, nevents, keeptrack, ramcount, pandaid, outpandaid)
SELECT o.task, m.output, o.file, o.created, 'synthetic.out.' || o.task || '._' || o.job || '.root', 'output', o.status,
       CASE WHEN o.status = 'finished' THEN o.inputs * 350000000::bigint END,
       CASE WHEN o.status = 'finished' THEN 'ad:' || lpad(to_hex(o.job), 8, '0') END, 'synthetic', 0, o.inputs * 1000, 0, 0,
       o.job, o.job
  FROM made_outputs o JOIN made m USING (task) ORDER BY o.file""",
    """
INSERT INTO job_files (pandaid, jeditaskid, datasetid, fileid, lfn, type, scope, dataset, fsize, checksum, status, attemptnr)
SELECT o.job, o.task, m.output, o.file, 'synthetic.out.' || o.task || '._' || o.job || '.root', 'output', 'synthetic',
       'synthetic.out.' || o.task, CASE WHEN o.status = 'finished' THEN o.inputs * 350000000::bigint END,
       CASE WHEN o.status = 'finished' THEN 'ad:' || lpad(to_hex(o.job), 8, '0') END,
       CASE WHEN o.status = 'cancelled' THEN 'failed' ELSE o.status END, 0
  FROM made_outputs o JOIN made m USING (task) ORDER BY o.job""",
    """
INSERT INTO file_retries (fileid, jeditaskid, datasetid)
SELECT x.file, m.task, m.dataset FROM made_files x JOIN made m USING (n) JOIN made_last l ON l.n = x.n AND l.k = x.k
 WHERE l.is_final AND l.status <> 'finished' AND l.try < 3
   AND m.status NOT IN ('done', 'finished', 'failed', 'aborted', 'broken')""",
    """
UPDATE jedi_datasets d
   SET nfiles = r.files, nfilestobeused = r.files, nfilesused = r.used, nfilesfinished = r.finished, nfilesfailed = r.failed,
       pick_cursor = r.last, nevents = r.files * 10000, neventsused = r.finished * 10000
  FROM (SELECT m.dataset, count(*) AS files,
               count(*) FILTER (WHERE l.job IS NOT NULL AND (NOT l.is_final OR l.status = 'finished' OR l.try >= 3)) AS used,
               count(*) FILTER (WHERE l.status = 'finished') AS finished,
               count(*) FILTER (WHERE l.is_final AND l.status <> 'finished' AND l.try >= 3) AS failed,
               coalesce(max(x.file) FILTER (WHERE l.job IS NOT NULL), 0) AS last
          FROM made_files x JOIN made m USING (n) LEFT JOIN made_last l ON l.n = x.n AND l.k = x.k GROUP BY 1) r
 WHERE d.datasetid = r.dataset""",
    """
UPDATE jedi_datasets d
   SET nfiles = r.files, nfilestobeused = r.files, nfilesused = r.files, nfilesfinished = r.finished, nfilesfailed = r.failed
  FROM (SELECT m.output, count(*) AS files, count(*) FILTER (WHERE o.status = 'finished') AS finished,
               count(*) FILTER (WHERE o.status IN ('failed', 'cancelled')) AS failed
          FROM made_outputs o JOIN made m USING (task) GROUP BY 1) r
 WHERE d.datasetid = r.output""",
    """
INSERT INTO dataset_replica_lookups (datasetname, nfiles, bytes, ts)
SELECT 'synthetic.in.' || task, files, files * 1000000000::bigint, %(now)s FROM made WHERE has_files""",
    """
INSERT INTO dataset_replicas (datasetname, endpoint, nfiles, bytes, complete, ts)
SELECT 'synthetic.in.' || m.task, (%(endpoints)s::text[])[1 + (m.n * 13 + c * 31) %% cardinality(%(endpoints)s::text[])],
       m.files, m.files * 1000000000::bigint, true, %(now)s
  FROM made m, generate_series(0, m.n %% 3) c WHERE m.has_files ON CONFLICT DO NOTHING""",
)

WORKERS: Final = (
    """
INSERT INTO harvester_instances (harvester_id, owner, hostname, starttime, lastupdate, sw_version, max_workerid)
SELECT 'harvester-' || i, 'harvester', 'harvester' || i || '.example', %(now)s - interval '9 days',
       %(now)s - CASE WHEN i = 3 THEN interval '50 minutes' ELSE interval '1 minute' END,
       CASE WHEN i = 3 THEN '0.5.8' ELSE '0.5.12' END, (SELECT coalesce(max(job), 0) FROM made_rows) + 1000000000
  FROM generate_series(1, 3) i ON CONFLICT DO NOTHING""",
    # A worker has the number of its job; every sixth had none, and every tenth of those never started.
    """
INSERT INTO harvester_workers (harvesterid, workerid, batchid, queuename, status, computingsite, ncore, nodeid, submittime,
       starttime, endtime, jobtype, resourcetype, nativeexitcode, nativestatus, diagmessage, njobs, computingelement,
       submissionhost, harvesterhost, errorcode, minramcount, pilotstatus, pilotstarttime, pilotendtime, lastupdate)
SELECT 'harvester-' || h.nr, CASE WHEN kind = 'job' THEN job ELSE 1000000000 + job END, (job * 7)::text,
       'grid', w.status, r.queue, r.cores, CASE WHEN w.status NOT IN ('submitted', 'failed') THEN r.node END,
       r.started - (600 + mod(dice >> 3, 5000)) * interval '1 second',
       CASE WHEN w.status <> 'submitted' THEN r.started - interval '1 minute' END,
       CASE WHEN kind <> 'job' AND w.status <> 'submitted' THEN r.started + interval '4 minutes' ELSE r.ended END,
       r.label, r.resource_type, CASE w.status WHEN 'failed' THEN 1 WHEN 'finished' THEN 0 END, w.status,
       CASE WHEN w.status = 'failed' THEN replace(replace(replace((%(batch)s::text[])[1 + mod(dice >> 12, %(n_batch)s)],
            '{n}', mod(dice >> 5, 991)::text), '{id}', to_hex(mod(dice >> 8, 16777216))), '{node}', r.node) END, 1,
       'ce01.' || lower(r.place), 'schedd' || mod(dice >> 4, 4) || '.example', 'harvester' || h.nr || '.example',
       CASE WHEN w.status = 'failed' THEN 9000 + mod(dice >> 12, %(n_batch)s) END, r.ram_mb * r.cores,
       CASE WHEN w.status IN ('finished', 'running') THEN w.status END,
       CASE WHEN w.status IN ('finished', 'running') THEN r.started - interval '30 s' END,
       CASE WHEN w.status = 'finished' THEN coalesce(r.ended, r.started + interval '3 minutes') END,
       CASE WHEN r.ended IS NULL THEN %(now)s - mod(dice >> 7, CASE WHEN mod(dice >> 15, 50) = 0 THEN 90000 ELSE 1200 END)
                 * interval '1 second' ELSE r.ended END
  FROM made_rows r CROSS JOIN LATERAL (VALUES ('job'), (CASE WHEN mod(dice >> 22, 6) = 0 THEN 'empty' END)) v (kind)
 CROSS JOIN LATERAL (
       SELECT CASE WHEN kind = 'job' THEN CASE WHEN r.is_final THEN 'finished' ELSE 'running' END
                   WHEN mod(dice >> 28, 10) = 0 THEN 'failed' WHEN mod(dice >> 28, 10) = 1 AND r.ended IS NULL THEN 'submitted'
                   WHEN mod(dice >> 28, 10) = 2 THEN 'cancelled' ELSE 'finished' END AS status) w
 CROSS JOIN LATERAL (SELECT 1 + mod(hashtext(r.queue) & 2147483647, 3) AS nr) h
 WHERE kind IS NOT NULL AND r.started > %(now)s - interval '36 hours' AND r.task %% 2 = 0 ORDER BY r.started""",
    """
INSERT INTO harvester_rel_jobs_workers (harvesterid, workerid, pandaid, lastupdate)
SELECT 'harvester-' || 1 + mod(hashtext(queue) & 2147483647, 3), job, job, changed FROM made_rows
 WHERE started > %(now)s - interval '36 hours' AND task %% 2 = 0""",
    """
INSERT INTO harvester_worker_stats (harvester_id, computingsite, resourcetype, jobtype, status, n_workers, lastupdate)
SELECT harvesterid, computingsite, coalesce(resourcetype, ''), coalesce(jobtype, ''), status, count(*),
       %(now)s - interval '2 minutes'
  FROM harvester_workers WHERE status IN ('submitted', 'running') GROUP BY 1, 2, 3, 4, 5 ON CONFLICT DO NOTHING""",
    """
INSERT INTO sitedata (site, hour, getjob, updatejob)
SELECT queue, hour, jobs * 2 + 3, jobs * 9 FROM (
       SELECT queue, date_trunc('hour', started) AS hour, count(*) AS jobs FROM made_rows
        WHERE started > %(now)s - interval '3 days' GROUP BY 1, 2) x ON CONFLICT DO NOTHING""",
)
# What agents would have booked of these jobs by now.
BOOKS: Final = (
    "INSERT INTO job_ends_due (pandaid) SELECT job FROM made_rows WHERE status IN ('finished', 'failed') ON CONFLICT DO NOTHING",
    """
INSERT INTO samples (at, site, gshare, running_jobs, running_cores, running_hs, queued_jobs, queued_hs, finished, failed,
       wasted_core_s)
WITH steps AS (
    SELECT queue, gshare, date_bin('5 minutes', at, %(now)s) + interval '5 minutes' AS at, sum(runs) AS runs,
           sum(runs * cores) AS run_cores, sum(waits) AS waits, sum(waits * cores) AS wait_cores,
           sum(finished) AS finished, sum(failed) AS failed, sum(wasted) AS wasted
      FROM (SELECT queue, gshare, cores, created AS at, 0 AS runs, 1 AS waits, 0 AS finished, 0 AS failed, 0 AS wasted
              FROM made_rows
            UNION ALL SELECT queue, gshare, cores, started, 1, -1, 0, 0, 0 FROM made_rows WHERE started IS NOT NULL
            UNION ALL SELECT queue, gshare, cores, ended, CASE WHEN started IS NULL THEN 0 ELSE -1 END,
                             CASE WHEN started IS NULL THEN -1 ELSE 0 END, (status = 'finished')::int, (status = 'failed')::int,
                             CASE WHEN status = 'failed' THEN (runs * cores)::bigint ELSE 0 END
                        FROM made_rows WHERE ended IS NOT NULL) x
     GROUP BY GROUPING SETS ((queue, 3), (gshare, 3), (3))),
series AS (SELECT DISTINCT queue, gshare FROM steps)
SELECT at, coalesce(queue, ''), coalesce(gshare, ''), sum(runs) OVER w, sum(run_cores) OVER w, 10 * sum(run_cores) OVER w,
       sum(waits) OVER w, 10 * sum(wait_cores) OVER w, coalesce(finished, 0), coalesce(failed, 0), coalesce(wasted, 0)
  FROM (SELECT s.queue, s.gshare, t.at, d.runs, d.run_cores, d.waits, d.wait_cores, d.finished, d.failed, d.wasted
          FROM series s CROSS JOIN generate_series(%(now)s - interval '3 days', %(now)s, '5 minutes') t (at)
          LEFT JOIN steps d ON d.at = t.at AND d.queue IS NOT DISTINCT FROM s.queue AND d.gshare IS NOT DISTINCT FROM s.gshare) y
WINDOW w AS (PARTITION BY queue, gshare ORDER BY at) ON CONFLICT DO NOTHING""",
)
