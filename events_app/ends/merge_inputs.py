"""What a merge job reads: files with outputs of ranges that are done, and outputs that lie on their own. What it has to have
read at its end, and what of that nobody can read."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import psycopg

from events_app.lifecycle.range_moves import is_in
from events_app.lifecycle.storage_numbers import Storages
from events_app.rules.event_states import EventStatus
from jedisite.database.sql import numbers, texts
from tasks_app.domain.job_errors import STORAGE_AWAY
from tasks_app.domain.job_file_states import JobFileStatus
from tasks_app.outcomes.end_hooks import EVENT_MERGE, EventJob

UNREADABLE: Final = frozenset({1103, 1145, 1171, 1175})
"""Errors of pilots: an input is not there, or is not what it should be."""
NOT_COPIED: Final = 1099
"""The same: an input could not be copied, for a time or for good. Not when it is the folder of its storage that is away."""
MOST_NOT_COPIED: Final = 3
"""So many merge jobs that could not copy a file make it one that cannot be read."""

# ruff: noqa: S608 - every piece is a constant of ours
# Of a range that was processed twice the later job counts.
_DONE: Final = f"""done AS MATERIALIZED (
    SELECT DISTINCT ON (e.fileid, r.first) e.fileid, r.first, e.pandaid, e.attemptnr, e.ziprow_id, e.objstore_id,
           e.path_convention
      FROM jedi_events e, generate_series(e.def_min_eventid, e.def_max_eventid, e.events_per_range) r (first)
     WHERE e.jeditaskid = %(task)s AND e.fileid = ANY(%(files)s::bigint[]) AND {is_in({EventStatus.DONE})}
     ORDER BY e.fileid, r.first, e.pandaid DESC)"""
_ZIPS: Final = f"""
WITH {_DONE}
INSERT INTO job_files (pandaid, jeditaskid, type, lfn, scope, guid, fsize, checksum, destinationse, surl, status, dataset)
SELECT %(job)s, %(task)s, 'zipinput', z.lfn, z.scope, z.guid, z.fsize, z.checksum, z.destinationse, z.surl, 'ready', z.dataset
  FROM job_files z WHERE z.row_id = ANY(ARRAY(SELECT ziprow_id FROM done WHERE ziprow_id IS NOT NULL))
"""
# What lies in no zip file is called as pilots call it.
_LOOSE: Final = f"""
WITH {_DONE}
SELECT regexp_replace(o.lfn, '[.][0-9]+$', '.1') || '.' ||
           concat_ws('-', %(task)s::bigint, d.pandaid, d.fileid, d.first, d.attemptnr), d.objstore_id, d.path_convention
  FROM done d, job_files o
 WHERE d.ziprow_id IS NULL AND d.objstore_id IS NOT NULL AND o.pandaid = %(job)s AND o.type = 'output'
"""
_ADD_LOOSE: Final = """
INSERT INTO job_files (pandaid, jeditaskid, type, lfn, scope, destinationse, surl, status)
SELECT %(job)s, %(task)s, 'zipinput', lfn, 'transient', place, surl, 'ready'
  FROM unnest(%(lfns)s::text[], %(places)s::text[], %(surls)s::text[]) l (lfn, place, surl)
"""
_UNREAD: Final = f"""
WITH {_DONE},
read AS MATERIALIZED (
    SELECT DISTINCT lfn, string_to_array(substring(lfn FROM '[0-9]+(?:-[0-9]+){{4}}$'), '-')::bigint[] AS id FROM job_files
     WHERE pandaid = %(job)s AND type = 'zipinput')
SELECT (SELECT count(*) FROM done d JOIN job_files z ON z.row_id = d.ziprow_id LEFT JOIN read r ON r.lfn = z.lfn
         WHERE r.lfn IS NULL)
     + (SELECT count(*) FROM done d LEFT JOIN read r ON r.id[3] = d.fileid AND r.id[4] = d.first
         WHERE d.ziprow_id IS NULL AND d.objstore_id IS NOT NULL AND r.id IS NULL
           AND EXISTS (SELECT FROM job_files o WHERE o.pandaid = %(job)s AND o.type = 'output'))
"""
_AWAY: Final = f"starts_with(coalesce(piloterrordiag, ''), '{STORAGE_AWAY}')"
# A report of the pilot on a file counts at once, a name in the text of an error by its code.
_BAD: Final = f"""
SELECT r.lfn, (SELECT z.row_id FROM job_files z WHERE z.lfn = r.lfn AND z.type = 'zipoutput' AND z.row_id IN (
                 SELECT e.ziprow_id FROM jedi_events e
                  WHERE e.jeditaskid = %(task)s AND e.fileid = ANY(%(files)s::bigint[])) LIMIT 1)
  FROM job_files r
 WHERE r.pandaid = %(job)s AND r.type = 'zipinput'
   AND (r.status = '{JobFileStatus.CORRUPTED}' OR (strpos(%(diag)s, r.lfn) > 0 AND (%(at_once)s OR %(most)s <= (
        SELECT count(*) FROM (
               SELECT pandaid, piloterrordiag FROM jobs WHERE jeditaskid = %(task)s AND eventservice = {EVENT_MERGE}
                  AND piloterrorcode = {NOT_COPIED} AND jobstatus = 'failed' AND NOT {_AWAY}
               UNION ALL
               SELECT pandaid, piloterrordiag FROM jobs_archive WHERE jeditaskid = %(task)s AND eventservice = {EVENT_MERGE}
                  AND piloterrorcode = {NOT_COPIED} AND jobstatus = 'failed' AND NOT {_AWAY}) m
         WHERE strpos(m.piloterrordiag, r.lfn) > 0))))
"""


_TO_MERGE: Final = f"""
SELECT DISTINCT e.ziprow_id FROM jedi_events e
 WHERE e.jeditaskid = %(task)s AND e.fileid = ANY(%(files)s::bigint[]) AND {is_in({EventStatus.DONE}, "e.")}
   AND e.ziprow_id IS NOT NULL AND e.pandaid IS DISTINCT FROM %(but)s
   AND NOT EXISTS (SELECT FROM job_files o WHERE o.pandaid = e.pandaid AND o.type = 'output'
                      AND o.status = '{JobFileStatus.FINISHED}')
"""


_AWAITING: Final = f"""
SELECT DISTINCT e.fileid FROM jedi_events e
 WHERE e.jeditaskid = %(task)s AND e.fileid = ANY(%(files)s::bigint[])
   AND {is_in({EventStatus.FINISHED, EventStatus.DONE}, "e.")} AND e.ziprow_id IS NOT NULL
   AND NOT EXISTS (SELECT FROM job_files o WHERE o.pandaid = e.pandaid AND o.type = 'output'
                      AND o.status = '{JobFileStatus.FINISHED}')
"""


def awaiting_merge(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> list[int]:
    """Those of these files with outputs of ranges in zip files which are in no output yet."""
    cursor.execute(_AWAITING, {"task": task_id, "files": numbers(files)})
    return [file for (file,) in cursor.fetchall()]


def zips_to_merge(
    cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int], *, but: int | None = None
) -> list[int]:
    """Rows of the zip files with outputs of ranges of these files that are done, of jobs that have stored no output of their
    own. `but`: a job that has, which is not booked yet."""
    cursor.execute(_TO_MERGE, {"task": task_id, "files": numbers(files), "but": but})
    return [row for (row,) in cursor.fetchall()]


def give_inputs(cursor: psycopg.Cursor[Any], task_id: int, merge_job: int, files: Collection[int]) -> None:
    """A merge job, which has its outputs already, reads the zip files of what is done, and what lies in none but at a
    storage that its report has named."""
    values = {"task": task_id, "job": merge_job, "files": numbers(files)}
    cursor.execute(_ZIPS, values)
    cursor.execute(_LOOSE, values)
    loose = cursor.fetchall()
    if not loose:
        return
    storages = Storages(number for _, number, _ in loose)
    values |= {
        "lfns": texts(lfn for lfn, _, _ in loose),
        "places": texts(f"{one}" if how is None else f"{one}/{how}" for _, one, how in loose),
        "surls": texts(storages.address(one, lfn) if storages.knows(one) else None for lfn, one, _ in loose),
    }
    cursor.execute(_ADD_LOOSE, values)


def unread(cursor: psycopg.Cursor[Any], task_id: int, merge_job: int, files: Collection[int]) -> int:
    """How many ranges of these files are done whose output is none of a merge job's inputs."""
    cursor.execute(_UNREAD, {"task": task_id, "job": merge_job, "files": numbers(files)})
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def unreadable(cursor: psycopg.Cursor[Any], job: EventJob, files: Collection[int]) -> tuple[list[int], list[str]]:
    """Inputs of a merge job that failed which cannot be read: rows of zip files, and names of outputs that lie on their own.

    The job's pilot has reported them as corrupted, or names them in an error of that kind. What could not be copied counts
    after MOST_NOT_COPIED such merge jobs.
    """
    says = job.pilot_error in UNREADABLE or job.pilot_error == NOT_COPIED
    values = {
        "task": job.task_id,
        "job": job.job_id,
        "files": numbers(files),
        "diag": job.pilot_diag if says else "",
        "at_once": job.pilot_error in UNREADABLE,
        "most": MOST_NOT_COPIED - 1,
    }
    cursor.execute(_BAD, values)
    bad = cursor.fetchall()
    return [row for _, row in bad if row is not None], [lfn for lfn, row in bad if row is None]
