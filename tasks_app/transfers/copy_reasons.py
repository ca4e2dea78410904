"""Why the files of a job, a task, or of anybody do not arrive: their open requests by link and by how they fare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import psycopg

from jedisite.database.sql import hot_cursor, texts
from tasks_app.domain import job_refusal_codes as codes
from tasks_app.domain.transfer_states import ReplicaStatus, TransferKind
from tasks_app.transfers import replicas
from tasks_app.transfers.link_settings import MoverSettings, mover_settings
from tasks_app.transfers.rules.copy_waits import (
    AWAY,
    IS_FULL,
    NO_COPIES,
    NO_ROOM,
    Copies,
    CopyWaits,
    Load,
    Reason,
    joined,
    reason_of,
)
from tasks_app.transfers.storages import Storage, local_storages, shut

MOST_TASKS: Final = 10_000
"""Tasks that are named of one reason, so that each is counted once where it waits for several links."""

# Errors of one kind differ in their numbers: the oldest file stands for all.
_COPIES: Final = """
WITH mine AS (
    SELECT r.jeditaskid, q.id, q.source, q.destination, q.bytes, q.bytes_copied, q.next_try, q.created,
           CASE WHEN q.status = 'active' THEN 'active'
             WHEN q.error LIKE ANY (%(rooms)s::text[]) THEN 'room' WHEN q.error LIKE %(away)s THEN 'away'
             WHEN q.error <> '' THEN 'retried'
             WHEN EXISTS (SELECT 1 FROM transfer_requests a WHERE a.status = 'active' AND a.scope = q.scope AND a.lfn = q.lfn
                                                            AND a.destination = q.destination) THEN 'other'
             ELSE 'queued' END AS way
      FROM transfer_rules r JOIN transfer_requests q ON q.rule_id = r.id AND q.status IN ('queued', 'active')
     WHERE r.status IN ('queued', 'active') AND r.kind = ANY(%(kinds)s::text[]) AND {whose})
SELECT g.source, g.destination, g.way, g.files, g.bytes, g.copied, e.error, e.attempt, g.again, g.since, e.scope, e.lfn, g.tasks,
       e.moved_at
  FROM (SELECT source, destination, way, count(*) AS files, sum(bytes)::bigint AS bytes, sum(bytes_copied)::bigint AS copied,
               min(id) AS oldest, min(next_try) AS again, min(created) AS since,
               (array_agg(DISTINCT jeditaskid) FILTER (WHERE jeditaskid IS NOT NULL))[1:%(most)s] AS tasks
          FROM mine GROUP BY 1, 2, 3) g
  JOIN transfer_requests e ON e.id = g.oldest ORDER BY 1, 2, 3
"""
_FILES: Final = """
SELECT coalesce(sum(files), 0)::bigint, coalesce(sum(files - files_done - files_failed), 0)::bigint,
       coalesce(array_agg(DISTINCT destination ORDER BY destination) FILTER (WHERE destination <> ''), '{{}}')
  FROM transfer_rules r WHERE r.status IN ('queued', 'active') AND r.kind = ANY(%(kinds)s::text[]) AND {whose}
"""
_WANTED: Final = """
SELECT source, destination, count(*), sum(bytes - bytes_copied)::bigint FROM transfer_requests
 WHERE source = ANY(%s::text[]) AND (status = 'active' OR status = 'queued' AND error = '') GROUP BY 1, 2
"""
_WHOSE: Final[Mapping[str, str]] = {"job_id": "r.pandaid = %(of)s", "task_id": "r.jeditaskid = %(of)s"}


def copies_of(now: datetime, *kinds: TransferKind, **whose: int) -> CopyWaits:
    """What the task with a `task_id` or the job with a `job_id` waits for, of rules of these kinds that are open.

    Three statements, one without open rules; one more where a file has no source.
    """
    ((name, number),) = whose.items()
    values = {"kinds": texts(kinds), "of": number}
    with hot_cursor() as cursor:
        cursor.execute(_FILES.format(whose=_WHOSE[name]), values)
        row = cursor.fetchone()
        if row is None or not row[1]:
            return NO_COPIES
        found = _copies(cursor, _WHOSE[name], values)
        reasons = [reason for _, reason in _reasons(cursor, found, now)]
    return CopyWaits(int(row[0]), int(row[1]), tuple(row[2]), joined(reasons))


def all_copies(now: datetime) -> list[tuple[Copies, Reason]]:
    """Inputs of anybody that have not arrived, with the reason. As many statements."""
    with hot_cursor() as cursor:
        found = _copies(cursor, "true", {"kinds": texts((TransferKind.COPY, TransferKind.STAGE))})
        return _reasons(cursor, found, now)


def _copies(cursor: psycopg.Cursor[Any], whose: str, values: Mapping[str, Any]) -> list[Copies]:
    patterns = {"rooms": texts((f"{NO_ROOM}%", f"{IS_FULL}%")), "away": f"{AWAY % '%'}%", "most": MOST_TASKS}
    cursor.execute(_COPIES.format(whose=whose), {**values, **patterns})
    return [Copies(*(*row[:10], row[10:12], tuple(row[12] or ()), row[13])) for row in cursor.fetchall()]


def _reasons(cursor: psycopg.Cursor[Any], found: Sequence[Copies], now: datetime) -> list[tuple[Copies, Reason]]:
    if not found:
        return []
    settings, stores = mover_settings(), local_storages()
    cursor.execute(_WANTED, [texts(sorted({one.source for one in found if one.source}))])
    wanted = {(source, destination): (number, left) for source, destination, number, left in cursor.fetchall()}
    reads: Counter[str] = Counter()
    for (source, _), (number, _) in wanted.items():
        reads[source] += number
    lost = [one.example for one in found if not one.source]
    places = replicas.places_of(cursor, lost) if lost else {}
    told = []
    for one in found:
        link = one.source, one.destination
        load = load_of(*link, wanted.get(link, (0, 0)), reads[one.source], settings, stores)
        lacks = "" if one.source else _lacks(places[one.example], stores)
        told.append((one, reason_of(one, load, now, settings.attempts, lacks)))
    return told


def load_of(
    source: str,
    destination: str,
    wanted: tuple[int, int],
    reads: int,
    settings: MoverSettings,
    stores: Mapping[str, Storage],
) -> Load:
    """What a link gives, and how many files and bytes want it: what is being copied, and what waits for its first attempt."""
    is_tape = source in stores and stores[source].is_tape
    pace, drives = settings.pace(source, destination, is_tape), settings.drives(source) if is_tape else None
    files, left = wanted
    closed = _closed(source, destination, stores)
    latency = pace.latency.total_seconds()
    return Load(pace.at_once, files, left, pace.mbps, settings.turn_bytes, drives, reads, latency, closed)


def _closed(source: str, destination: str, stores: Mapping[str, Storage]) -> tuple[str, str]:
    """Why nothing is copied between two storages, as far as that is known without looking at their folders."""
    for name in filter(None, (destination, source)):
        if name not in stores:
            return codes.COPY_STORAGE_GONE, f"{name} is no storage of this machine"
    return shut(source, destination, stores) or ("", "")


def _lacks(places: Sequence[replicas.Place], stores: Mapping[str, Storage]) -> str:
    """Why no place of a file can be read."""
    said = []
    for place in places:
        if place.status == ReplicaStatus.COPYING:
            continue
        store = stores.get(place.endpoint)
        if place.status == ReplicaStatus.BAD:
            said.append(f"the one at {place.endpoint} is bad")
        elif store is None:
            said.append(f"{place.endpoint} is no storage of this machine")
        elif store.why_not_read:
            said.append(store.why_not_read)
    return " and ".join(said)
