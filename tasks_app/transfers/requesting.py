"""Rules are made and cancelled: in the transaction of what waits for them.

How to have data moved, and to go on when it is there:

1. `requesting.add_rules(cursor, [Wanted(kind, destination, files=[...], task_id=..., job_id=..., user=...)])`, in the
   transaction that makes something wait. A `WantedFile` names scope, name, size and adler32; where it is read from is
   chosen then, and anew after each failure. `requesting.dataset_rule(...)` wants all files of a dataset that are not there.
   Each returns the ids of rules. What is at the destination already costs no copy, and ends at the mover's next turn.
2. The agent `mover` claims requests (queued, active, done; or failed, after growing waits), copies, and counts on the rule
   by deltas: `files_done`, `bytes_done`, `files_failed`. A rule ends `done`, or `failed` with the cause, or `cancelled`.
3. Whoever waits asks for what has ended: `settling.ended(cursor, kind, limit)` returns rules of a kind that have ended and
   that nobody has acted upon, locked; `settling.settled(cursor, ids)` notes that it is done, in the same transaction.
   `settling.arrived(cursor, rule_ids)` names files that are there, for what goes on before a whole rule is done.
   `outcomes.transfer_ends` does so for copies of jobs' inputs and for outputs that are gathered.
4. `requesting.cancel(cursor, rule_ids, why)` ends rules that nobody wants any more; partial copies are removed by the mover.

`replicas.places_of` says where files are and in which state (available, tape, copying, bad), `replicas.mark_bad` that a copy
is no good.
`link_measures.write` puts what was measured of links into the network matrix.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import psycopg

from jedisite.agents.passes import kick
from jedisite.database.sql import numbers, take_ids, texts
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.transfers import replicas
from tasks_app.transfers.replicas import Name, Place
from tasks_app.transfers.rules.pace import Source, choose_source
from tasks_app.transfers.storages import Storage, local_storages, shut_from

ACTIVITIES: Final[Mapping[TransferKind, str]] = {
    TransferKind.GATHER: "Production Output",
    TransferKind.COPY: "Production Input",
    TransferKind.STAGE: "Staging",
}
"""Under which names the brokers count the files that are queued on links."""


class WantedFile(NamedTuple):
    """A file that is to be at the destination of a rule. Size in bytes, adler32 in hexadecimal.

    file_id   of the task's input, when it is one
    source    the endpoint where it lies, for what is in no catalogue yet; "" lets the places of the file decide
    """

    scope: str
    lfn: str
    size: int
    adler32: str
    file_id: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A rule that is to be made: what it is for, where to, and which files. Without a destination it waits for one."""

    kind: TransferKind
    destination: str
    files: Sequence[WantedFile]
    dataset: str = ""
    task_id: int | None = None
    job_id: int | None = None
    user: str = ""
    report: Any = None


def add_rules(cursor: psycopg.Cursor[Any], wanted: Sequence[Wanted]) -> list[int]:
    """Make these rules with a request a file, in the caller's transaction. Returns their ids, in order.

    A rule without files is done at once: whoever waits for it finds it so.
    """
    if not wanted:
        return []
    stores = local_storages()
    places = replicas.places_of(cursor, {(f.scope, f.lfn) for w in wanted for f in w.files if not f.source})
    ids = _store_rules(cursor, wanted)
    rows = [
        (
            rule_id,
            f.file_id,
            f.scope,
            f.lfn,
            f.size,
            f.adler32,
            _source(f, w.destination, places, stores),
            w.destination,
        )
        for rule_id, w in zip(ids, wanted, strict=True)
        for f in {(f.scope, f.lfn): f for f in w.files}.values()
    ]
    if rows:
        columns = list(zip(*rows, strict=True))
        cursor.execute(
            """INSERT INTO transfer_requests (rule_id, fileid, scope, lfn, bytes, adler32, source, destination, url, status,
                                              attempt, bytes_copied, lockedby, has_part, error)
               SELECT n.*, '', 'queued', 0, 0, '', false, ''
                 FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[],
                             %s::text[]) n""",
            [numbers(c) if n in (0, 1, 4) else texts(c) for n, c in enumerate(columns)],
        )
    kick("mover", at_most_every_s=0.3)
    return ids


def _store_rules(cursor: psycopg.Cursor[Any], wanted: Sequence[Wanted]) -> list[int]:
    ids = take_ids(cursor, "transfer_rules_id_seq", len(wanted))
    distinct = [{(f.scope, f.lfn): f.size for f in one.files} for one in wanted]
    cursor.execute(
        """INSERT INTO transfer_rules (id, kind, dataset, destination, activity, jeditaskid, pandaid, username, files, bytes,
                                       report, status, ended, files_done, files_failed, bytes_done, error, is_settled)
           SELECT n.id, n.kind, n.dataset, n.destination, n.activity, n.task, n.job, n.who, n.files, n.bytes, n.report::jsonb,
                  CASE WHEN n.files > 0 THEN 'queued' ELSE 'done' END, CASE WHEN n.files = 0 THEN clock_timestamp() END,
                  0, 0, 0, '', false
             FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::text[],
                         %s::bigint[], %s::bigint[], %s::text[])
                  n (id, kind, dataset, destination, activity, task, job, who, files, bytes, report)""",
        [
            numbers(ids),
            texts(one.kind for one in wanted),
            texts(one.dataset for one in wanted),
            texts(one.destination for one in wanted),
            texts(ACTIVITIES[one.kind] for one in wanted),
            numbers(one.task_id for one in wanted),
            numbers(one.job_id for one in wanted),
            texts(one.user for one in wanted),
            numbers(map(len, distinct)),
            numbers(sum(files.values()) for files in distinct),
            texts(None if one.report is None else json.dumps(one.report) for one in wanted),
        ],
    )
    return ids


def give_destinations(cursor: psycopg.Cursor[Any], destinations: Mapping[int, str]) -> int:
    """Rules that were made without a destination, and the requests for their files, get one. Returns how many rules did.

    Nobody serves them before. In the caller's transaction.
    """
    given = 0
    for rule, where in sorted(destinations.items()):
        cursor.execute(
            "UPDATE transfer_rules SET destination = %s WHERE id = %s AND destination = '' AND status = 'queued'",
            [where, rule],
        )
        given += cursor.rowcount
        cursor.execute(
            "UPDATE transfer_requests SET destination = %s WHERE rule_id = %s AND destination = '' AND status = 'queued'",
            [where, rule],
        )
    if given:
        kick("mover", at_most_every_s=0.3)
    return given


def _source(
    file: WantedFile, destination: str, places: Mapping[Name, Sequence[Place]], stores: Mapping[str, Storage]
) -> str:
    return file.source or source_of(places.get((file.scope, file.lfn), ()), destination, stores)


def source_of(places: Iterable[Place], destination: str, stores: Mapping[str, Storage], failed: str = "") -> str:
    """From which of its places a file is copied; "" when it has none here.

    At the destination itself it is read when it lies there already, and nothing is copied. A place that is away, as on a disk
    that is not mounted, or from which the way is closed, is waited for where there is no other.
    """
    there = [p.endpoint for p in replicas.readable(places, stores)]
    if destination in there and not stores[destination].is_tape:
        return destination
    site = stores[destination].site if destination in stores else ""
    found = [Source(name, stores[name].is_tape, stores[name].site == site) for name in there if name != destination]
    open_ones = [one for one in found if shut_from(one.endpoint, destination, stores) is None]
    at_hand = [one for one in open_ones if stores[one.endpoint].is_there]
    return choose_source(at_hand or open_ones or found, failed)


def dataset_rule(
    cursor: psycopg.Cursor[Any],
    kind: TransferKind,
    dataset: str,
    destination: str,
    *,
    task_id: int | None = None,
    user: str = "",
    lfns: Iterable[str] | None = None,
) -> int:
    """A rule on the files of a dataset that are not at its destination, or on those of these names. Returns its id."""
    cursor.execute(
        """SELECT f.scope, f.lfn, f.size, f.adler32, c.fileid
             FROM catalogue_files f JOIN catalogue_datasets d ON d.id = f.dataset_id
             LEFT JOIN jedi_datasets i ON i.jeditaskid = %(task)s AND i.datasetname = d.name AND i.type = 'input'
             LEFT JOIN jedi_dataset_contents c ON c.jeditaskid = i.jeditaskid AND c.datasetid = i.datasetid AND c.lfn = f.lfn
            WHERE d.name = %(dataset)s AND (%(lfns)s::text[] IS NULL OR f.lfn = ANY(%(lfns)s::text[]))
              AND (f.endpoint <> %(endpoint)s OR EXISTS (
                   SELECT 1 FROM file_replicas b WHERE (b.scope, b.lfn, b.endpoint) = (f.scope, f.lfn, f.endpoint)))
              AND NOT EXISTS (SELECT 1 FROM file_replicas r WHERE r.scope = f.scope AND r.lfn = f.lfn
                                 AND r.endpoint = %(endpoint)s AND r.status = 'available')
            ORDER BY f.lfn""",
        {
            "task": task_id,
            "dataset": dataset,
            "endpoint": destination,
            "lfns": None if lfns is None else texts(lfns),
        },
    )
    files = [WantedFile(*row) for row in cursor.fetchall()]
    return add_rules(cursor, [Wanted(kind, destination, files, dataset=dataset, task_id=task_id, user=user)])[0]


def cancel(cursor: psycopg.Cursor[Any], rules: Iterable[int], why: str) -> int:
    """Nobody wants what these rules are for any more. Those that have ended stay as they are. Returns how many were open."""
    cursor.execute(
        """WITH locked AS (
               SELECT id FROM transfer_rules WHERE id = ANY(%(ids)s::bigint[]) AND status IN ('queued', 'active')
                ORDER BY id FOR UPDATE),
           stopped AS (
               UPDATE transfer_requests q SET status = 'cancelled', ended = clock_timestamp(), error = %(why)s,
                      lockedby = '', lease_until = NULL
                FROM locked WHERE q.rule_id = locked.id AND q.status IN ('queued', 'active'))
           UPDATE transfer_rules r SET status = 'cancelled', ended = clock_timestamp(), error = %(why)s
             FROM locked WHERE r.id = locked.id""",
        {"ids": numbers(rules), "why": why[:500]},
    )
    return cursor.rowcount
