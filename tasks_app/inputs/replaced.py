"""Files that were made again in the place of lost ones: a task that has processed the lost ones does not read these, too."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import psycopg

from jedisite.database.sql import hot_cursor, numbers
from tasks_app.domain.states import FILE_PROCESSED, TASK_FINAL, FileStatus
from tasks_app.models import Dataset

# Output datasets count what they have lost, so that nothing more is read for most. What a merge job had made was lost with
# the inputs of the jobs whose files it merged.
_LOST = """
WITH lost AS MATERIALIZED (
    SELECT d.datasetid, c.lfn, c.jeditaskid AS maker, c.pandaid, r.status
      FROM jedi_datasets d JOIN jedi_datasets o ON o.type = 'output' AND o.nfilesmissing > 0 AND o.jeditaskid <> d.jeditaskid
       AND (o.datasetname = ANY(ARRAY[d.datasetname, d.containername])
            OR o.containername = ANY(ARRAY[d.datasetname, rtrim(d.datasetname, '/')]))
      JOIN jedi_dataset_contents c ON c.jeditaskid = o.jeditaskid AND c.datasetid = o.datasetid AND c.status = 'lost'
      JOIN jedi_dataset_contents r ON r.jeditaskid = d.jeditaskid AND r.datasetid = d.datasetid AND r.lfn = c.lfn
       AND r.status = ANY(%(statuses)s)
     WHERE d.datasetid = ANY(%(datasets)s::bigint[])),
jobs_of AS MATERIALIZED (
    SELECT datasetid, lfn, maker, pandaid, status FROM lost
    UNION
    SELECT l.datasetid, l.lfn, l.maker, t.boundaryid, l.status
      FROM lost l JOIN job_files f ON f.pandaid = l.pandaid AND f.type = 'input'
      JOIN jedi_dataset_contents t ON t.jeditaskid = l.maker AND t.datasetid = f.datasetid AND t.fileid = f.fileid
       AND t.type IN ('trn_log', 'trn_output'))"""
_IS_READ = "f.type IN ('input', 'pseudo_input') AND d.datasetid = f.datasetid AND d.masterid IS NULL"
_REPLACED = f"""{_LOST}
SELECT DISTINCT j.datasetid, j.lfn FROM jobs_of j JOIN jedi_tasks m ON m.jeditaskid = j.maker
 WHERE NOT m.status = ANY(%(ended)s) OR EXISTS (
       SELECT 1 FROM job_files f
         JOIN jedi_dataset_contents i ON i.jeditaskid = j.maker AND i.datasetid = f.datasetid AND i.fileid = f.fileid
        WHERE f.pandaid = j.pandaid AND f.type IN ('input', 'pseudo_input') AND i.status IN ('finished', 'partial')
          AND i.pandaid IS DISTINCT FROM j.pandaid)
"""  # noqa: S608 - constants
# No longer what the job that made it has read: others process that, or what was made in the place of it.
_MADE_AGAIN = f"""{_LOST}
SELECT DISTINCT l.datasetid, l.lfn FROM lost l WHERE NOT EXISTS (
       SELECT 1 FROM jobs_of j JOIN job_files f ON f.pandaid = j.pandaid AND f.type IN ('input', 'pseudo_input')
         JOIN jedi_dataset_contents i ON i.jeditaskid = j.maker AND i.datasetid = f.datasetid AND i.fileid = f.fileid
        WHERE j.datasetid = l.datasetid AND j.lfn = l.lfn AND i.type IN ('input', 'pseudo_input')
          AND i.status = 'finished' AND i.pandaid = j.pandaid)
"""  # noqa: S608 - constants
# The jobs that have read since what the lost files were made of, and nothing else; by themselves, or their files were merged.
_IN_THEIR_PLACE = f"""{_LOST},
covered AS MATERIALIZED (
    SELECT j.maker, f.datasetid, f.fileid, bool_or(j.status NOT IN ('finished', 'partial')) AS held
      FROM jobs_of j JOIN job_files f ON f.pandaid = j.pandaid JOIN jedi_datasets d ON {_IS_READ}
     WHERE f.fileid IS NOT NULL GROUP BY 1, 2, 3),
producers AS MATERIALIZED (
    SELECT c.maker, i.pandaid, bool_or(c.held) AS held FROM covered c JOIN jedi_dataset_contents i
        ON i.jeditaskid = c.maker AND i.datasetid = c.datasetid AND i.fileid = c.fileid
     WHERE i.pandaid IS NOT NULL AND NOT EXISTS (
           SELECT 1 FROM job_files f JOIN jedi_datasets d ON {_IS_READ}
            WHERE f.pandaid = i.pandaid AND f.fileid <> ALL(ARRAY(SELECT fileid FROM covered)))
     GROUP BY 1, 2),
made AS (
    SELECT pandaid, held FROM producers
    UNION ALL
    SELECT t.pandaid, p.held FROM producers p JOIN job_files f ON f.pandaid = p.pandaid AND f.type = 'trn_log'
      JOIN jedi_dataset_contents t ON t.jeditaskid = p.maker AND t.datasetid = f.datasetid AND t.fileid = f.fileid
     WHERE t.pandaid IS NOT NULL AND NOT EXISTS (
           SELECT 1 FROM job_files x JOIN jedi_dataset_contents u
               ON u.jeditaskid = p.maker AND u.datasetid = x.datasetid AND u.fileid = x.fileid
            WHERE x.pandaid = t.pandaid AND x.type = 'input' AND u.boundaryid <> ALL(ARRAY(SELECT pandaid FROM producers))))
SELECT o.lfn, bool_or(m.held) FROM made m JOIN job_files o ON o.pandaid = m.pandaid AND o.type = 'output' GROUP BY 1
"""  # noqa: S608 - constants
# Inputs that a task has still to process, and whose maker counts them as lost.
_LOST_TO_READERS: Final = """
SELECT DISTINCT r.jeditaskid, r.lfn
  FROM jedi_datasets d JOIN jedi_datasets o ON o.type = 'output' AND o.nfilesmissing > 0 AND o.jeditaskid <> d.jeditaskid
   AND (o.datasetname = ANY(ARRAY[d.datasetname, d.containername])
        OR o.containername = ANY(ARRAY[d.datasetname, rtrim(d.datasetname, '/')]))
  JOIN jedi_dataset_contents c ON c.jeditaskid = o.jeditaskid AND c.datasetid = o.datasetid AND c.status = 'lost'
  JOIN jedi_dataset_contents r ON r.jeditaskid = d.jeditaskid AND r.datasetid = d.datasetid AND r.lfn = c.lfn
   AND r.status = 'ready'
 WHERE d.jeditaskid = ANY(%s::bigint[]) AND d.type = 'input' AND d.status <> 'removed' ORDER BY 1, 2
"""
_TAKEN: Final = (*sorted(FILE_PROCESSED), FileStatus.RUNNING.value)


def replaced(cursor: psycopg.Cursor[Any], datasets: Collection[int]) -> list[tuple[int, str]]:
    """Files of these inputs that their task has processed, and whose maker has made others in their place since or still
    does: (dataset, name)."""
    values = {
        "datasets": numbers(sorted(datasets)),
        "statuses": sorted(FILE_PROCESSED),
        "ended": sorted(TASK_FINAL),
    }
    cursor.execute(_REPLACED, values)
    return cursor.fetchall()


def made_again(cursor: psycopg.Cursor[Any], datasets: Collection[int]) -> list[tuple[int, str]]:
    """Files of these inputs that their task has lost, and in whose place their maker makes others, as far as it can:
    (dataset, name). A new task that makes them again does so in a dataset of its own, which nobody reads in their place."""
    cursor.execute(_MADE_AGAIN, {"datasets": numbers(sorted(datasets)), "statuses": [FileStatus.LOST.value]})
    return cursor.fetchall()


def lost_before(tasks: Collection[int]) -> dict[int, list[str]]:
    """Inputs that these tasks have still to process, and that are lost: their maker has made others in their place, or is to.
    One query."""
    found: dict[int, list[str]] = {}
    with hot_cursor() as cursor:
        cursor.execute(_LOST_TO_READERS, [numbers(tasks)])
        for task, lfn in cursor.fetchall():
            found.setdefault(task, []).append(lfn)
    return found


def in_their_place(dataset: Dataset) -> dict[str, bool]:
    """Names of files that hold the events of lost ones which the task has processed, or processes (True): those it will need
    if that fails."""
    if not dataset.files_finished and not dataset.files_used:
        return {}
    with hot_cursor() as cursor:
        cursor.execute(_IN_THEIR_PLACE, {"datasets": numbers([dataset.id]), "statuses": list(_TAKEN)})
        return dict(cursor.fetchall())
