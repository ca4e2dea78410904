"""Requests get their turn: as many of a link as may be copied at a time, and those that an earlier turn has begun."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import psycopg
from django.db import transaction

from jedisite.agents.passes import is_dead, owner
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.transfers.link_settings import MoverSettings
from tasks_app.transfers.storages import Storage, shut

LEASE: Final = timedelta(minutes=5)
"""After so long without a sign of life a request is taken over from another machine's mover."""
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('mover claims', 0))"
"""One claims at a time: the number of transfers of a link is counted, and no two requests bring one file to one place."""

Link = tuple[str, str]


class Held(NamedTuple):
    """A request that is ours for this turn. Times are those of its attempt; `active` transfers share its link."""

    id: int
    rule_id: int
    kind: TransferKind
    scope: str
    lfn: str
    size: int
    adler32: str
    source: str
    destination: str
    attempt: int
    started: datetime
    moved_at: datetime
    created: datetime
    active: int

    @property
    def link(self) -> Link:
        return self.source, self.destination


_LOADS = """
SELECT source, destination, count(*) FILTER (WHERE status = 'active'),
       count(*) FILTER (WHERE status = 'queued' AND (next_try IS NULL OR next_try <= %(now)s))
  FROM transfer_requests WHERE status IN ('queued', 'active') AND destination <> '' GROUP BY 1, 2 ORDER BY 1, 2
"""
# A file that is being brought to a place, or twice among those picked, waits for its turn: it is there then.
_CLAIM = """
WITH links AS (
    SELECT * FROM unnest(%(sources)s::text[], %(destinations)s::text[], %(room)s::bigint[]) l (source, destination, room)),
picked AS MATERIALIZED (
    SELECT q.* FROM links l CROSS JOIN LATERAL (
        SELECT id, scope, lfn, destination FROM transfer_requests q
         WHERE q.status = 'queued' AND q.source = l.source AND q.destination = l.destination
           AND (q.next_try IS NULL OR q.next_try <= %(now)s)
           AND NOT EXISTS (SELECT 1 FROM transfer_requests a WHERE a.status = 'active' AND a.scope = q.scope
                              AND a.lfn = q.lfn AND a.destination = q.destination)
         ORDER BY q.id LIMIT l.room FOR UPDATE SKIP LOCKED) q),
chosen AS (SELECT DISTINCT ON (scope, lfn, destination) id FROM picked ORDER BY scope, lfn, destination, id)
UPDATE transfer_requests q SET status = 'active', attempt = attempt + 1, started = %(now)s, moved_at = %(now)s, has_part = true,
       bytes_copied = 0, error = ''
  FROM chosen WHERE q.id = chosen.id
RETURNING q.id
"""
_HOLD = """
WITH free AS (
    SELECT id FROM transfer_requests
     WHERE status = 'active' AND (lease_until IS NULL OR lease_until < %(now)s) AND id <> ALL(%(without)s::bigint[])
     ORDER BY moved_at, id LIMIT %(most)s FOR UPDATE SKIP LOCKED)
UPDATE transfer_requests q SET lockedby = %(me)s, lease_until = %(until)s FROM free, transfer_rules r
 WHERE q.id = free.id AND r.id = q.rule_id
RETURNING q.id, q.rule_id, r.kind, q.scope, q.lfn, q.bytes, q.adler32, q.source, q.destination, q.attempt, q.started, q.moved_at,
          q.created, (SELECT count(*) FROM transfer_requests a WHERE a.status = 'active' AND a.source = q.source
                                                     AND a.destination = q.destination)
"""


def claim(
    settings: MoverSettings, stores: Mapping[str, Storage], now: datetime, most: int, without: list[int]
) -> list[Held]:
    """Requests that are ours for a turn, up to `most`, but for those that had theirs (`without`); oldest first."""
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute(_LOCK)
        cursor.execute(_LOADS, {"now": now})
        room = _room(cursor.fetchall(), settings, stores)
        if room:
            cursor.execute(
                _CLAIM,
                {
                    "sources": texts(source for source, _ in room),
                    "destinations": texts(destination for _, destination in room),
                    "room": numbers(room.values()),
                    "now": now,
                },
            )
        cursor.execute(
            _HOLD, {"me": owner(), "until": now + LEASE, "now": now, "most": most, "without": numbers(without)}
        )
        rows = sorted(cursor.fetchall())
        held = [Held._make((*row[:2], TransferKind(row[2]), *row[3:])) for row in rows]
    _begin_rules({one.rule_id for one in held}, now)
    return held


def _room(
    loads: list[tuple[str, str, int, int]], settings: MoverSettings, stores: Mapping[str, Storage]
) -> dict[Link, int]:
    """How many more transfers each link takes, none where the way is closed; those of one tape share its drives."""
    tapes = {source for source, _, _, _ in loads if source in stores and stores[source].is_tape}
    drives = {
        tape: settings.drives(tape) - sum(active for source, _, active, _ in loads if source == tape) for tape in tapes
    }
    room = {}
    for source, destination, active, queued in loads:
        if shut(source, destination, stores):
            continue
        free = settings.pace(source, destination, source in tapes).at_once - active
        if source in tapes:
            free = min(free, drives[source])
        if (take := min(free, queued)) > 0:
            room[source, destination] = take
            if source in tapes:
                drives[source] -= take
    return room


def _begin_rules(rules: set[int], now: datetime) -> None:
    """Apart from the claim: whoever cancels locks the rule first."""
    if rules:
        with transaction.atomic(), hot_cursor() as cursor:
            cursor.execute(
                """WITH locked AS (SELECT id FROM transfer_rules WHERE id = ANY(%s::bigint[]) AND status = 'queued'
                                    ORDER BY id FOR UPDATE)
                   UPDATE transfer_rules r SET status = 'active', started = %s FROM locked WHERE r.id = locked.id""",
                [numbers(sorted(rules)), now],
            )


def free_dead(cursor: psycopg.Cursor[Any]) -> int:
    """Requests of movers of this host that were killed may be gone on with at once. Returns how many there are."""
    cursor.execute(
        "SELECT DISTINCT lockedby FROM transfer_requests WHERE status = 'active' AND lease_until IS NOT NULL"
    )
    dead = [holder for (holder,) in cursor.fetchall() if holder and is_dead(holder)]
    if not dead:
        return 0
    cursor.execute(
        """UPDATE transfer_requests SET lockedby = '', lease_until = NULL
            WHERE status = 'active' AND lockedby = ANY(%s::text[])""",
        [texts(dead)],
    )
    return cursor.rowcount
