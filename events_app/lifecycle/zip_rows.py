"""Files that hold the outputs of ranges, as consumers have stored them: a row of `job_files` for each job and name."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import psycopg

from events_app.rules.reported_items import ZipFile
from jedisite.database.sql import numbers, texts
from tasks_app.domain.job_file_states import JobFileStatus

SCOPE: Final = "transient"
ZIP_TYPE: Final = "zipoutput"
# Reports of a job wait for each other, so nobody else inserts the same row at this moment.
_INSERT: Final = f"""
WITH said AS MATERIALIZED (
    SELECT * FROM unnest(%(jobs)s::bigint[], %(lfns)s::text[], %(sizes)s::bigint[], %(checksums)s::text[], %(events)s::bigint[],
                         %(places)s::text[], %(guids)s::text[], %(surls)s::text[])
                  s (job, lfn, size, checksum, events, place, guid, surl)),
known AS MATERIALIZED (
    SELECT f.row_id, f.pandaid, f.lfn
      FROM said s JOIN job_files f ON f.pandaid = s.job AND f.lfn = s.lfn AND f.type = '{ZIP_TYPE}'),
made AS (
    INSERT INTO job_files (pandaid, jeditaskid, type, lfn, scope, destinationse, guid, fsize, checksum, status, nevents, surl)
    SELECT s.job, %(task)s, '{ZIP_TYPE}', s.lfn, '{SCOPE}', s.place, s.guid, s.size, s.checksum, 'ready', s.events, s.surl
      FROM said s WHERE NOT EXISTS (SELECT FROM known k WHERE k.pandaid = s.job AND k.lfn = s.lfn)
    RETURNING row_id, pandaid, lfn)
SELECT row_id, pandaid, lfn FROM known UNION ALL SELECT row_id, pandaid, lfn FROM made
"""  # noqa: S608 - constants of ours

DELETED: Final = (
    f"UPDATE job_files SET status = '{JobFileStatus.DELETED}' WHERE row_id = ANY(%(rows)s) AND type = '{ZIP_TYPE}'"  # noqa: S608 - constants of ours
)
"""SQL: these zip files, of which the rows are locked, are not there any more."""


class StoredZip(NamedTuple):
    """A zip file of a job, and its address at the storage that its number names."""

    job_id: int
    file: ZipFile
    surl: str


def place_of(zip_file: ZipFile) -> str:
    """The storage and the convention of its paths, as `destinationse` has them: `11/1000`."""
    told = (zip_file.objstore_id, zip_file.path_convention)
    return "/".join(str(one) for one in told if one is not None)


def zip_rows(cursor: psycopg.Cursor[Any], task_id: int, zips: Sequence[StoredZip]) -> dict[tuple[int, str], int]:
    """The rows of these files by job and name; those that are not there yet are inserted. The jobs are locked."""
    if not zips:
        return {}
    cursor.execute(
        _INSERT,
        {
            "task": task_id,
            "jobs": numbers(one.job_id for one in zips),
            "lfns": texts(one.file.lfn for one in zips),
            "sizes": numbers(one.file.size for one in zips),
            "checksums": texts(f"ad:{one.file.adler32}" for one in zips),
            "events": numbers(one.file.events for one in zips),
            "places": texts(place_of(one.file) for one in zips),
            "guids": texts(str(uuid.uuid4()) for _ in zips),
            "surls": texts(one.surl for one in zips),
        },
    )
    return {(job_id, lfn): row_id for row_id, job_id, lfn in cursor.fetchall()}
