"""The invariants of the flow as SQL: each is a name, a sentence, and a query that returns the rows which break it.

The queries only read. They hold at any moment, between any two transactions, with agents and pilots at work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import transaction
from django.db.backends.utils import CursorWrapper

from jedisite.database.sql import hot_cursor
from jedisite.vocabulary.words import plural
from tasks_app.audit import (
    extra_invariants,
    log_invariants,
    merging_invariants,
    staging_invariants,
    state_invariants,
    transfer_invariants,
)
from tasks_app.audit.log_invariants import STALE_AFTER
from tasks_app.domain.job_file_states import JobFileStatus
from tasks_app.domain.states import JOB_FINAL, TASK_FINAL


@dataclass(frozen=True, slots=True)
class Invariant:
    name: str
    sentence: str
    query: str


@dataclass(frozen=True, slots=True)
class Violation:
    """Rows that break one invariant: their number, and the first of them as columns and values."""

    invariant: Invariant
    count: int
    rows: list[dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.invariant.name}: {self.invariant.sentence} {plural(self.count, 'row does', 'rows do')} not: {self.rows}"


def _list(statuses: Iterable[str]) -> str:
    return ", ".join(f"'{status}'" for status in sorted(statuses))


_JOB_ENDS = _list(JOB_FINAL)
_TASK_ENDS = _list(TASK_FINAL)
_INPUTS = "'input', 'pseudo_input', 'random_seed'"
_JOBS = "(SELECT pandaid, jeditaskid, jobstatus FROM jobs UNION ALL SELECT pandaid, jeditaskid, jobstatus FROM jobs_archive)"
_SHARE_MAY_BE_OUT = """(d.masterid IS NULL AND EXISTS (
                    SELECT 1 FROM jedi_tasks s WHERE s.jeditaskid = d.jeditaskid AND s.splitrule ~ '(^|,)US=2(,|$)'))"""
_AT_WORK = "'assigning', 'ready', 'scouting', 'scouted', 'running', 'pending', 'throttled'"
_NO_ATTEMPT_LEFT = "(c.attemptnr >= c.maxattempt OR c.failedattempt >= c.maxfailure)"
_GONE = "('lost', 'missing')"
_NO_INPUT = "('lost', 'missing', 'removed')"
_NOT_YET = "('pending', 'staging')"
_COUNTS = f"f.status IS DISTINCT FROM '{JobFileStatus.AGAIN}'"
_OTHERS = (state_invariants, log_invariants, merging_invariants, staging_invariants, transfer_invariants)

# ruff: noqa: S608 - every piece is a constant of this module
INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "input_counters",
        "Counters of input datasets equal a recount of their files.",
        f"""
        SELECT d.jeditaskid, d.datasetid, d.nfiles, d.nfilestobeused, d.nfilesused, d.nfilesfinished, d.nfilesfailed,
               d.nfilesmissing, r.*
          FROM jedi_datasets d CROSS JOIN LATERAL (
               SELECT count(*) FILTER (WHERE c.status NOT IN {_NO_INPUT}) AS files,
                      count(*) FILTER (WHERE c.status NOT IN {_NO_INPUT} AND c.status NOT IN {_NOT_YET}) AS to_be_used,
                      count(*) FILTER (WHERE c.status IN {_GONE}) AS gone,
                      count(*) FILTER (WHERE c.status IN ('finished', 'partial')) AS finished,
                      count(*) FILTER (WHERE c.status = 'ready' AND c.keeptrack = 1 AND {_NO_ATTEMPT_LEFT}) AS failed,
                      count(*) FILTER (WHERE c.keeptrack = 1 AND c.status NOT IN {_NO_INPUT} AND c.status NOT IN {_NOT_YET}
                                         AND (c.status <> 'ready' OR {_NO_ATTEMPT_LEFT})) AS used
                 FROM jedi_dataset_contents c WHERE c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid) r
         WHERE d.type IN ({_INPUTS}, 'pp_input')
           AND (d.nfiles, CASE WHEN {_SHARE_MAY_BE_OUT} THEN r.to_be_used ELSE d.nfilestobeused END, d.nfilesused,
                d.nfilesfinished, d.nfilesfailed, d.nfilesmissing)
               IS DISTINCT FROM (r.files, r.to_be_used, r.used, r.finished, r.failed, r.gone)""",
    ),
    Invariant(
        "scouts_have_their_share",
        "A scouting task is marked in its split rule, and jobs of an active task use no more files than were released.",
        f"""
        SELECT d.jeditaskid, d.datasetid, t.status, t.splitrule, d.nfiles, d.nfilestobeused, d.nfilesused
          FROM jedi_datasets d JOIN jedi_tasks t USING (jeditaskid)
         WHERE t.status IN ({_AT_WORK}) AND d.type IN ({_INPUTS}) AND d.masterid IS NULL
           AND (t.status = 'scouted' OR d.nfilestobeused NOT BETWEEN d.nfilesused AND d.nfiles
                OR (t.status = 'scouting' AND NOT {_SHARE_MAY_BE_OUT}))""",
    ),
    Invariant(
        "output_counters",
        "Counters of output and log datasets equal a recount of their files; after the end, nfiles counts what was made.",
        """
        SELECT d.jeditaskid, d.datasetid, d.nfiles, d.nfilestobeused, d.nfilesused, d.nfilesfinished, d.nfilesfailed,
               r.files, r.finished, r.failed
          FROM jedi_datasets d CROSS JOIN LATERAL (
               SELECT count(*) AS files, count(*) FILTER (WHERE c.status = 'finished') AS finished,
                      count(*) FILTER (WHERE c.status IN ('failed', 'cancelled')) AS failed
                 FROM jedi_dataset_contents c WHERE c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid) r
         WHERE d.type IN ('output', 'log', 'lib', 'pp_log')
           AND ((d.nfilestobeused, d.nfilesused, d.nfilesfinished, d.nfilesfailed)
                IS DISTINCT FROM (r.files, r.files, r.finished, r.failed)
                OR d.nfiles NOT BETWEEN r.finished AND r.files
                OR (d.nfiles <> r.files AND EXISTS (SELECT 1 FROM jedi_tasks t WHERE t.jeditaskid = d.jeditaskid
                                                       AND t.status IN ('ready', 'running') AND t.attemptnr = 0)))""",
    ),
    Invariant(
        "running_file_has_job",
        "A file that is running names an open job.",
        f"""
        SELECT c.jeditaskid, c.datasetid, c.fileid, c.pandaid FROM jedi_dataset_contents c
         WHERE c.type IN ({_INPUTS}) AND c.status = 'running'
           AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.pandaid = c.pandaid AND j.jobstatus NOT IN ({_JOB_ENDS}))""",
    ),
    Invariant(
        "file_in_one_open_job",
        "No file that is used once is an input of two open jobs.",
        f"""
        SELECT f.jeditaskid, f.datasetid, f.fileid, array_agg(f.pandaid ORDER BY f.pandaid) AS jobs
          FROM job_files f JOIN jobs j ON j.pandaid = f.pandaid AND j.jobstatus NOT IN ({_JOB_ENDS})
          JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
         WHERE f.type IN ({_INPUTS}) AND c.keeptrack = 1 AND {_COUNTS} GROUP BY 1, 2, 3 HAVING count(*) > 1""",
    ),
    Invariant(
        "finished_file_has_job",
        "Every finished input names the finished job that processed it.",
        f"""
        SELECT c.jeditaskid, c.datasetid, c.fileid, c.pandaid FROM jedi_dataset_contents c
         WHERE c.type IN ({_INPUTS}) AND c.status IN ('finished', 'partial')
           AND NOT EXISTS (SELECT 1 FROM {_JOBS} j WHERE j.pandaid = c.pandaid AND j.jobstatus = 'finished')""",
    ),
    Invariant(
        "file_processed_once",
        "No file that is used once is an input of two finished jobs whose outputs are there, but of single events.",
        f"""
        SELECT f.jeditaskid, f.datasetid, f.fileid, array_agg(f.pandaid ORDER BY f.pandaid) AS jobs
          FROM job_files f JOIN {_JOBS} j ON j.pandaid = f.pandaid AND j.jobstatus = 'finished'
          JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
         WHERE f.type IN ('input', 'pseudo_input') AND c.keeptrack = 1 AND {_COUNTS}
           AND NOT EXISTS (SELECT FROM jedi_tasks t WHERE t.jeditaskid = f.jeditaskid AND t.eventservice = 3)
         GROUP BY 1, 2, 3 HAVING count(*) > 1""",
    ),
    Invariant(
        "attempts_in_bounds",
        "No file has more attempts than its limit, or fewer than ended jobs that tried it.",
        f"""
        SELECT c.jeditaskid, c.datasetid, c.fileid, c.attemptnr, c.maxattempt, count(j.pandaid) AS ended
          FROM jedi_dataset_contents c
          LEFT JOIN job_files f ON f.fileid = c.fileid AND f.jeditaskid = c.jeditaskid AND f.datasetid = c.datasetid AND {_COUNTS}
          LEFT JOIN {_JOBS} j ON j.pandaid = f.pandaid AND j.jobstatus IN ({_JOB_ENDS})
         WHERE c.type IN ({_INPUTS}) AND c.keeptrack = 1
         GROUP BY 1, 2, 3, 4, 5 HAVING c.attemptnr > c.maxattempt OR c.attemptnr < count(j.pandaid)""",
    ),
    Invariant(
        "retry_is_ready",
        "A file that waits for a retry is ready and has an attempt left.",
        f"""
        SELECT r.jeditaskid, r.datasetid, r.fileid, c.status, c.attemptnr, c.maxattempt FROM file_retries r
          LEFT JOIN jedi_dataset_contents c ON c.jeditaskid = r.jeditaskid AND c.datasetid = r.datasetid AND c.fileid = r.fileid
         WHERE c.fileid IS NULL OR c.status <> 'ready' OR c.keeptrack <> 1 OR {_NO_ATTEMPT_LEFT}""",
    ),
    Invariant(
        "retry_is_behind_cursor",
        "A file that waits for a retry is not ahead of the cursor: it would be picked twice.",
        """
        SELECT r.jeditaskid, r.datasetid, r.fileid, d.pick_cursor FROM file_retries r
          JOIN jedi_datasets d ON d.datasetid = r.datasetid
         WHERE d.type IN ('input', 'pseudo_input') AND d.pick_cursor > 0 AND r.fileid > d.pick_cursor""",
    ),
    Invariant(
        "ranges_do_not_overlap",
        "No event of a primary input is in two ranges.",
        """
        SELECT * FROM (
            SELECT c.jeditaskid, c.datasetid, c.lfn, c.startevent,
                   lag(c.endevent) OVER (PARTITION BY c.jeditaskid, c.datasetid, c.lfn ORDER BY c.startevent, c.fileid) AS before
              FROM jedi_dataset_contents c JOIN jedi_datasets d ON d.datasetid = c.datasetid AND d.masterid IS NULL
             WHERE c.type = 'input' AND c.startevent IS NOT NULL) r
         WHERE startevent <= before""",
    ),
    Invariant(
        "no_file_forgotten",
        "A ready file that was picked before waits for a retry, unless its task has ended.",
        f"""
        SELECT c.jeditaskid, c.datasetid, c.fileid FROM jedi_datasets d
          JOIN jedi_tasks t ON t.jeditaskid = d.jeditaskid AND t.status NOT IN ({_TASK_ENDS})
          JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid
         WHERE d.type IN ('input', 'pseudo_input', 'pp_input') AND d.status IS DISTINCT FROM 'removed'
           AND c.fileid <= d.pick_cursor AND c.status = 'ready' AND c.keeptrack = 1
           AND NOT coalesce({_NO_ATTEMPT_LEFT}, false)
           AND NOT EXISTS (SELECT 1 FROM file_retries r WHERE r.fileid = c.fileid)""",
    ),
    Invariant(
        "pending_means_growing",
        "A file is pending only while its dataset may still grow, and no pending file is ahead of the cursor, but from tape.",
        """
        SELECT c.jeditaskid, c.datasetid, c.fileid, d.state, d.status, d.pick_cursor FROM jedi_datasets d
          JOIN jedi_tasks t USING (jeditaskid)
          JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid AND c.status = 'pending'
         WHERE (c.fileid <= d.pick_cursor AND coalesce(t.splitrule, '') !~ '(^|,)IS=1(,|$)')
            OR (d.state <> 'mutable' AND d.status NOT IN ('defined', 'toupdate', 'removed'))""",
    ),
    Invariant(
        "ended_job_has_end",
        "A job that has ended has an end time and no command for its pilot.",
        f"""
        SELECT pandaid, jobstatus, endtime, commandtopilot FROM jobs
         WHERE jobstatus IN ({_JOB_ENDS}) AND (endtime IS NULL OR commandtopilot IS NOT NULL)""",
    ),
    Invariant(
        "report_of_holding_job",
        "A job is holding exactly while its final report waits for the adder; a merging job may wait for its merge, "
        "and a line of its jobset may end any consumer of events.",
        r"""
        SELECT j.pandaid, j.jobstatus, r.pandaid AS report FROM jobs j FULL JOIN job_output_report r ON r.pandaid = j.pandaid
         WHERE (r.pandaid IS NULL AND j.jobstatus = 'holding')
            OR (r.pandaid IS NOT NULL AND j.jobstatus IS DISTINCT FROM
                CASE WHEN r.jobstatus IN ('merged', 'notmerged') THEN 'merging' WHEN r.jobstatus LIKE 'es\_%' THEN j.jobstatus
                     WHEN EXISTS (SELECT 1 FROM transfer_rules g WHERE g.pandaid = j.pandaid AND g.kind = 'gather')
                     THEN 'transferring' ELSE 'holding' END)""",
    ),
    Invariant(
        "job_at_pilot_is_proved",
        "A job has been handed out if and only if it has left the queue; a job that was not handed out has no secret.",
        """
        SELECT pandaid, jobstatus, fence FROM jobs
         WHERE (jobstatus IN ('sent', 'starting', 'running', 'holding', 'transferring', 'merging', 'finished')
                AND (fence < 1 OR heartbeat_at IS NULL))
            OR (jobstatus IN ('assigned', 'activated', 'throttled', 'defined') AND (fence > 0 OR secret_hash IS NOT NULL))""",
    ),
    Invariant(
        "ended_task_has_no_open_job",
        "A task that has ended has an end time, and no open job, no claim and no file to be tried again.",
        f"""
        SELECT t.jeditaskid, t.status, t.lockedby, t.endtime, j.pandaid FROM jedi_tasks t
          LEFT JOIN jobs j ON j.jeditaskid = t.jeditaskid AND j.jobstatus NOT IN ({_JOB_ENDS})
         WHERE t.status IN ({_TASK_ENDS}) AND (j.pandaid IS NOT NULL OR t.lockedby IS NOT NULL OR t.endtime IS NULL
               OR EXISTS (SELECT 1 FROM file_retries r WHERE r.jeditaskid = t.jeditaskid))""",
    ),
    Invariant(
        "done_task_is_complete",
        "Every file of a done task's primary inputs is finished.",
        """
        SELECT t.jeditaskid, d.datasetid, d.nfiles, d.nfilesfinished FROM jedi_tasks t JOIN jedi_datasets d USING (jeditaskid)
         WHERE t.status = 'done' AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')
           AND d.status NOT IN ('removed', 'broken') AND d.nfilesfinished <> d.nfiles""",
    ),
    Invariant(
        "job_has_task",
        "Every open job belongs to a task, and every file of a job to a job.",
        f"""
        SELECT j.pandaid, j.jeditaskid FROM jobs j
         WHERE j.jobstatus NOT IN ({_JOB_ENDS}) AND j.jeditaskid IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM jedi_tasks t WHERE t.jeditaskid = j.jeditaskid)
        UNION ALL
        SELECT f.pandaid, f.jeditaskid FROM job_files f WHERE NOT EXISTS (SELECT 1 FROM {_JOBS} j WHERE j.pandaid = f.pandaid)""",
    ),
    Invariant(
        "outputs_of_finished_jobs",
        "Every output of a finished job is in the catalogue, unless it is lost, need not exist, or its dataset is gone.",
        """
        SELECT f.pandaid, f.type, f.lfn, f.status, c.status AS contents FROM job_files f
          JOIN jobs j ON j.pandaid = f.pandaid AND j.jobstatus = 'finished'
          LEFT JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
         WHERE f.type IN ('output', 'log') AND (c.status IS DISTINCT FROM f.status
                OR f.status NOT IN ('finished', 'lost', 'nooutput') OR (coalesce(j.eventservice, 0) = 0
                   AND f.status = 'nooutput' AND NOT EXISTS (
                   SELECT 1 FROM jedi_datasets o WHERE o.datasetid = f.datasetid AND f.type = 'output'
                      AND 'an' = ANY(string_to_array(o.attributes, ',')))) OR (f.status = 'finished')::int <>
                (SELECT count(*) FROM catalogue_files k JOIN catalogue_datasets d ON d.id = k.dataset_id
                  WHERE d.name = f.dataset AND k.lfn = f.lfn))
           AND EXISTS (SELECT 1 FROM catalogue_datasets d WHERE d.name = f.dataset)""",
    ),
    Invariant(
        "outputs_of_ended_jobs",
        "No output of a job that has ended is undecided, and none of an open job is decided.",
        f"""
        SELECT c.jeditaskid, c.fileid, c.pandaid, c.status, j.jobstatus FROM jedi_dataset_contents c
          LEFT JOIN {_JOBS} j ON j.pandaid = c.pandaid
         WHERE c.type IN ('output', 'log', 'lib')
           AND (c.status = 'defined') <> coalesce(j.jobstatus NOT IN ({_JOB_ENDS}, 'merging'), false)""",
    ),
    Invariant(
        "catalogue_has_producer",
        "Every file in a dataset that a task makes was stored by a job of that task.",
        """
        SELECT d.made_by_task, d.name, k.lfn FROM catalogue_files k JOIN catalogue_datasets d ON d.id = k.dataset_id
         WHERE d.made_by_task IS NOT NULL AND EXISTS (SELECT 1 FROM jedi_tasks t WHERE t.jeditaskid = d.made_by_task)
           AND NOT EXISTS (SELECT 1 FROM jedi_dataset_contents c JOIN jedi_datasets o USING (jeditaskid, datasetid)
                            WHERE o.datasetname = d.name AND c.lfn = k.lfn
                              AND CASE WHEN c.type IN ('trn_output', 'trn_log') THEN c.status <> 'defined'
                                       ELSE c.type IN ('output', 'log', 'lib') AND c.status = 'finished' END)""",
    ),
    Invariant(
        "output_name_once",
        "No two outputs of a dataset that exist, or may still come, have the same name, except attempts of a task's only job "
        "at an output without a serial number.",
        """
        SELECT jeditaskid, datasetid, lfn, count(*) AS files FROM jedi_dataset_contents
         WHERE type IN ('output', 'log', 'lib') AND status NOT IN ('failed', 'cancelled', 'lost')
         GROUP BY 1, 2, 3 HAVING count(*) > 1""",
    ),
    Invariant(
        "input_name_once",
        "No two primary inputs of a dataset have the same name, group and first event; secondary ones may be used again.",
        f"""
        SELECT c.jeditaskid, c.datasetid, c.lfn, c.boundaryid, c.startevent, count(*) AS files FROM jedi_dataset_contents c
          JOIN jedi_datasets d ON d.datasetid = c.datasetid AND d.masterid IS NULL
         WHERE c.type IN ({_INPUTS}) GROUP BY 1, 2, 3, 4, 5 HAVING count(*) > 1""",
    ),
    Invariant(
        "removed_file_has_no_job",
        "A file that was removed from the input of a task is read by no open job, unless any number of jobs may read it.",
        f"""
        SELECT c.jeditaskid, c.fileid, j.pandaid, j.jobstatus FROM jedi_dataset_contents c
          JOIN job_files f ON f.fileid = c.fileid JOIN jobs j ON j.pandaid = f.pandaid
         WHERE c.status = 'removed' AND c.keeptrack = 1 AND j.jobstatus NOT IN ({_JOB_ENDS})""",
    ),
    Invariant(
        "job_of_one_group",
        "A job of a task whose files are in groups reads files of one group only.",
        f"""
        SELECT t.jeditaskid, f.pandaid, count(DISTINCT c.boundaryid) AS groups FROM jedi_tasks t
          JOIN jedi_dataset_contents c ON c.jeditaskid = t.jeditaskid AND c.type IN ({_INPUTS}) AND c.boundaryid IS NOT NULL
          JOIN job_files f ON f.pandaid = c.pandaid AND f.fileid = c.fileid
         WHERE t.splitrule ~ '(^|,)GB=' GROUP BY 1, 2 HAVING count(DISTINCT c.boundaryid) > 1""",
    ),
    Invariant(
        "group_in_one_job",
        "Where a group of files is one job, no two jobs have files of it; each dataset has groups of its own.",
        f"""
        SELECT t.jeditaskid, c.datasetid, c.boundaryid, count(DISTINCT c.pandaid) AS jobs FROM jedi_tasks t
          JOIN jedi_dataset_contents c ON c.jeditaskid = t.jeditaskid AND c.type IN ({_INPUTS}) AND c.boundaryid IS NOT NULL
         WHERE t.splitrule ~ '(^|,)GB=[34](,|$)' AND c.status IN ('running', 'finished', 'partial')
         GROUP BY 1, 2, 3 HAVING count(DISTINCT c.pandaid) > 1""",
    ),
    Invariant(
        "waiting_job_has_build",
        "A job waits for a library only while the library is built, or until the end of the build is processed.",
        """
        SELECT j.pandaid, f.datasetid, f.fileid, c.status, d.status AS dataset FROM jobs j
          JOIN job_files f ON f.pandaid = j.pandaid AND f.type = 'lib' AND f.fileid IS NOT NULL
          LEFT JOIN jedi_datasets d ON d.datasetid = f.datasetid AND d.type = 'lib'
          LEFT JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
         WHERE j.jobstatus = 'defined' AND d.status IS DISTINCT FROM 'running'""",
    ),
    Invariant(
        "started_job_has_library",
        "A job that has been activated and has not failed has its library, and the library has a location.",
        f"""
        SELECT j.pandaid, j.jobstatus, f.lfn, f.status, c.status AS contents FROM job_files f
          JOIN {_JOBS} j ON j.pandaid = f.pandaid
           AND j.jobstatus NOT IN ('pending', 'defined', 'assigned', 'waiting', 'failed', 'cancelled', 'closed')
          LEFT JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
         WHERE f.type = 'lib' AND f.fileid IS NOT NULL
           AND (f.status <> 'ready' OR f.surl IS NULL OR c.status IS DISTINCT FROM 'finished')""",
    ),
    Invariant(
        "retry_history_goes_forward",
        "A job retries files of an older job, never of itself or of a newer job.",
        "SELECT jeditaskid, oldpandaid, newpandaid FROM jedi_job_retry_history WHERE newpandaid <= oldpandaid",
    ),
    Invariant(
        "no_stale_claim",
        f"No claim on a task is older than {STALE_AFTER}.",
        f"""
        SELECT jeditaskid, status, lockedby, lockedtime FROM jedi_tasks
         WHERE lockedby IS NOT NULL AND (lockedtime IS NULL OR lockedtime < clock_timestamp() - interval '{STALE_AFTER}')""",
    ),
    *(Invariant(*row) for rows in (*_OTHERS, *extra_invariants.modules()) for row in rows.ROWS),
)


def find(rows: int = 20) -> list[Violation]:
    """Check all invariants on one snapshot of the database. Returns those that do not hold, with up to `rows` rows each."""
    with transaction.atomic(durable=True), hot_cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return [violation for invariant in INVARIANTS if (violation := check(cursor, invariant, rows))]


def check(cursor: psycopg.Cursor[Any] | CursorWrapper, invariant: Invariant, rows: int = 20) -> Violation | None:
    """The rows that break one invariant, as the cursor's transaction sees them."""
    cursor.execute(invariant.query)
    names = [column[0] for column in cursor.description or ()]
    first = [dict(zip(names, row, strict=True)) for row in cursor.fetchmany(rows)]
    return Violation(invariant, cursor.rowcount, first) if first else None
