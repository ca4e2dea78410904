"""Groups of files get no further attempt: what waits is given up, what a job has is lost with that job. Part of the door for
states of files.

The caller has locked the task's row, so that no jobs are made meanwhile; then files are locked, then datasets.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import connection

from tasks_app.domain.states import FileStatus
from tasks_app.lifecycle.file_moves import INPUT, before

F = FileStatus
# ruff: noqa: S608 - every piece is a constant of ours
_THEIRS = """c.jeditaskid = %(task)s AND c.type IN ('input', 'pseudo_input') AND c.keeptrack = 1
       AND c.boundaryid = ANY(%(groups)s::bigint[])"""
_WAITS = before(INPUT, F.READY, among=[F.PENDING, F.STAGING], row="c.")
_LAST_ATTEMPT = f"""
UPDATE jedi_dataset_contents c SET maxattempt = least(c.maxattempt, coalesce(c.attemptnr, 0) + 1)
 WHERE {_THEIRS} AND c.status IN ('picked', 'running')
RETURNING c.pandaid"""
_GIVE_UP = f"""
WITH given_up AS (
    UPDATE jedi_dataset_contents c SET status = 'ready', maxattempt = coalesce(c.attemptnr, 0)
     WHERE {_THEIRS} AND (c.status = 'ready' OR {_WAITS}) AND (c.maxattempt IS NULL OR c.attemptnr < c.maxattempt)
       AND (c.maxfailure IS NULL OR c.failedattempt < c.maxfailure)
    RETURNING c.datasetid, c.fileid),
forgotten AS (DELETE FROM file_retries WHERE fileid = ANY(ARRAY(SELECT fileid FROM given_up)))
SELECT datasetid, count(*) FROM given_up GROUP BY 1 ORDER BY 1"""
_COUNT = """
UPDATE jedi_datasets d SET nfilesfailed = nfilesfailed + n.files, nfilesused = nfilesused + n.files,
       nfilestobeused = greatest(nfilestobeused, nfilesused + n.files), modificationtime = clock_timestamp()
  FROM unnest(%s::bigint[], %s::bigint[]) n (id, files) WHERE d.datasetid = n.id"""


class GivenUp(dict[int, int]):
    """Numbers of files by dataset, for `count`."""


def give_up(task_id: int, groups: Collection[int]) -> tuple[GivenUp, list[int]]:
    """Files of these groups get no further attempt. Returns what `count` books, and the jobs that have files of them."""
    values: dict[str, Any] = {"task": task_id, "groups": sorted(groups)}
    with connection.cursor() as cursor:
        cursor.execute(_LAST_ATTEMPT, values)
        jobs = sorted({job for (job,) in cursor.fetchall() if job is not None})
        cursor.execute(_GIVE_UP, values)
        return GivenUp(cursor.fetchall()), jobs


def count(given_up: GivenUp) -> None:
    """Book on the datasets what was given up: the last step, since whoever ends jobs locks files first, then datasets."""
    if given_up:
        with connection.cursor() as cursor:
            cursor.execute(_COUNT, [list(given_up), list(given_up.values())])
