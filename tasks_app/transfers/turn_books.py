"""What came of a turn is written down: requests, replicas and rules, in one transaction.

Rules are locked before requests, as by whoever cancels. A request that is not ours any more changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import psycopg
from django.db import transaction

from jedisite.agents.passes import owner
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.domain.transfer_states import ReplicaStatus, TransferKind, TransferStatus
from tasks_app.transfers import replicas
from tasks_app.transfers.claiming import Held
from tasks_app.transfers.link_settings import MoverSettings
from tasks_app.transfers.readdressing import readdress
from tasks_app.transfers.replicas import Place
from tasks_app.transfers.requesting import source_of
from tasks_app.transfers.rules.pace import next_try
from tasks_app.transfers.storages import Storage


@dataclass(frozen=True, slots=True)
class Step:
    """What a turn did for a request.

    status       done; active: it goes on next time; queued: it failed, and is tried again if it may be
    at           up to when its part of the link is used; the end of one that is done
    url          where the copy lies; `source_url`: where it was read
    bad_source   the source is no good
    waits        there is no room for it yet, or a storage is away: not an attempt that failed. Without an error the way is closed
    """

    held: Held
    status: TransferStatus
    at: datetime
    copied: int = 0
    url: str = ""
    source_url: str = ""
    error: str = ""
    bad_source: bool = False
    waits: bool = False


def book(steps: Sequence[Step], settings: MoverSettings, stores: Mapping[str, Storage], now: datetime) -> int:
    """Write down what a turn did. Returns how many requests ended."""
    if not steps:
        return 0
    with transaction.atomic(), hot_cursor() as cursor:
        others = _lock_rules(cursor, steps)
        mine = _ours(cursor, steps)
        steps = [s for s in steps if s.held.id in mine]
        done = [s for s in steps if s.status == TransferStatus.DONE]
        _go_on(cursor, [s for s in steps if s.status == TransferStatus.ACTIVE])
        _end_well(cursor, done)
        told = _end_others(cursor, done, others)
        failed = _try_again(cursor, [s for s in steps if s.status == TransferStatus.QUEUED], settings, stores, now)
        _count(cursor, [(s.held.rule_id, s.held.size) for s in done] + told, failed, now)
        return len(done) + len(told) + len(failed)


def _ours(cursor: psycopg.Cursor[Any], steps: Sequence[Step]) -> set[int]:
    cursor.execute(
        """SELECT q.id FROM transfer_requests q JOIN unnest(%s::bigint[], %s::bigint[]) n (id, attempt) USING (id)
            WHERE q.status = 'active' AND q.lockedby = %s AND q.attempt = n.attempt ORDER BY q.id FOR UPDATE OF q""",
        [numbers(s.held.id for s in steps), numbers(s.held.attempt for s in steps), owner()],
    )
    return {row[0] for row in cursor.fetchall()}


def _go_on(cursor: psycopg.Cursor[Any], steps: Sequence[Step]) -> None:
    if steps:
        cursor.execute(
            """UPDATE transfer_requests q SET bytes_copied = n.copied, moved_at = n.at, started = n.started, lockedby = '',
                      lease_until = NULL
                 FROM unnest(%s::bigint[], %s::bigint[], %s::timestamptz[], %s::timestamptz[]) n (id, copied, at, started)
                WHERE q.id = n.id""",
            [
                numbers(s.held.id for s in steps),
                numbers(s.copied for s in steps),
                [s.at for s in steps],
                [s.held.started for s in steps],
            ],
        )


def _end_well(cursor: psycopg.Cursor[Any], steps: Sequence[Step]) -> None:
    if not steps:
        return
    cursor.execute(
        """UPDATE transfer_requests q SET status = 'done', bytes_copied = n.copied, url = n.url, ended = n.at, moved_at = n.at,
                  started = n.started, has_part = false, lockedby = '', lease_until = NULL, next_try = NULL
             FROM unnest(%s::bigint[], %s::bigint[], %s::timestamptz[], %s::timestamptz[], %s::text[])
                  n (id, copied, at, started, url) WHERE q.id = n.id""",
        [
            numbers(s.held.id for s in steps),
            numbers(s.copied for s in steps),
            [s.at for s in steps],
            [s.held.started for s in steps],
            texts(s.url for s in steps),
        ],
    )
    # What is gathered comes into the catalogue with its job, and has its first place at the destination.
    replicas.add(
        cursor,
        [
            (s.held.scope, s.held.lfn, s.held.source, s.source_url)
            if s.held.kind == TransferKind.GATHER
            else (s.held.scope, s.held.lfn, s.held.destination, s.url)
            for s in steps
            if s.held.source != s.held.destination
        ],
    )


# From the index of files that are under way. What is gathered has to lie where its own job put it.
_OTHERS: Final = """
  FROM unnest(%(scopes)s::text[], %(lfns)s::text[], %(destinations)s::text[], %(sizes)s::bigint[], %(sums)s::text[],
              %(urls)s::text[], %(at)s::timestamptz[]) n (scope, lfn, destination, bytes, adler32, url, at)
  JOIN transfer_requests q ON q.scope = n.scope AND q.lfn = n.lfn AND q.status IN ('queued', 'active')
                          AND q.destination = n.destination AND q.bytes = n.bytes AND q.adler32 = n.adler32
  JOIN transfer_rules r ON r.id = q.rule_id AND r.kind <> 'gather'
 WHERE q.status = 'queued'
"""
_LOCK_RULES: Final = f"""
SELECT id FROM transfer_rules WHERE id = ANY(%(rules)s::bigint[]) OR id IN (SELECT q.rule_id {_OTHERS}) ORDER BY id FOR UPDATE
"""  # noqa: S608 - constants
_END_OTHERS: Final = f"""
WITH others AS MATERIALIZED (
    SELECT DISTINCT ON (q.id) q.id, n.url, n.at {_OTHERS} AND q.rule_id = ANY(%(rules)s::bigint[]) ORDER BY q.id)
UPDATE transfer_requests q SET status = 'done', bytes_copied = q.bytes, url = o.url, ended = o.at, started = NULL,
       moved_at = NULL, next_try = NULL, error = ''
  FROM others o WHERE q.id = o.id AND q.status = 'queued'
RETURNING q.rule_id, q.bytes
"""  # noqa: S608 - constants


def _arrived(steps: Sequence[Step]) -> dict[str, Any]:
    """What _OTHERS asks for: the inputs that have arrived."""
    here = [s for s in steps if s.status == TransferStatus.DONE and s.held.kind != TransferKind.GATHER]
    return {
        "scopes": texts(s.held.scope for s in here),
        "lfns": texts(s.held.lfn for s in here),
        "destinations": texts(s.held.destination for s in here),
        "sizes": numbers(s.held.size for s in here),
        "sums": texts(s.held.adler32 for s in here),
        "urls": texts(s.url for s in here),
        "at": [s.at for s in here],
    }


def _lock_rules(cursor: psycopg.Cursor[Any], steps: Sequence[Step]) -> set[int]:
    """Lock the rules of these steps, and those that wait for what has arrived by them, in one order. Returns the latter."""
    own = {s.held.rule_id for s in steps}
    cursor.execute(_LOCK_RULES, {**_arrived(steps), "rules": numbers(sorted(own))})
    return {rule for (rule,) in cursor.fetchall()} - own


def _end_others(cursor: psycopg.Cursor[Any], done: Sequence[Step], rules: Collection[int]) -> list[tuple[int, int]]:
    """Requests of these locked rules whose file has arrived by another's are done, too: rule and bytes of each.

    They have copied nothing, so no rate counts them. What an attempt of theirs has left the mover removes.
    """
    if not rules or not done:
        return []
    cursor.execute(_END_OTHERS, {**_arrived(done), "rules": numbers(sorted(rules))})
    return cursor.fetchall()


def _try_again(
    cursor: psycopg.Cursor[Any],
    steps: Sequence[Step],
    settings: MoverSettings,
    stores: Mapping[str, Storage],
    now: datetime,
) -> list[Step]:
    """Those that failed get another source, and wait; returns those that are not tried again."""
    if not steps:
        return []
    for s in steps:
        if s.bad_source and s.held.source:
            bad = Place(s.held.scope, s.held.lfn, s.held.source, s.source_url, ReplicaStatus.BAD)
            replicas.mark_bad(cursor, [bad], f"the mover found that {s.error}")
            readdress(cursor, bad)
    places = replicas.places_of(cursor, [(s.held.scope, s.held.lfn) for s in steps])
    rows, failed = [], []
    for s in steps:
        found = places[s.held.scope, s.held.lfn]
        # What a job has just stored is in no catalogue yet: there is only the place where it lies.
        source = source_of(found, s.held.destination, stores, failed=s.held.source)
        if s.waits:
            source = source_of(found, s.held.destination, stores) or s.held.source
        if s.held.kind == TransferKind.GATHER:
            source = s.held.source
        due = next_try(s.held.attempt, settings.attempts, settings.wait, now)
        if s.waits:
            due = now + settings.wait if s.error else now
        if due is not None and s.bad_source and source not in ("", s.held.source):
            due = now
        if due is None:
            failed.append(s)
            source = s.held.source  # whose link it was that failed
        rows.append((s.held.id, "failed" if due is None else "queued", source, due, s.error, int(s.waits)))
    ids, statuses, sources, dues, errors, waits = zip(*rows, strict=True)
    cursor.execute(
        """UPDATE transfer_requests q SET status = n.status, source = n.source, next_try = n.due, error = left(n.error, 500),
                  moved_at = n.at, ended = CASE WHEN n.status = 'failed' THEN n.at END, bytes_copied = 0, lockedby = '',
                  lease_until = NULL, attempt = q.attempt - n.waits
             FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::timestamptz[], %s::text[], %s::bigint[], %s::timestamptz[])
                  n (id, status, source, due, error, waits, at)
            WHERE q.id = n.id""",
        [numbers(ids), texts(statuses), texts(sources), list(dues), texts(errors), numbers(waits), [now] * len(ids)],
    )
    return failed


def _count(cursor: psycopg.Cursor[Any], done: Sequence[tuple[int, int]], failed: Sequence[Step], now: datetime) -> None:
    """Rules count by deltas, and end with their last file. `done`: rule and bytes of each file that has arrived."""
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    errors: dict[int, str] = {}
    for rule, size in done:
        sums[rule][0] += 1
        sums[rule][1] += size
    for s in failed:
        sums[s.held.rule_id][2] += 1
        errors.setdefault(s.held.rule_id, f"{s.held.lfn} could not be copied to {s.held.destination}: {s.error}")
    if not sums:
        return
    ids = sorted(sums)
    cursor.execute(
        """UPDATE transfer_rules r SET files_done = files_done + n.done, bytes_done = bytes_done + n.bytes,
                  files_failed = files_failed + n.failed, error = CASE WHEN r.error = '' THEN left(n.error, 500) ELSE r.error END,
                  status = CASE WHEN files_done + n.done + files_failed + n.failed < files THEN 'active'
                                WHEN files_failed + n.failed > 0 THEN 'failed' ELSE 'done' END,
                  ended = CASE WHEN files_done + n.done + files_failed + n.failed >= files THEN %s::timestamptz END
             FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[]) n (id, done, bytes, failed, error)
            WHERE r.id = n.id AND r.status IN ('queued', 'active')""",
        [
            now,
            numbers(ids),
            *(numbers(sums[i][n] for i in ids) for n in range(3)),
            texts(errors.get(i, "") for i in ids),
        ],
    )
