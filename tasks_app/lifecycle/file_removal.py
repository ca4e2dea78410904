"""A task's owner takes files out of its input: no job gets them any more. Part of the door for states of files.

A file that a job has stays with the job: what that makes of it counts. The caller has locked the task's row, so that no jobs
are made meanwhile; then files are locked, then datasets by id.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import connection
from django.db.backends.utils import CursorWrapper

from jedisite.database.sql import numbers, texts
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import FileStatus
from tasks_app.lifecycle.file_moves import INPUT, before

F = FileStatus
# ruff: noqa: S608 - every piece is a constant of ours
MOST_NAMED: Final = 3
_READ: Final = "type IN ('input', 'pseudo_input')"
_SPENT: Final = "(attemptnr >= maxattempt OR failedattempt >= maxfailure)"
_FREE: Final = f"jeditaskid = %(task)s AND {_READ} AND {{which}} AND {before(INPUT, F.REMOVED)}"
_REMOVE_WHERE: Final = f"""
WITH old AS (
    SELECT fileid, datasetid, status IN ('lost', 'missing') AS gone,
           status = 'ready' AND keeptrack = 1 AND coalesce({_SPENT}, false) AS failed,
           coalesce(endevent - startevent + 1, nevents, 0) AS events
      FROM jedi_dataset_contents WHERE {_FREE} ORDER BY fileid FOR UPDATE),
removed AS (
    UPDATE jedi_dataset_contents SET status = 'removed'
     WHERE jeditaskid = %(task)s AND fileid = ANY(ARRAY(SELECT fileid FROM old))),
forgotten AS (DELETE FROM file_retries WHERE fileid = ANY(ARRAY(SELECT fileid FROM old)))
SELECT datasetid, count(*) FILTER (WHERE NOT gone), count(*) FILTER (WHERE gone), count(*) FILTER (WHERE failed),
       (coalesce(sum(events) FILTER (WHERE NOT gone), 0))::bigint
  FROM old GROUP BY 1 ORDER BY 1"""
_NAMED: Final = """lfn = ANY(%(lfns)s::text[]) AND NOT (boundaryid IS NOT NULL AND datasetid IN (
           SELECT datasetid FROM jedi_datasets WHERE jeditaskid = %(task)s AND masterid IS NOT NULL))"""
_REMOVE: Final = _REMOVE_WHERE.format(which=_NAMED)
_MAY_BE_REMOVED: Final = f"SELECT EXISTS (SELECT 1 FROM jedi_dataset_contents WHERE {_FREE.format(which=_NAMED)})"
_REMOVE_GROUPS: Final = _REMOVE_WHERE.format(which="boundaryid = ANY(%(groups)s::bigint[])")
# Of a task that scouts, jobs may take fewer files than are there: never more than that.
_COUNT: Final = """
UPDATE jedi_datasets d
   SET nfiles = d.nfiles - n.files, nfilesmissing = greatest(0, coalesce(d.nfilesmissing, 0) - n.gone),
       nfilesfailed = d.nfilesfailed - n.failed, nfilesused = d.nfilesused - n.failed,
       nfilestobeused = least(d.nfilestobeused, there.files), nevents = greatest(0, coalesce(d.nevents, 0) - n.events),
       modificationtime = clock_timestamp()
  FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) n (id, files, gone, failed, events)
 CROSS JOIN LATERAL (
       SELECT count(*) AS files FROM jedi_dataset_contents c
        WHERE c.jeditaskid = %s AND c.datasetid = n.id
          AND c.status NOT IN ('pending', 'staging', 'missing', 'lost', 'removed')) there
 WHERE d.datasetid = n.id"""
_LEFT: Final = f"""
SELECT n.lfn, max(c.status), max(c.pandaid) FILTER (WHERE c.status IN ('picked', 'running'))
  FROM unnest(%(lfns)s::text[]) n (lfn)
  LEFT JOIN jedi_dataset_contents c ON c.jeditaskid = %(task)s AND c.{_READ} AND c.lfn = n.lfn
 GROUP BY 1 HAVING coalesce(bool_or(c.status IN ('picked', 'running', 'finished', 'partial')), true) OR %(all)s ORDER BY 1"""


@dataclass(frozen=True, slots=True)
class Removal:
    """How many records were removed, and of each name that stays or is not there a sentence why."""

    files: int
    stay: Sequence[str]

    @property
    def why_some_stay(self) -> str:
        more = len(self.stay) - MOST_NAMED
        return "; ".join([*self.stay[:MOST_NAMED], *([f"and {plural(more, 'other file')}"] if more > 0 else [])])


def remove(task_id: int, lfns: Sequence[str]) -> Removal:
    """Take the files of these names out of all inputs of a task: those that wait, that have failed, and that are lost."""
    with connection.cursor() as cursor:
        rows = _remove(cursor, _REMOVE, task_id, {"lfns": texts(lfns)})
        stay = _staying(cursor, task_id, lfns, all_of_them=not rows)
    return Removal(sum(row[1] + row[2] for row in rows), stay)


def why_none(task_id: int, lfns: Sequence[str]) -> str:
    """Why none of the files of these names can be removed now; "" when one can."""
    with connection.cursor() as cursor:
        cursor.execute(_MAY_BE_REMOVED, {"task": task_id, "lfns": texts(lfns)})
        row = cursor.fetchone()
        if row and row[0]:
            return ""
        return Removal(0, _staying(cursor, task_id, lfns, all_of_them=True)).why_some_stay


def _staying(cursor: CursorWrapper, task_id: int, lfns: Sequence[str], *, all_of_them: bool) -> list[str]:
    cursor.execute(_LEFT, {"task": task_id, "lfns": texts(lfns), "all": all_of_them})
    return [_why(*row) for row in cursor.fetchall()]


def remove_groups(task_id: int, groups: Collection[int]) -> int:
    """Take whole groups of files out of a task, but for files that a job has or has processed. Returns how many files."""
    with connection.cursor() as cursor:
        rows = _remove(cursor, _REMOVE_GROUPS, task_id, {"groups": numbers(groups)})
    return sum(row[1] + row[2] for row in rows)


def hold_back_groups(task_id: int, groups: Collection[int]) -> None:
    """Files of these groups that jobs have now are not used again when the jobs have ended badly, however that is counted:
    an end that uses up no attempt raises the limit on attempts, but not the one on failures."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""UPDATE jedi_dataset_contents SET maxattempt = coalesce(attemptnr, 0) + 1, maxfailure = coalesce(failedattempt, 0)
                 WHERE jeditaskid = %s AND {_READ} AND boundaryid = ANY(%s::bigint[]) AND status IN ('picked', 'running')""",
            [task_id, numbers(groups)],
        )


def _remove(cursor: CursorWrapper, statement: str, task_id: int, which: dict[str, str]) -> list[tuple[int, ...]]:
    """Files, those that were gone, those that had failed and events that were removed of each dataset."""
    cursor.execute(statement, {"task": task_id, **which})
    rows: list[tuple[int, ...]] = cursor.fetchall()
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        cursor.execute(
            "SELECT 1 FROM jedi_datasets WHERE datasetid = ANY(%s) ORDER BY datasetid FOR UPDATE", [columns[0]]
        )
        cursor.execute(_COUNT, [*columns, task_id])
    return rows


def _why(lfn: str, status: str | None, job: int | None) -> str:
    if job is not None:
        return f"{lfn} is being processed by job {job}, which has to end first"
    if status is None:
        return f"the task reads no file {lfn}"
    if status not in (F.FINISHED, F.REMOVED):
        # The command line of the group's job would have a hole where this file stands.
        return f"{lfn} is read together with the other files of its group: remove those of the first input"
    return f"{lfn} is {'processed' if status == F.FINISHED else status} already"
