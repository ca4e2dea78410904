"""Zip files of consumers are deleted when what is in them was merged, or will never be, or their task ended long ago."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db import transaction

from events_app.lifecycle.range_moves import is_in
from events_app.lifecycle.range_reinsertion import discard_of_tasks
from events_app.lifecycle.zip_rows import DELETED, ZIP_TYPE
from events_app.rules.event_states import EventStatus
from jedisite.database.sql import hot_cursor
from tasks_app.configured import timeout_limits
from tasks_app.ddm.local_files import remove_from_disk
from tasks_app.domain.job_file_states import JobFileStatus
from tasks_app.domain.states import TASK_FINAL

# ruff: noqa: S608 - every piece is a constant of ours
# A range that is done waits for its merge, also while the merge job runs; one that is finished, for the end of its consumer.
_UNNEEDED: Final = f"""
SELECT z.row_id, z.surl, z.scope, z.lfn FROM job_files z
 WHERE z.type = '{ZIP_TYPE}' AND z.status = '{JobFileStatus.READY}'
   AND NOT EXISTS (SELECT FROM jedi_events e WHERE e.pandaid = z.pandaid AND e.ziprow_id = z.row_id
                      AND {is_in({EventStatus.FINISHED, EventStatus.DONE}, "e.")})
 ORDER BY z.row_id LIMIT %(limit)s FOR UPDATE OF z SKIP LOCKED
"""
_FORGET: Final = """
UPDATE jedi_events e SET file_not_deleted = NULL
  FROM job_files z
 WHERE z.row_id = ANY(%(rows)s) AND e.pandaid = z.pandaid AND e.ziprow_id = z.row_id AND e.file_not_deleted = 'Y'
"""


# A task that is tried again at this moment is left alone: what was processed of it is kept.
_ENDED: Final = f"""
WITH with_zips AS MATERIALIZED (
    SELECT DISTINCT jeditaskid FROM job_files WHERE type = '{ZIP_TYPE}' AND status = '{JobFileStatus.READY}')
SELECT jeditaskid FROM jedi_tasks
 WHERE jeditaskid IN (SELECT jeditaskid FROM with_zips) AND status = ANY(%(final)s::text[])
   AND coalesce(statechangetime, modificationtime) < %(before)s
 ORDER BY jeditaskid FOR NO KEY UPDATE SKIP LOCKED
"""


@transaction.atomic
def delete_unneeded(limit: int, now: datetime) -> int:
    """Delete up to `limit` zip files that nobody will read. Returns how many. Their rows stay, and say so.

    What tasks keep for a retry is given up when they ended long ago.
    """
    with hot_cursor() as cursor:
        cursor.execute(_ENDED, {"final": sorted(TASK_FINAL), "before": now - timeout_limits.limit("zip.kept")})
        discard_of_tasks(cursor, [task for (task,) in cursor.fetchall()])
        cursor.execute(_UNNEEDED, {"limit": limit})
        found = cursor.fetchall()
        if found:
            rows = [row_id for row_id, *_ in found]
            remove_from_disk((surl, scope, lfn) for _, surl, scope, lfn in found if surl)
            cursor.execute(_FORGET, {"rows": rows})
            cursor.execute(DELETED, {"rows": rows})
    return len(found)
