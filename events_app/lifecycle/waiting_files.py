"""Files whose consumers wait until jumbo jobs have done their ranges: IS_WAITING and NFILESWAITING say which and how many.

Counted anew by whoever makes or moves such consumers: these files are among those in use (NFILESUSED).
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

# ruff: noqa: S608 - every piece is a constant of ours
_WAITING: Final = """waiting AS MATERIALIZED (
    SELECT DISTINCT f.datasetid, f.fileid FROM jobs j JOIN job_files f ON f.pandaid = j.pandaid
     WHERE j.jeditaskid = %(task)s AND j.jobstatus = 'waiting' AND j.eventservice > 0
       AND f.type IN ('input', 'pseudo_input') AND f.fileid IS NOT NULL)"""
_MARK: Final = f"""
WITH {_WAITING}
UPDATE jedi_dataset_contents c SET is_waiting = 'Y' FROM waiting w
 WHERE c.jeditaskid = %(task)s AND c.datasetid = w.datasetid AND c.fileid = w.fileid AND c.is_waiting IS DISTINCT FROM 'Y'
"""
# Files of datasets of which none waited are not looked at.
_CLEAR: Final = f"""
WITH {_WAITING},
of_these AS MATERIALIZED (SELECT datasetid FROM jedi_datasets WHERE jeditaskid = %(task)s AND nfileswaiting > 0)
UPDATE jedi_dataset_contents c SET is_waiting = NULL
 WHERE c.jeditaskid = %(task)s AND c.datasetid = ANY(ARRAY(SELECT datasetid FROM of_these)) AND c.is_waiting = 'Y'
   AND NOT EXISTS (SELECT FROM waiting w WHERE w.datasetid = c.datasetid AND w.fileid = c.fileid)
"""
_COUNT: Final = f"""
WITH {_WAITING},
counted AS (SELECT d.datasetid, (SELECT count(*) FROM waiting w WHERE w.datasetid = d.datasetid) AS files
              FROM jedi_datasets d WHERE d.jeditaskid = %(task)s AND d.type IN ('input', 'pseudo_input'))
UPDATE jedi_datasets d SET nfileswaiting = c.files FROM counted c
 WHERE d.datasetid = c.datasetid AND d.nfileswaiting <> c.files
"""


def count_waiting(cursor: psycopg.Cursor[Any], task_id: int) -> None:
    """Bring both columns up to date for a task."""
    for statement in (_MARK, _CLEAR, _COUNT):
        cursor.execute(statement, {"task": task_id})
