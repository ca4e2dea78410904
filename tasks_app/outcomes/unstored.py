"""Outputs that could not be stored, and inputs whose storage was away: where that happens again and again is closed for a while.

Jobs write to the destination of their outputs, or where their queue writes, and read in the folder in which their inputs lie.
What they report is believed of the storage as it is of themselves; whatever they say, it is tried again after an hour at most.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import psycopg

from brokerage_app.grid.written_storage import WRITTEN, WRITTEN_BY_ANALYSIS
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.ddm.local_storage import ENDPOINT
from tasks_app.domain.job_errors import STORAGE_AWAY, JobError
from tasks_app.domain.retry_rules import not_stored, storage_away
from tasks_app.domain.source_labels import ANALYSIS_LABELS
from tasks_app.retries.apply_rules import Failures
from tasks_app.transfers.storages import local_storages, storage_addresses

IN_SUCCESSION: Final = 3
"""So many jobs that could not store outputs, or met the folder away, with none between that could, close a storage."""
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
_READ_BY = """
SELECT DISTINCT j.pandaid, coalesce(j.piloterrordiag, '') AS says, r.name AS storage, r.path
  FROM jobs j JOIN job_files f ON f.pandaid = j.pandaid AND f.type IN ('input', 'lib', 'zipinput')
  JOIN unnest(%(names)s::text[], %(paths)s::text[], %(begins)s::text[]) r (name, path, begins) ON starts_with(f.surl, r.begins)
 WHERE j.pandaid = ANY(%(readers)s::bigint[])"""
# Jobs that could not store outputs met where they write, those that met a folder away the one that they name.
_NOTE = f"""
WITH met AS (
    SELECT pandaid, says, storage, false AS away FROM ({_WRITTEN_BY}) written UNION ALL
    SELECT pandaid, split_part(replace(says, '{STORAGE_AWAY}', ''), '. ', 1), storage, true
      FROM ({_READ_BY}) read WHERE strpos(says, path) > 0),
hit AS (SELECT storage, count(*) AS n, bool_or(away) AS away, left((array_agg(says ORDER BY pandaid DESC))[1], 200) AS says
          FROM met GROUP BY storage),
told AS (
    INSERT INTO storage_troubles AS t (ddm_endpoint_name, failures, since, last, away)
    SELECT e.name, h.n, %(now)s, %(now)s, h.away FROM hit h JOIN storage_endpoints e ON e.name = h.storage ORDER BY e.name
    ON CONFLICT (ddm_endpoint_name) DO UPDATE SET
        failures = excluded.failures + CASE WHEN t.last > %(now)s - %(forgotten)s THEN t.failures ELSE 0 END,
        since = CASE WHEN t.last > %(now)s - %(forgotten)s THEN t.since ELSE excluded.since END, last = excluded.last,
        away = excluded.away
    RETURNING ddm_endpoint_name, failures)
SELECT h.storage, coalesce(h.says, '') FROM told t JOIN hit h ON h.storage = t.ddm_endpoint_name
 WHERE t.failures >= %(enough)s ORDER BY h.storage
"""
# Each UPDATE of endpoints, also of none, counts as a change of the grid, which wakes what waits: so only where there is one.
_CLOSE = """
UPDATE storage_endpoints e SET closed_why = c.says, closed_reads = t.away,
       closed_until = %(now)s + least(greatest(%(now)s - t.since, %(least)s), %(most)s)
  FROM unnest(%(names)s::text[], %(says)s::text[]) c (name, says) JOIN storage_troubles t ON t.ddm_endpoint_name = c.name
 WHERE e.name = c.name
"""
# What jobs have read shows that a folder is there, not that there is room.
_STORED = f"""
DELETE FROM storage_troubles WHERE ddm_endpoint_name IN (SELECT storage FROM ({_WRITTEN_BY}) written)
    OR away AND ddm_endpoint_name IN (SELECT storage FROM ({_READ_BY}) read)
RETURNING ddm_endpoint_name
"""
_OPEN = """
UPDATE storage_endpoints SET closed_until = NULL, closed_why = '', closed_reads = false WHERE name = ANY(%s::text[])
"""


class Met(NamedTuple):
    """Failed jobs by what they met: those whose outputs could not be stored, and those whose inputs' storage was away."""

    unstored: Sequence[int] = ()
    away: Sequence[int] = ()


def among(failures: Failures) -> Met:
    rows = [row for found in failures.by_task.values() for row in found]
    errors = {row.job_id: [JobError(*error) for error in row.errors] for row in rows}
    return Met(
        sorted(job for job, own in errors.items() if not_stored(own)),
        sorted(job for job, own in errors.items() if storage_away(own)),
    )


def note(cursor: psycopg.Cursor[Any], met: Met, now: datetime) -> None:
    """Jobs that met a storage in trouble. One statement, two where one is closed, none without such jobs; one more for those
    that met it away."""
    if met.unstored or met.away:
        values = _of(met.unstored, met.away)
        cursor.execute(_NOTE, {**values, "now": now, "forgotten": FORGOTTEN_AFTER, "enough": IN_SUCCESSION})
        close(cursor, dict(cursor.fetchall()), now)


def close(cursor: psycopg.Cursor[Any], found: Mapping[str, str], now: datetime) -> None:
    """Close storages in trouble, by what is said of each, for as long as it has gone on. One statement, none without any."""
    if found:
        values = {"names": texts(found), "says": texts(found.values()), "now": now, "least": LEAST, "most": MOST}
        cursor.execute(_CLOSE, values)


def reopen_these(cursor: psycopg.Cursor[Any], names: Iterable[str]) -> None:
    """These storages have shown that they work."""
    found = texts(names)
    cursor.execute("DELETE FROM storage_troubles WHERE ddm_endpoint_name = ANY(%s::text[])", [found])
    cursor.execute(_OPEN, [found])


def note_stored(cursor: psycopg.Cursor[Any], jobs: Sequence[int]) -> None:
    """Jobs that have stored their outputs: where they did, storage works. No statement while no storage is in trouble."""
    if jobs and _in_trouble():
        cursor.execute(_STORED, _of(jobs, jobs))
        gone = sorted(name for (name,) in cursor.fetchall())
        if gone:
            cursor.execute(_OPEN, [gone])


def _of(jobs: Sequence[int], readers: Sequence[int]) -> dict[str, Any]:
    """Values of the statements on jobs that write and jobs that read. One statement where there are such that read."""
    begins = storage_addresses(local_storages()) if readers else []
    names, paths, addresses = zip(*begins, strict=True) if begins else ((), (), ())
    return {
        "jobs": numbers(jobs),
        "analysis": texts(sorted(ANALYSIS_LABELS)),
        "readers": numbers(readers),
        "names": texts(names),
        "paths": texts(paths),
        "begins": texts(addresses),
    }


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
