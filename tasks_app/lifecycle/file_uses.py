"""Hot path: jobs that are being stored get the files that they read. Part of the door for states of files;
`generation.store` runs these statements."""

from __future__ import annotations

from tasks_app.domain.states import FileStatus
from tasks_app.lifecycle.file_moves import EITHER, INPUT, before

# ruff: noqa: S608 - every piece is a constant of ours
_COPIED = "lfn, scope, guid, fsize, checksum, type, attemptnr, nevents, startevent, endevent, surl"
# What other jobs made to be merged is an input like any other to the job that merges it.
_COPIED_OF_FILE = ", ".join("c." + name.strip() for name in _COPIED.split(",")).replace(
    "c.type", "CASE WHEN c.type IN ('trn_output', 'trn_log') THEN 'input' ELSE c.type END AS type"
)
_FILE_COLUMNS = f"pandaid, jeditaskid, datasetid, dataset, status, fileid, {_COPIED}"

# Ready files that one job only may have: of the task's input, or to be merged. The job of a file is found by its place in
# the sorted list of files, not by a join: after a large feed the server knows little of the dataset, and the plan that it
# then makes for a join reads all of it at every step.
USE_TRACKED = f"""
WITH used AS (
    UPDATE jedi_dataset_contents c
       SET status = 'running', pandaid = (%(jobs)s::bigint[])[width_bucket(c.fileid, %(files)s::bigint[])]
     WHERE c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.fileid BETWEEN %(first)s AND %(last)s
       AND c.fileid = ANY(%(files)s::bigint[])
       AND {before(EITHER, FileStatus.RUNNING, among=[FileStatus.READY], row="c.")}
    RETURNING c.pandaid, c.fileid, {_COPIED_OF_FILE})
INSERT INTO job_files ({_FILE_COLUMNS})
SELECT pandaid, %(task)s, %(dataset)s, %(name)s, 'ready', fileid, {_COPIED} FROM used
"""

# Files that any number of jobs may read stay as they are.
USE_FREELY = f"""
INSERT INTO job_files ({_FILE_COLUMNS})
SELECT p.pandaid, %(task)s, %(dataset)s, %(name)s, 'ready', c.fileid, {_COPIED_OF_FILE}
  FROM unnest(%(files)s::bigint[], %(jobs)s::bigint[]) p (fileid, pandaid)
  JOIN jedi_dataset_contents c ON c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.fileid = p.fileid
 WHERE c.fileid BETWEEN %(first)s AND %(last)s
"""

# Numbers that failed jobs have given back are used again.
USE_SEEDS = f"""
UPDATE jedi_dataset_contents c SET status = 'running', pandaid = p.job
  FROM unnest(%(files)s::bigint[], %(jobs)s::bigint[]) p (file, job)
 WHERE c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.fileid = p.file
   AND {before(INPUT, FileStatus.RUNNING, among=[FileStatus.READY], row="c.")}
"""
