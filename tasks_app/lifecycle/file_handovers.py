"""Jobs that share files hand them over: inputs that are in use, and outputs that are still to be written, get another job.

Part of the door for states of files; `events_app.consumers.copying` runs these statements. Which of the jobs a file counts
for stands in `jedi_dataset_contents.pandaid`; in the rows of the others it is `again`.
"""

from __future__ import annotations

from typing import Final

from tasks_app.domain.job_file_states import JobFileStatus

# ruff: noqa: S608 - every piece is a constant of ours
_INPUTS = "('input', 'pseudo_input', 'random_seed')"
# Inputs stay as they are but for the job: `running`.
HAND_OVER_INPUTS: Final = f"""
WITH theirs AS MATERIALIZED (
    SELECT DISTINCT datasetid, fileid FROM job_files
     WHERE pandaid = ANY(%(olds)s::bigint[]) AND type IN {_INPUTS} AND fileid IS NOT NULL),
given AS (
    UPDATE jedi_dataset_contents c SET pandaid = %(new)s
     WHERE c.jeditaskid = %(task)s AND c.fileid = ANY(ARRAY(SELECT fileid FROM theirs))
       AND c.datasetid = ANY(ARRAY(SELECT datasetid FROM theirs))
       AND c.pandaid = ANY(%(olds)s::bigint[]) AND c.status = 'running' AND c.keeptrack = 1
    RETURNING c.fileid)
UPDATE job_files f SET status = CASE WHEN f.pandaid = %(new)s THEN '{JobFileStatus.READY}' ELSE '{JobFileStatus.AGAIN}' END
  FROM given g WHERE f.pandaid = ANY(%(jobs)s::bigint[]) AND f.fileid = g.fileid AND f.type IN {_INPUTS}
"""
# Logs stay with the job that writes them.
HAND_OVER_OUTPUTS: Final = """
WITH given AS (
    UPDATE job_files SET pandaid = %(new)s WHERE pandaid = ANY(%(olds)s::bigint[]) AND type = 'output'
    RETURNING datasetid, fileid)
UPDATE jedi_dataset_contents c SET pandaid = %(new)s, outpandaid = %(new)s
 WHERE c.jeditaskid = %(task)s AND c.fileid = ANY(ARRAY(SELECT fileid FROM given))
   AND c.datasetid = ANY(ARRAY(SELECT datasetid FROM given)) AND c.status = 'defined'
"""
