"""Outputs that could not be stored: a storage at which that happens again and again is closed for a while.

Jobs write to the destination of their outputs, or where their queue writes. What they report is believed of the storage as it
is of themselves; whatever they say, it is tried again after an hour at most.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg

from brokerage_app.grid.written_storage import WRITTEN, WRITTEN_BY_ANALYSIS
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.ddm.local_storage import ENDPOINT
from tasks_app.domain.job_errors import JobError
from tasks_app.domain.retry_rules import not_stored
from tasks_app.domain.source_labels import ANALYSIS_LABELS
from tasks_app.retries.apply_rules import Failures

IN_SUCCESSION: Final = 3
"""So many jobs that could not store outputs, with none between that could, close a storage."""
LEAST: Final = timedelta(minutes=5)
MOST: Final = timedelta(hours=1)
"""It stays closed for as long as that has gone on, within these limits."""
FORGOTTEN_AFTER: Final = timedelta(hours=4)
CACHE_S: Final = 2.0
"""How old what a process knows of storages in trouble may be."""

_lock = threading.Lock()
_kept: tuple[float, frozenset[str]] | None = None

# Of jobs for a nucleus the outputs are left at the queue's storage when both are of this machine, see `dispatch.description`.
# ruff: noqa: S608 - pieces of ours
_WRITTEN_BY = f"""
SELECT DISTINCT j.pandaid, j.piloterrordiag AS says,
       coalesce(CASE WHEN j.nucleus IS NULL OR (SELECT count(*) FROM storage_endpoints e
                                                 WHERE e.name IN (w.name, f.destinationse) AND e.path <> '') < 2
                     THEN f.destinationse END, w.name, '{ENDPOINT}') AS storage
  FROM jobs j JOIN job_files f ON f.pandaid = j.pandaid AND f.type IN ('output', 'log', 'trn_output', 'trn_log')
  LEFT JOIN queues q ON q.name = j.computingsite
 CROSS JOIN LATERAL (SELECT CASE WHEN j.prodsourcelabel = ANY(%(analysis)s::text[]) THEN {WRITTEN_BY_ANALYSIS} ELSE {WRITTEN} END
                         AS name) w
 WHERE j.pandaid = ANY(%(jobs)s::bigint[])"""
_NOTE = f"""
WITH hit AS (SELECT storage, count(*) AS n, left((array_agg(says ORDER BY pandaid DESC))[1], 200) AS says
               FROM ({_WRITTEN_BY}) written GROUP BY storage),
told AS (
    INSERT INTO storage_troubles AS t (ddm_endpoint_name, failures, since, last)
    SELECT e.name, h.n, %(now)s, %(now)s FROM hit h JOIN storage_endpoints e ON e.name = h.storage ORDER BY e.name
    ON CONFLICT (ddm_endpoint_name) DO UPDATE SET
        failures = excluded.failures + CASE WHEN t.last > %(now)s - %(forgotten)s THEN t.failures ELSE 0 END,
        since = CASE WHEN t.last > %(now)s - %(forgotten)s THEN t.since ELSE excluded.since END, last = excluded.last
    RETURNING ddm_endpoint_name, failures)
SELECT h.storage, coalesce(h.says, '') FROM told t JOIN hit h ON h.storage = t.ddm_endpoint_name
 WHERE t.failures >= %(enough)s ORDER BY h.storage
"""
# Each UPDATE of endpoints, also of none, counts as a change of the grid, which wakes what waits: so only where there is one.
_CLOSE = """
UPDATE storage_endpoints e SET closed_why = c.says,
       closed_until = %(now)s + least(greatest(%(now)s - t.since, %(least)s), %(most)s)
  FROM unnest(%(names)s::text[], %(says)s::text[]) c (name, says) JOIN storage_troubles t ON t.ddm_endpoint_name = c.name
 WHERE e.name = c.name
"""
_STORED = f"""
DELETE FROM storage_troubles WHERE ddm_endpoint_name IN (SELECT storage FROM ({_WRITTEN_BY}) written)
RETURNING ddm_endpoint_name
"""
_OPEN = "UPDATE storage_endpoints SET closed_until = NULL, closed_why = '' WHERE name = ANY(%s::text[])"


def among(failures: Failures) -> list[int]:
    """The failed jobs whose outputs could not be stored."""
    rows = (row for found in failures.by_task.values() for row in found)
    return sorted(row.job_id for row in rows if not_stored(JobError(*error) for error in row.errors))


def note(cursor: psycopg.Cursor[Any], jobs: Sequence[int], now: datetime) -> None:
    """Jobs that could not store their outputs. One statement, two where a storage is closed, none without such jobs."""
    if jobs:
        cursor.execute(_NOTE, {**_of(jobs), "now": now, "forgotten": FORGOTTEN_AFTER, "enough": IN_SUCCESSION})
        closed = cursor.fetchall()
        if closed:
            names, says = zip(*closed, strict=True)
            values = {"names": texts(names), "says": texts(says), "now": now, "least": LEAST, "most": MOST}
            cursor.execute(_CLOSE, values)


def note_stored(cursor: psycopg.Cursor[Any], jobs: Sequence[int]) -> None:
    """Jobs that have stored their outputs: where they did, storage works. No statement while no storage is in trouble."""
    if jobs and _in_trouble():
        cursor.execute(_STORED, _of(jobs))
        gone = sorted(name for (name,) in cursor.fetchall())
        if gone:
            cursor.execute(_OPEN, [gone])


def _of(jobs: Sequence[int]) -> dict[str, Any]:
    return {"jobs": numbers(jobs), "analysis": texts(sorted(ANALYSIS_LABELS))}


def reopen(now: datetime) -> int:
    """Storage whose time is over is tried again. Returns how many there were.

    Nothing is written where there is none: each UPDATE of endpoints counts as a change of the grid, which wakes what waits.
    """
    with hot_cursor() as cursor:
        cursor.execute("SELECT name FROM storage_endpoints WHERE closed_until <= %s ORDER BY name", [now])
        due = [name for (name,) in cursor.fetchall()]
        if due:
            cursor.execute(_OPEN, [due])
        cursor.execute("DELETE FROM storage_troubles WHERE last < %s", [now - FORGOTTEN_AFTER])
    return len(due)


def _in_trouble() -> frozenset[str]:
    """The storages of which failures are noted, at most CACHE_S old."""
    global _kept
    kept = _kept
    if kept is None or time.monotonic() - kept[0] >= CACHE_S:
        with _lock:
            if _kept is kept:
                _kept = (time.monotonic(), _read())
            kept = _kept
    return kept[1] if kept else frozenset()


def forget() -> None:
    """Read the storages at the next call."""
    global _kept
    _kept = None


def _read() -> frozenset[str]:
    with hot_cursor() as cursor:
        cursor.execute("SELECT ddm_endpoint_name FROM storage_troubles")
        return frozenset(name for (name,) in cursor.fetchall())
