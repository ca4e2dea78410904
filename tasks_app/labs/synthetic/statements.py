"""The statements that make tasks, jobs and files out of plans, in order. Chance is made of hashes: the same plan, the same rows.

Temporary tables: `made` has a row a task, `made_places` a row a queue, `made_mishaps` the kinds of failure. Out of them come
`made_tries` (attempts of jobs in time), `made_jobs` (the same with ids and states) and `made_files` (inputs).
"""

from __future__ import annotations

from typing import Final

from tasks_app.labs.synthetic.made_up_plan import LAST_START

# ruff: noqa: S608 - numbers and names of our own

MADE: Final = (
    "n",
    "status",
    "input_status",
    "output_status",
    "path",
    "has_files",
    "is_over",
    "sure",
    "says",
    "created",
    "changed",
    "span_s",
    "username",
    "is_user",
    "activity",
    "cores",
    "ram_mb",
    "priority",
    "failing",
    "files",
    "units",
    "most",
    "gshare",
    "nucleus",
    "workqueue",
)
TEMPORARY: Final = (
    """
CREATE TEMP TABLE made (
       n int, status text, input_status text, output_status text, path text[], has_files boolean, is_over boolean,
       sure boolean, says text, created timestamptz, changed timestamptz, span_s float, username text, is_user boolean,
       activity text, cores int, ram_mb int, priority int, failing int, files int, units int, most int, gshare text,
       nucleus text, workqueue int,
       task bigint DEFAULT nextval('jedi_tasks_id_seq'),
       dataset bigint DEFAULT nextval(pg_get_serial_sequence('jedi_datasets', 'datasetid')),
       output bigint DEFAULT nextval(pg_get_serial_sequence('jedi_datasets', 'datasetid'))) ON COMMIT DROP""",
    "CREATE TEMP TABLE made_places (nr int PRIMARY KEY, queue text, place text) ON COMMIT DROP",
    """
CREATE TEMP TABLE made_mishaps (
       place text, low int, high int, says text, pilot int, exe int, trans text, ddm int, dispatcher int, server int,
       supervisor int) ON COMMIT DROP""",
)

TASKS: Final = (
    """
INSERT INTO jedi_tasks (jeditaskid, taskname, status, oldstatus, username, creationdate, modificationtime, statechangetime,
       starttime, endtime, prodsourcelabel, vo, tasktype, processingtype, taskpriority, currentpriority, corecount, ramcount,
       ramunit, architecture, transhome, transuses, gshare, reqid, parent_tid, errordialog, attemptnr, splitrule, transpath,
       iointensity, diskio, nucleus, cputime, cputimeunit, workqueue_id, resource_type, campaign, workinggroup)
SELECT task, CASE WHEN is_user THEN 'user.' || username || '.analysis.' || task
                  ELSE 'mc23_13p6TeV.' || 600000 + n %% 4000 || '.' || activity || '.e' || 8500 + n %% 90 || '_s'
                       || 4100 + n %% 60 END,
       status, path[cardinality(path) - 1], username, created, greatest(changed, %(now)s - interval '1 minute' * (1 + n %% 50)),
       changed, CASE WHEN units > 0 THEN created + 0.02 * (changed - created) END,
       CASE WHEN status = ANY(ARRAY['done', 'finished', 'failed', 'aborted', 'broken']) THEN changed END,
       CASE WHEN is_user THEN 'user' ELSE 'managed' END, 'atlas', CASE WHEN is_user THEN 'anal' ELSE 'prod' END,
       CASE WHEN is_user THEN 'panda-client-1.5.' || 40 + n %% 9 || '-jedi-run' ELSE activity END, priority,
       priority + n %% 5 * 10, cores, ram_mb, 'MBPerCore', 'x86_64-el9-gcc13-opt', 'Athena-24.0.' || n %% 12, 'Atlas-24.0.5',
       gshare, CASE WHEN is_user THEN task ELSE 50000 + n / 20 END, task, nullif(says, ''), 0,
       CASE WHEN status = 'scouting' THEN 'NF=5,US=2' ELSE 'NF=5' END, 'run_command', n %% 400, n %% 2000, nucleus,
       cores * (2 + n %% 4),
       'HS06sPerEvent', workqueue, CASE WHEN cores = 1 THEN 'SCORE' ELSE 'MCORE' END,
       CASE WHEN is_user THEN NULL ELSE 'MC23' || (ARRAY['a', 'c', 'd', 'e'])[1 + n %% 4] END,
       CASE WHEN is_user THEN NULL ELSE (ARRAY['AP_MCGN', 'AP_REPR', 'AP_HIGG', 'AP_SUSY', 'AP_EXOT'])[1 + n %% 5] END
  FROM made""",
    """
INSERT INTO tasks_statuslog (jeditaskid, oldstatus, status, modificationtime, attemptnr, actor, reason)
SELECT task, path[s - 1], path[s], created + (changed - created) * ((s - 1.0) / greatest(cardinality(path) - 1, 1)), 0,
       CASE WHEN path[s] = 'defined' THEN 'refiner' WHEN path[s] IN ('aborting', 'paused', 'finishing') THEN username
            WHEN path[s] IN ('prepared', 'done', 'finished', 'failed') THEN 'post_processor' WHEN path[s] = 'registered'
            THEN username ELSE 'job_generator' END,
       CASE WHEN s = cardinality(path) THEN says ELSE '' END
  FROM made, generate_series(1, cardinality(path)) s ORDER BY 4""",
    """
INSERT INTO jedi_taskparams (jeditaskid, taskparams)
SELECT task, jsonb_build_object('taskName', 'synthetic.' || task, 'userName', username)
             || CASE WHEN status = 'registered' THEN jsonb_build_object(
                  'noInput', true, 'nEvents', 1000 * (5 + mod(n, 40)), 'nEventsPerJob', 1000, 'vo', 'atlas',
                  'prodSourceLabel', CASE WHEN is_user THEN 'user' ELSE 'managed' END,
                  'taskType', CASE WHEN is_user THEN 'anal' ELSE 'prod' END, 'processingType', activity,
                  'taskPriority', priority, 'transPath', 'run_command', 'coreCount', cores, 'ramCount', ram_mb,
                  'ramUnit', 'MBPerCore', 'cpuTime', 100, 'cpuTimeUnit', 'HS06sPerEvent', 'log', jsonb_build_object(
                     'type', 'template', 'param_type', 'log', 'dataset', 'synthetic.log.' || task,
                     'value', 'synthetic.' || task || '.${SN}.log.tgz'),
                  'jobParameters', jsonb_build_array(jsonb_build_object('type', 'constant', 'value', '-- true')))
                ELSE jsonb_build_object('nFilesPerJob', 5) END
  FROM made""",
    """
INSERT INTO jedi_jobparams_template (taskid, jobparamstemplate)
SELECT task, '--in=${IN}' FROM made WHERE status <> 'registered'""",
    """
INSERT INTO jedi_datasets (jeditaskid, datasetid, datasetname, type, status, state, nfiles, nfilestobeused, nfilesused,
       nfilesfinished, nfilesfailed, streamname, list_position, vo, creationtime, modificationtime)
SELECT task, dataset, 'synthetic.in.' || task, 'input', input_status, 'closed', 0, 0, 0, 0, 0, 'IN', 1, 'atlas', created, changed
  FROM made WHERE status <> 'registered'
UNION ALL
SELECT task, output, 'synthetic.out.' || task, 'output', output_status, 'open', 0, 0, 0, 0, 0, 'OUT', 2, 'atlas', created,
       changed
  FROM made WHERE status <> 'registered'""",
)

TRIES: Final = """
CREATE TEMP TABLE made_tries (
       n int, k int, try int, dice bigint, created timestamptz, started timestamptz, ended timestamptz, stop timestamptz,
       place int, hole boolean, fails boolean) ON COMMIT DROP
"""
_BEGINNING = f"""
SELECT n, k, 1 AS try, created + span_s * (0.02 + {LAST_START - 0.02} * (k - 1) / units) * interval '1 second' AS made_at
  FROM made, generate_series(1, least(units, most)) k"""
_AGAIN = """
SELECT t.n, t.k, t.try + 1, t.ended + 0.005 * m.span_s * interval '1 second' FROM made_tries t JOIN made m USING (n)
 WHERE t.try = {before} AND t.fails AND t.ended < t.stop"""
# Of a task's span an attempt waits up to 5 %, and runs up to 6 %. Its dice decide all else.
_TRY = """
INSERT INTO made_tries
SELECT n, k, try, dice, made_at, made_at + waits * interval '1 second',
       CASE WHEN is_over AND status <> 'aborted' THEN least(made_at + (waits + runs) * interval '1 second', stop)
            ELSE made_at + (waits + runs) * interval '1 second' END,
       stop, place, hole,
       CASE WHEN sure AND try = 3 THEN false
            ELSE hole OR mod(dice >> 20, 1000) < failing + CASE WHEN place %% 17 = 3 THEN 120 ELSE 0 END END
  FROM (SELECT x.n, k, try, made_at, dice, place, stop, is_over, status, sure, failing,
               place = 4 AND mod(dice >> 45, 100) < 45 AND NOT (sure AND try = 3) AS hole,
               span_s * (0.002 + 0.048 * power(mod(dice >> 10, 1024) / 1024.0, 2)) AS waits,
               CASE WHEN place = 4 AND mod(dice >> 45, 100) < 45 THEN least(90, 0.01 * span_s)
                    ELSE least(span_s * (0.01 + 0.05 * mod(dice >> 30, 1024) / 1024.0), 130000) END AS runs
          FROM (SELECT s.n, s.k, s.try, s.made_at, d.dice, m.is_over, m.status, m.sure, m.failing, m.span_s,
                       floor(%(places)s * power(mod(d.dice, 1024) / 1024.0, 1.7))::int AS place,
                       CASE WHEN m.is_over THEN m.changed ELSE %(now)s END AS stop
                  FROM ({source}) s (n, k, try, made_at) JOIN made m USING (n)
                 CROSS JOIN LATERAL (
                       SELECT hashint8extended((m.n::bigint << 24) + s.k * 4 + s.try, 1) & 9223372036854775807 AS dice) d
               ) x
         WHERE made_at < stop) y
"""
EACH_TRY: Final = (
    _TRY.format(source=_BEGINNING),
    _TRY.format(source=_AGAIN.format(before=1)),
    _TRY.format(source=_AGAIN.format(before=2)),
)

# A job's state follows from its times; jobs get their ids in the order in which they were made.
JOBS: Final = (
    """
CREATE TEMP TABLE made_jobs ON COMMIT DROP AS
SELECT nextval('jobs_pandaid_seq') AS job, x.* FROM (
       SELECT t.n, k, try, dice, t.created, place, hole,
              CASE WHEN s.status IN ('closed', 'activated', 'throttled', 'assigned', 'defined', 'pending')
                     OR t.started >= t.stop THEN NULL ELSE t.started END AS started,
              CASE WHEN s.status IN ('finished', 'failed', 'closed', 'cancelled') THEN least(t.ended, t.stop) END AS ended,
              s.status, s.status IN ('finished', 'failed', 'closed', 'cancelled') AS is_final,
              CASE WHEN s.status IN ('finished', 'failed', 'closed', 'cancelled') THEN least(t.ended, t.stop)
                   WHEN s.status IN ('running', 'starting') THEN t.started WHEN s.status = 'sent'
                   THEN t.started - least(interval '3 s', 0.2 * (t.started - t.created))
                   WHEN s.status IN ('holding', 'transferring') THEN t.ended
                   ELSE least(t.created + interval '15 s', %(now)s) END AS changed
         FROM made_tries t JOIN made m USING (n) CROSS JOIN LATERAL (
              SELECT CASE WHEN m.status = 'aborted' AND t.ended >= t.stop THEN 'cancelled'
                          WHEN m.is_over OR t.ended < t.stop - interval '12 minutes' OR (t.ended < t.stop AND t.fails)
                          THEN CASE WHEN NOT t.fails THEN 'finished' WHEN mod(t.dice >> 40, 25) = 0 AND NOT hole THEN 'closed'
                                    ELSE 'failed' END
                          WHEN t.ended < t.stop - interval '2 minutes' THEN 'transferring' WHEN t.ended < t.stop THEN 'holding'
                          WHEN t.started < t.stop - interval '1 minute' THEN 'running'
                          WHEN t.started < t.stop - interval '10 s' THEN 'starting' WHEN t.started < t.stop THEN 'sent'
                          ELSE (ARRAY['throttled', 'throttled', 'assigned', 'assigned', 'defined', 'pending'])
                               [mod(t.dice >> 40, 60) + 1] END AS status) c
        CROSS JOIN LATERAL (SELECT coalesce(c.status, 'activated') AS status) s
        ORDER BY t.created, t.n, t.k, t.try) x""",
    "CREATE INDEX ON made_jobs (n, k)",
    "ANALYZE made_jobs",
)
_COLUMNS = """pandaid, jeditaskid, jobname, jobstatus, jobsubstatus, creationtime, modificationtime, statechangetime, starttime,
       endtime, heartbeat_at, transformation, processingtype, prodsourcelabel, produsername, vo, computingsite, computingelement,
       nucleus, modificationhost, reqid, jobsetid, assignedpriority, currentpriority, gshare, workqueue_id, resource_type,
       corecount, actualcorecount, minramcount, maxwalltime, maxdiskcount, attemptnr, maxattempt, failedattempt, ninputdatafiles,
       inputfilebytes, noutputdatafiles, outputfilebytes, nevents, cpuconsumptiontime, maxrss, avgrss, maxpss, avgpss, pilotid,
       batchid, workerid, pilottiming, piloterrorcode, piloterrordiag, exeerrorcode, exeerrordiag, transexitcode, ddmerrorcode,
       ddmerrordiag, jobdispatchererrorcode, jobdispatchererrordiag, taskbuffererrorcode, taskbuffererrordiag, superrorcode,
       superrordiag, fence, secret_hash"""
_ROWS = f"""
INSERT INTO {{table}} ({_COLUMNS})
SELECT job, task, name, status, substatus, created, changed, changed, started, ended,
       CASE WHEN started IS NOT NULL THEN coalesce(ended, %(now)s - mod(dice >> 7, 1500) * interval '1 second') END,
       'run_command', processingtype, label, username, 'atlas', queue,
       CASE WHEN started IS NOT NULL THEN 'ce01.' || lower(place) END,
       nucleus, node, task, task, priority, priority + 10 - try * 10, gshare, workqueue, resource_type, cores,
       CASE WHEN started IS NOT NULL THEN cores END, ram_mb * cores, 172800, 20000, try, 3, try - 1, inputs,
       inputs * 1000000000::bigint, CASE WHEN status = 'finished' THEN 1 END,
       CASE WHEN status = 'finished' THEN inputs * 350000000::bigint END, CASE WHEN status = 'finished' THEN inputs * 1000 END,
       (runs * cores * (0.45 + 0.5 * luck))::bigint, (used * ram_mb * cores)::bigint, (0.8 * used * ram_mb * cores)::bigint,
       (0.9 * used * ram_mb * cores)::bigint, (0.7 * used * ram_mb * cores)::bigint,
       CASE WHEN started IS NOT NULL THEN pilot END, CASE WHEN started IS NOT NULL THEN (job * 7)::text END,
       CASE WHEN started IS NOT NULL THEN job::text END,
       CASE WHEN status = 'finished' THEN mod(dice >> 9, 90) || '|' || round(runs * 0.1) || '|' || round(runs * 0.8) || '|'
                                          || round(runs * 0.08) || '|' || mod(dice >> 11, 20) END,
       e_pilot, CASE WHEN e_pilot IS NOT NULL THEN diag END, e_exe, CASE WHEN e_exe IS NOT NULL THEN diag END, e_trans,
       e_ddm, CASE WHEN e_ddm IS NOT NULL THEN diag END, e_dispatcher, CASE WHEN e_dispatcher IS NOT NULL THEN diag END,
       e_server, CASE WHEN e_server IS NOT NULL THEN diag END, e_supervisor, CASE WHEN e_supervisor IS NOT NULL THEN diag END,
       CASE WHEN started IS NULL THEN 0 ELSE 1 END, CASE WHEN started IS NOT NULL THEN sha256(job::text::bytea) END
  FROM made_rows WHERE {{which}} ORDER BY job
"""
ROWS: Final = (
    """
CREATE TEMP TABLE made_rows ON COMMIT DROP AS
SELECT j.job, m.task, t.taskname || '.' || lpad(j.k::text, 6, '0') AS name, j.status, j.try, j.dice, j.created, j.changed,
       j.started, j.ended, j.is_final, m.is_over, t.processingtype, t.prodsourcelabel AS label, t.username, p.queue, p.place,
       t.nucleus, CASE WHEN j.started IS NOT NULL THEN h.node END AS node, m.priority, m.gshare, m.workqueue, t.resource_type,
       m.cores, m.ram_mb,
       (j.k::bigint * m.files / m.units - (j.k - 1)::bigint * m.files / m.units)::int AS inputs,
       CASE WHEN j.started IS NOT NULL THEN extract(epoch FROM coalesce(j.ended, %(now)s) - j.started) END AS runs,
       mod(j.dice >> 13, 1024) / 1024.0 AS luck,
       CASE WHEN j.started IS NOT NULL THEN 1024 * (0.35 + 0.6 * mod(j.dice >> 17, 1024) / 1024.0) END AS used,
       'https://logs.example/' || j.job || '.out|Condor|PR|'
       || (%(pilots)s::text[])[1 + mod(j.dice >> 21, %(n_pilots)s)] AS pilot,
       CASE WHEN j.status = 'closed' THEN 'toreassign' WHEN j.status = 'running' AND mod(j.dice >> 6, 9) = 0 THEN 'stagein'
            WHEN j.status = 'cancelled' THEN 'killed' END AS substatus,
       e.pilot AS e_pilot, e.exe AS e_exe, e.trans AS e_trans, e.ddm AS e_ddm,
       e.dispatcher AS e_dispatcher, CASE WHEN j.status = 'cancelled' THEN 100 ELSE e.server END AS e_server,
       e.supervisor AS e_supervisor,
       CASE WHEN j.status = 'cancelled' THEN 'killed by ' || t.username ELSE replace(replace(replace(replace(e.says,
            '{n}', mod(j.dice >> 5, 99991)::text), '{id}', to_hex(mod(j.dice >> 8, 16777216))), '{site}', p.queue),
            '{node}', h.node) END AS diag
  FROM made_jobs j JOIN made m USING (n) JOIN jedi_tasks t ON t.jeditaskid = m.task JOIN made_places p ON p.nr = j.place
 CROSS JOIN LATERAL (SELECT 'wn' || lpad(CASE WHEN j.hole THEN 7 ELSE 10 + mod(j.dice >> 35, 60) END::text, 3, '0') || '.'
                            || lower(replace(p.place, '_', '-')) || '.example' AS node) h
  LEFT JOIN made_mishaps e ON j.status = 'failed' AND mod(j.dice >> 25, 1000) >= e.low AND mod(j.dice >> 25, 1000) < e.high
   AND e.place = CASE WHEN j.hole THEN 'hole' WHEN j.place %% 17 = 3 AND mod(j.dice >> 33, 2) = 0 THEN 'storage'
                      WHEN j.ended > %(now)s - interval '4 hours' AND mod(j.dice >> 33, 8) = 0 THEN 'new' ELSE '' END""",
    _ROWS.format(table="jobs", which="NOT (is_over AND is_final AND changed < %(archived)s)"),
    _ROWS.format(table="jobs_archive", which="is_over AND is_final AND changed < %(archived)s"),
    """
INSERT INTO job_output_report (pandaid, jeditaskid, attemptnr, jobstatus, data, timestamp)
SELECT job, task, try, 'finished', '{}', changed FROM made_rows WHERE status = 'holding'""",
    # What assigned jobs wait to read comes from the nucleus, and what transferring ones have made goes there: a file a job.
    """
INSERT INTO transfer_rules (kind, destination, activity, jeditaskid, pandaid, username, status, files, files_done, files_failed,
                            bytes, bytes_done, dataset, error, is_settled, created)
SELECT CASE status WHEN 'assigned' THEN 'copy' ELSE 'gather' END,
       CASE status WHEN 'assigned' THEN place ELSE coalesce(nucleus, place) END || '_DATADISK',
       CASE status WHEN 'assigned' THEN 'Production Input' ELSE 'Production Output' END, task, job, username, 'queued', 1, 0, 0,
       1000000000, 0, '', '', false, changed
  FROM made_rows WHERE status IN ('assigned', 'transferring') ORDER BY job""",
    """
INSERT INTO transfer_requests (rule_id, scope, lfn, bytes, adler32, source, destination, url, status, attempt, bytes_copied,
                               created, lockedby, has_part, error)
SELECT t.id, 'made', t.pandaid || '.root', t.bytes, lpad(to_hex(t.pandaid), 8, '0'),
       CASE t.kind WHEN 'copy' THEN coalesce(r.nucleus, r.place) ELSE r.place END || '_DATADISK', t.destination, '', t.status, 0,
       0, t.created, '', false, ''
  FROM made_rows r JOIN transfer_rules t ON t.pandaid = r.job WHERE r.status IN ('assigned', 'transferring') ORDER BY t.id""",
    # Every job has the line of its state; those of every fourth task have all lines.
    """
INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor, reason)
SELECT r.job, v.status, v.at, r.queue, v.by, v.reason
  FROM made_rows r CROSS JOIN LATERAL (VALUES
       (false, 'defined', r.created, 'job_generator', ''),
       (false, 'activated', r.created + least(interval '15 s', 0.3 * (coalesce(r.started, r.changed) - r.created)),
        'job_generator', ''),
       (false, 'sent', r.started - least(interval '3 s', 0.2 * (r.started - r.created)), 'pilot', ''),
       (false, 'running', r.started, 'pilot', ''),
       (false, 'holding', CASE WHEN r.status IN ('finished', 'failed', 'transferring')
                               THEN coalesce(r.ended, r.changed) - interval '1 s' END, 'pilot', ''),
       (true, r.status, r.changed, CASE WHEN r.status IN ('finished', 'failed') THEN 'adder' ELSE 'pilot' END,
        CASE WHEN r.status = 'failed' THEN coalesce(r.diag, '') WHEN r.status = 'closed' THEN 'brokered again' ELSE '' END)
       ) v (last, status, at, by, reason)
 WHERE v.last
    OR (r.task %% 4 = 0 AND v.status <> r.status AND v.at < r.changed AND r.status <> 'pending'
        AND NOT (r.status IN ('assigned', 'throttled', 'defined') AND v.status = 'activated')
        AND NOT (v.status IN ('running', 'holding') AND v.at < r.started))
 ORDER BY v.at""",
    "INSERT INTO job_params (pandaid, jobparameters) SELECT job, '--in=IN.' || job FROM made_rows WHERE task %% 4 = 0",
    """
INSERT INTO jedi_job_retry_history (jeditaskid, oldpandaid, newpandaid, ins_utc_tstamp, relationtype, originpandaid)
SELECT m.task, o.job, j.job, j.created, 'retry', f.job
  FROM made_jobs j JOIN made m USING (n) JOIN made_jobs o ON o.n = j.n AND o.k = j.k AND o.try = j.try - 1
  JOIN made_jobs f ON f.n = j.n AND f.k = j.k AND f.try = 1 WHERE j.try > 1""",
)

COUNTS: Final = """
SELECT (SELECT count(*) FROM made), (SELECT count(*) FROM made_files), count(*), count(*) FILTER (WHERE NOT is_final)
  FROM made_jobs
"""
