"""Events that are finished and in no output yet, and whose file has lost its last attempt to a retry rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from jedisite.database.sql import numbers
from tasks_app.lifecycle import file_recovery
from tasks_app.outcomes import end_hooks

_FILES = """
SELECT c.fileid FROM jedi_dataset_contents c
 WHERE c.jeditaskid = %(task)s AND c.pandaid = ANY(%(jobs)s::bigint[]) AND c.type = 'input' AND c.status = 'ready'
   AND c.fileid = ANY(ARRAY(SELECT f.fileid FROM job_files f WHERE f.pandaid = ANY(%(jobs)s::bigint[]) AND f.type = 'input'))
"""


def keep_an_attempt(
    cursor: psycopg.Cursor[Any], task_id: int, jobs: Sequence[int]
) -> list[tuple[int, int, int, int, int]]:
    """Files of these failed jobs get an attempt, where a retry rule has left them none and events of them wait to be merged: the
    end of a file's last job merges what is finished, and these have ended already.

    Returns what changes in the counters of their datasets, as `outcomes` counts it.
    """
    if not jobs:
        return []
    cursor.execute(_FILES, {"task": task_id, "jobs": numbers(jobs)})
    files = [file for (file,) in cursor.fetchall()]
    waiting = sorted(end_hooks.awaiting_merge(cursor, task_id, files)) if files else []
    more = file_recovery.one_more(cursor, task_id, waiting) if waiting else []
    return [(dataset, 0, -count, count, 0) for dataset, count in more]
