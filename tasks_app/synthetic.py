"""Tasks, datasets, files and jobs that were made up, in any number, by a few statements. Their books balance.

Of ten tasks four run, and one each is ready, pending, assigning, exhausted, done and finished. Jobs of tasks that run are
finished, running, transferring and activated; the last job of finished and exhausted tasks has failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import transaction

from jedisite.sql import hot_cursor, texts

ME = "make_grid"


@dataclass(frozen=True, slots=True)
class Size:
    """How much is made. About seven of ten tasks have jobs; files are divided evenly over tasks."""

    tasks: int
    jobs: int
    files: int


_TASKS = """
CREATE TEMP TABLE made ON COMMIT DROP AS
SELECT n, nextval('jedi_tasks_id_seq') AS task, nextval(pg_get_serial_sequence('jedi_datasets', 'datasetid')) AS dataset,
       nextval(pg_get_serial_sequence('jedi_datasets', 'datasetid')) AS output, s.status, s.dataset_status,
       %(files)s::int AS files, least(%(jobs)s::int, (%(files)s * s.part)::int) AS jobs, (%(files)s * s.part)::int AS given
  FROM generate_series(0, %(tasks)s - 1) n
  JOIN (VALUES (0, 'running', 'ready', 0.6), (1, 'running', 'ready', 0.6), (2, 'running', 'ready', 0.8),
               (3, 'running', 'ready', 0.4), (4, 'ready', 'ready', 0), (5, 'pending', 'ready', 0), (6, 'assigning', 'ready', 0),
               (7, 'exhausted', 'ready', 0.5), (8, 'done', 'done', 1), (9, 'finished', 'finished', 1))
    AS s (k, status, dataset_status, part) ON s.k = n %% 10
"""
_STATEMENTS = (
    """
INSERT INTO jedi_tasks (jeditaskid, taskname, status, username, creationdate, modificationtime, statechangetime, starttime,
       endtime, prodsourcelabel, vo, tasktype, processingtype, taskpriority, currentpriority, corecount, ramcount, ramunit,
       architecture, transhome, transuses, gshare, reqid, parent_tid, errordialog, attemptnr, lockedby, splitrule, transpath,
       iointensity, diskio, nucleus, cputime, cputimeunit)
SELECT task, 'group.synthetic.' || task, status, 'user' || n %% 200, %(now)s - n * interval '1 second', %(now)s, %(now)s, %(now)s,
       CASE WHEN status IN ('done', 'finished') THEN %(now)s END, CASE WHEN n %% 3 = 0 THEN 'user' ELSE 'managed' END, 'atlas',
       CASE WHEN n %% 3 = 0 THEN 'anal' ELSE 'prod' END, (ARRAY['simul', 'evgen', 'reco', 'deriv'])[1 + n %% 4], 500,
       100 + n %% 800, CASE WHEN n %% 2 = 0 THEN 1 ELSE 8 END, 1000 + n %% 1000, 'MBPerCore', 'x86_64-el9-gcc13-opt',
       'Athena-24.0.5', 'Atlas-24.0.5', (%(shares)s::text[])[1 + n %% cardinality(%(shares)s::text[])], task, task,
       CASE WHEN status IN ('pending', 'exhausted') THEN 'made up by make_grid' END, 0, NULL, 'NF=5,OI', 'run_command',
       n %% 400, n %% 2000, (%(nuclei)s::text[])[1 + n %% greatest(cardinality(%(nuclei)s::text[]), 1)],
       10000, 'HS06sPerEvent'
  FROM made""",
    """
INSERT INTO tasks_statuslog (jeditaskid, oldstatus, status, actor, reason)
SELECT task, status, status, 'make_grid', 'made up' FROM made""",
    """
INSERT INTO jedi_taskparams (jeditaskid, taskparams)
SELECT task, jsonb_build_object('taskName', 'group.synthetic.' || task, 'nFilesPerJob', 5) FROM made""",
    """INSERT INTO jedi_jobparams_template (taskid, jobparamstemplate) SELECT task, '--in=${IN}' FROM made""",
    """
INSERT INTO jedi_datasets (jeditaskid, datasetid, datasetname, type, status, state, nfiles, nfilestobeused, nfilesused,
       nfilesfinished, nfilesfailed, streamname, list_position, vo)
SELECT task, dataset, 'synthetic.in.' || task, 'input', dataset_status, 'closed', 0, 0, 0, 0, 0, 'IN', 1, 'atlas' FROM made
UNION ALL
SELECT task, output, 'synthetic.out.' || task, 'output',
       CASE WHEN dataset_status = 'ready' THEN 'defined' ELSE dataset_status END,
       'open', 0, 0, 0, 0, 0, 'OUT', 2, 'atlas' FROM made""",
    """
CREATE TEMP TABLE made_jobs ON COMMIT DROP AS
SELECT m.n, m.task, m.dataset, m.given, m.jobs, k, nextval('jobs_pandaid_seq') AS job,
       CASE WHEN m.status IN ('finished', 'exhausted') AND k = m.jobs AND k > 1 THEN 'failed'
            WHEN m.status <> 'running' OR k <= m.jobs * 0.5 THEN 'finished' WHEN k <= m.jobs * 0.7 THEN 'running'
            WHEN k <= m.jobs * 0.75 THEN 'transferring' ELSE 'activated' END AS status
  FROM made m, generate_series(1, m.jobs) k""",
    "ANALYZE made_jobs",
    """
INSERT INTO jobs (pandaid, jeditaskid, jobname, jobstatus, creationtime, modificationtime, statechangetime, starttime, endtime,
       heartbeat_at, transformation, processingtype, prodsourcelabel, produsername, vo, computingsite, nucleus, reqid, jobsetid,
       assignedpriority, currentpriority, gshare, resource_type, corecount, minramcount, attemptnr, maxattempt, failedattempt,
       ninputdatafiles, fence, secret_hash)
SELECT j.job, j.task, t.taskname || '.' || j.k, j.status, %(now)s, %(now)s, %(now)s,
       CASE WHEN j.status <> 'activated' THEN %(now)s - j.k %% 20000 * interval '1 second' END,
       CASE WHEN j.status IN ('finished', 'failed') THEN %(now)s END, CASE WHEN j.status <> 'activated' THEN %(now)s END,
       'run_command', t.processingtype, t.prodsourcelabel, t.username, 'atlas',
       (%(queues)s::text[])[1 + (j.n + j.k * 7) %% cardinality(%(queues)s::text[])], t.nucleus, t.jeditaskid, t.jeditaskid,
       t.taskpriority, t.currentpriority, t.gshare, CASE WHEN t.corecount = 1 THEN 'SCORE' ELSE 'MCORE' END, t.corecount,
       t.ramcount * t.corecount, 1, 3, CASE WHEN j.status = 'failed' THEN 1 ELSE 0 END, greatest(j.given / j.jobs, 1),
       CASE WHEN j.status = 'activated' THEN 0 ELSE 1 END,
       CASE WHEN j.status <> 'activated' THEN sha256(j.job::text::bytea) END
  FROM made_jobs j JOIN jedi_tasks t ON t.jeditaskid = j.task""",
    """
INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor)
SELECT j.job, j.status, %(now)s, (%(queues)s::text[])[1 + (j.n + j.k * 7) %% cardinality(%(queues)s::text[])], 'make_grid'
  FROM made_jobs j""",
    "INSERT INTO job_params (pandaid, jobparameters) SELECT job, '--in=x' FROM made_jobs",
    """
INSERT INTO jedi_dataset_contents (jeditaskid, datasetid, creationdate, lfn, guid, type, status, fsize, checksum, scope,
       attemptnr, maxattempt, failedattempt, maxfailure, nevents, keeptrack, ramcount, pandaid)
SELECT m.task, m.dataset, %(now)s, 'synthetic.' || m.task || '._' || lpad(f::text, 7, '0') || '.root',
       md5(m.task || '.' || f)::uuid::text,
       'input', CASE WHEN j.status = 'finished' THEN 'finished' WHEN j.status IS NULL OR j.status = 'failed' THEN 'ready'
                     ELSE 'running' END,
       1000000000 + f, 'ad:' || lpad(to_hex(f), 8, '0'), 'synthetic', CASE WHEN j.status IS NULL THEN 0 WHEN j.status = 'failed'
       THEN 3 ELSE 1 END, 3, CASE WHEN j.status = 'failed' THEN 3 ELSE 0 END, 3, 10000, 1, 0, j.job
  FROM made m CROSS JOIN generate_series(1, m.files) f
  LEFT JOIN made_jobs j ON j.task = m.task AND f <= m.given AND j.k = (f - 1) * m.jobs::bigint / nullif(m.given, 0) + 1
 ORDER BY m.n, f""",
    """
INSERT INTO job_files (pandaid, jeditaskid, datasetid, fileid, lfn, type, scope, dataset, guid, fsize, checksum, status,
       attemptnr)
SELECT c.pandaid, c.jeditaskid, c.datasetid, c.fileid, c.lfn, 'input', c.scope, 'synthetic.in.' || c.jeditaskid, c.guid, c.fsize,
       c.checksum, 'ready', 1
  FROM made m JOIN jedi_dataset_contents c ON c.jeditaskid = m.task AND c.datasetid = m.dataset AND c.pandaid IS NOT NULL""",
    """
UPDATE jedi_datasets d
   SET nfiles = r.files, nfilestobeused = r.files, nfilesused = r.used, nfilesfinished = r.finished, nfilesfailed = r.failed,
       pick_cursor = r.last
  FROM (SELECT c.datasetid, count(*) AS files, count(c.pandaid) AS used,
               count(*) FILTER (WHERE c.status = 'finished') AS finished,
               count(*) FILTER (WHERE c.status = 'ready' AND c.pandaid IS NOT NULL) AS failed,
               coalesce(max(c.fileid) FILTER (WHERE c.pandaid IS NOT NULL), 0) AS last
          FROM made m JOIN jedi_dataset_contents c ON c.jeditaskid = m.task AND c.datasetid = m.dataset GROUP BY 1) r
 WHERE d.datasetid = r.datasetid""",
    """
INSERT INTO dataset_replica_lookups (datasetname, nfiles, bytes, ts)
SELECT 'synthetic.in.' || task, files, files * 1000000000::bigint, %(now)s FROM made""",
    """
INSERT INTO dataset_replicas (datasetname, endpoint, nfiles, bytes, complete, ts)
SELECT 'synthetic.in.' || m.task, (%(endpoints)s::text[])[1 + (m.n * 13 + c * 31) %% cardinality(%(endpoints)s::text[])],
       m.files, m.files * 1000000000::bigint, true, %(now)s
  FROM made m, generate_series(0, m.n %% 3) c ON CONFLICT DO NOTHING""",
)


def make_tasks(
    size: Size, queues: Sequence[str], *, shares: Sequence[str], nuclei: Sequence[str], endpoints: Sequence[str], now: Any
) -> dict[str, int]:
    """Make tasks with their files and jobs in one transaction. Returns the rows that there are now of each kind."""
    with_jobs = size.tasks * 7 / 10
    values = {
        "tasks": size.tasks, "files": max(1, round(size.files / size.tasks)), "jobs": max(1, round(size.jobs / with_jobs)),
        "queues": texts(queues), "shares": texts(shares), "nuclei": texts(nuclei), "endpoints": texts(endpoints), "now": now,
    }  # fmt: skip
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '256MB'")
        cursor.execute(_TASKS, values)
        cursor.execute("ANALYZE made")
        for statement in _STATEMENTS:
            cursor.execute(statement, values if "%(" in statement else None)
        counts = _counts(cursor)
    with hot_cursor() as cursor:
        for table in ("jedi_tasks", "jedi_datasets", "jedi_dataset_contents", "jobs", "job_files", "dataset_replicas"):
            cursor.execute(f"ANALYZE {table}")
    return counts


def _counts(cursor: psycopg.Cursor[Any]) -> dict[str, int]:
    cursor.execute("SELECT count(*), sum(files) FROM made")
    ((tasks, files),) = cursor.fetchall()
    cursor.execute("SELECT count(*), count(*) FILTER (WHERE status NOT IN ('finished', 'failed')) FROM made_jobs")
    ((jobs, open_jobs),) = cursor.fetchall()
    return {"tasks": tasks, "files": int(files or 0), "jobs": jobs, "open jobs": open_jobs}
