"""Invariants of merging inside a task, as (name, sentence, query): see `flow_invariants`."""

from __future__ import annotations

from tasks_app.domain.states import JOB_FINAL

_ENDS = ", ".join(f"'{status}'" for status in sorted(JOB_FINAL))
_UNMERGED = "'trn_output', 'trn_log'"

# ruff: noqa: S608 - every piece is a constant of this module
ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "unmerged_counters",
        "Counters of datasets of unmerged files equal a recount of their files.",
        f"""
        SELECT d.jeditaskid, d.datasetid, d.nfiles, d.nfilestobeused, d.nfilesused, d.nfilesfinished, d.nfilesfailed,
               r.files, r.used, r.finished, r.failed
          FROM jedi_datasets d CROSS JOIN LATERAL (
               SELECT count(*) AS files, count(*) FILTER (WHERE c.status <> 'ready') AS used,
                      count(*) FILTER (WHERE c.status = 'finished') AS finished,
                      count(*) FILTER (WHERE c.status IN ('failed', 'cancelled', 'notmerged')) AS failed
                 FROM jedi_dataset_contents c WHERE c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid) r
         WHERE d.type IN ({_UNMERGED})
           AND (d.nfiles, d.nfilestobeused, d.nfilesused, d.nfilesfinished, d.nfilesfailed)
               IS DISTINCT FROM (r.files, r.files, r.used, r.finished, r.failed)""",
    ),
    (
        "on_hold_counters",
        "Inputs on hold are those whose job waits for its merge.",
        """
        SELECT d.jeditaskid, d.datasetid, d.nfilesonhold, r.files
          FROM jedi_datasets d CROSS JOIN LATERAL (
               SELECT count(*) AS files FROM jedi_dataset_contents c
                 JOIN jobs j ON j.pandaid = c.pandaid AND j.jobstatus = 'merging'
                WHERE c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid AND c.status = 'running'
                  AND c.keeptrack = 1) r
         WHERE d.type IN ('input', 'pseudo_input', 'random_seed') AND d.nfilesonhold <> r.files""",
    ),
    (
        "merging_job_is_accounted",
        "An output of a job that waits for its merge is ready to be merged, read by an open merge job, or decided and reported.",
        f"""
        SELECT j.pandaid, c.fileid, c.status, c.pandaid AS merge_job FROM jobs j
          LEFT JOIN job_files f ON f.pandaid = j.pandaid AND f.type IN ({_UNMERGED})
          LEFT JOIN jedi_dataset_contents c
            ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
         WHERE j.jobstatus = 'merging' AND coalesce(j.eventservice, 0) = 0
           AND c.status IS DISTINCT FROM 'nooutput' AND NOT coalesce(CASE c.status
               WHEN 'ready' THEN EXISTS (SELECT 1 FROM file_retries r WHERE r.fileid = c.fileid)
               WHEN 'running' THEN EXISTS (SELECT 1 FROM jobs m WHERE m.pandaid = c.pandaid AND m.jobstatus NOT IN ({_ENDS})
                                              AND m.processingtype = 'pmerge')
               WHEN 'finished' THEN EXISTS (SELECT 1 FROM job_output_report r WHERE r.pandaid = j.pandaid
                                               AND r.jobstatus = 'merged')
               WHEN 'notmerged' THEN EXISTS (SELECT 1 FROM job_output_report r WHERE r.pandaid = j.pandaid
                                                AND r.jobstatus = 'notmerged') END, false)""",
    ),
    (
        "unmerged_file_has_job",
        "An unmerged file that is ready, or read by a merge job, belongs to a job that waits for its merge.",
        f"""
        SELECT c.jeditaskid, c.fileid, c.status, c.boundaryid, j.jobstatus FROM jedi_dataset_contents c
          LEFT JOIN jobs j ON j.pandaid = c.boundaryid
         WHERE c.type IN ({_UNMERGED}) AND c.status IN ('ready', 'running') AND j.jobstatus IS DISTINCT FROM 'merging'""",
    ),
    (
        "unmerged_file_is_decided",
        "No unmerged file of an ended job is undecided, and no unmerged file of an open job is decided.",
        f"""
        SELECT c.jeditaskid, c.fileid, c.status, c.outpandaid, j.jobstatus FROM jedi_dataset_contents c
          JOIN jobs j ON j.pandaid = c.outpandaid
         WHERE c.type IN ({_UNMERGED}) AND (c.status = 'defined') <> (j.jobstatus NOT IN ({_ENDS}, 'merging'))""",
    ),
    (
        "finished_job_is_merged",
        "Every unmerged file that a finished job has made was merged by a finished merge job.",
        f"""
        SELECT j.pandaid, c.fileid, c.status, c.pandaid AS merge_job, m.jobstatus FROM job_files f
          JOIN jobs j ON j.pandaid = f.pandaid AND j.jobstatus = 'finished'
          JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
          LEFT JOIN jobs m ON m.pandaid = c.pandaid
         WHERE f.type IN ({_UNMERGED}) AND c.status <> 'nooutput'
           AND (c.status <> 'finished' OR m.jobstatus IS DISTINCT FROM 'finished'
               OR m.processingtype IS DISTINCT FROM 'pmerge')""",
    ),
)
