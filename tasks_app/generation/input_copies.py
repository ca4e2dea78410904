"""Inputs that are not at the storages of a queue are copied there before its jobs are handed out: they are assigned until then.

Asked for only where the last look-up of replicas says that an input is not complete at the queue, and between storages of this
machine: elsewhere pilots fetch what they need themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from jedisite.database.sql import numbers, texts
from tasks_app.domain.states import JobStatus
from tasks_app.domain.transfer_states import ReplicaStatus, TransferKind
from tasks_app.lifecycle.job_moves import move_some
from tasks_app.transfers import replicas
from tasks_app.transfers.requesting import Wanted, WantedFile, add_rules
from tasks_app.transfers.storages import Storage, local_storages

ANALYSIS = frozenset({"user", "panda"})


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """Where inputs of jobs at a queue are copied to, and the endpoints at which the queue reads."""

    destination: str
    reads: tuple[str, ...]


def copy_place(needs: TaskNeeds, site: SiteView, label: str) -> CopyPlace | None:
    """None when nothing has to be copied, or nothing here could do so. No statement where all input is at the queue."""
    reads = _reads(site, label)
    away = [one.replicas for one in needs.inputs if one.replicas and not _is_at(one.replicas, reads)]
    if not reads or not away:
        return None
    stores = local_storages()
    if not any(name in stores for places in away for name in places):
        return None
    return _place(reads, stores)


def place_of_merging(site: SiteView, label: str) -> CopyPlace | None:
    """The same for merge jobs at another queue than that whose jobs have written the files: which of them are there is seen when
    they are asked for."""
    return _place(_reads(site, label), local_storages())


def reads_nearby(needs: TaskNeeds, site: SiteView, label: str) -> tuple[str, ...]:
    """The endpoints at which jobs at a queue read inputs that are in several places, one of them there; empty where none is.
    No statement."""
    reads = _reads(site, label)
    return (
        reads if any(len(one.replicas) > 1 and any(at in one.replicas for at in reads) for one in needs.inputs) else ()
    )


def _reads(site: SiteView, label: str) -> tuple[str, ...]:
    return (site.analysis_inputs if label in ANALYSIS else ()) or site.inputs


def _place(reads: tuple[str, ...], stores: Mapping[str, Storage]) -> CopyPlace | None:
    there = [name for name in reads if name in stores and not stores[name].is_tape and not stores[name].why_not_written]
    return CopyPlace(there[0], reads) if there else None


def _is_at(places: Any, reads: Sequence[str]) -> bool:
    return any(name in places and places[name].complete and not places[name].is_tape for name in reads)


_INPUTS = """
SELECT f.pandaid, f.fileid, f.scope, f.lfn, f.fsize, f.checksum, coalesce(f.surl, ''), j.jeditaskid, coalesce(j.produsername, '')
  FROM job_files f JOIN jobs j USING (pandaid)
 WHERE f.pandaid = ANY(%s::bigint[]) AND f.type = 'input' AND f.scope IS NOT NULL AND f.fsize IS NOT NULL
   AND f.checksum LIKE 'ad:%%'
 ORDER BY f.pandaid, f.row_id
"""


def request(cursor: psycopg.Cursor[Any], jobs: Sequence[int], place: CopyPlace, *, by: str) -> int:
    """Rules on what these jobs lack at their queue. Those that lack nothing are activated. Returns how many wait."""
    cursor.execute(_INPUTS, [numbers(jobs)])
    rows = cursor.fetchall()
    stores = local_storages()
    known = replicas.places_of(cursor, {(row[2], row[3]) for row in rows})
    lacking: dict[int, list[WantedFile]] = defaultdict(list)
    whose: dict[int, tuple[int | None, str]] = {}
    moved: list[tuple[int, str, str, str]] = []
    for job, file_id, scope, lfn, size, checksum, surl, task_id, user in rows:
        found = known[scope, lfn]
        if not replicas.readable(found, stores):
            continue  # in no storage of this machine: the pilot reads it where it lies
        here = [one for one in found if one.endpoint in place.reads and one.status == ReplicaStatus.AVAILABLE]
        if not here:
            whose[job] = task_id, user
            lacking[job].append(WantedFile(scope, lfn, size, checksum.removeprefix("ad:"), file_id))
        elif surl not in {one.url for one in here}:
            moved.append((job, scope, lfn, here[0].url))
    give_addresses(cursor, moved)
    wanted = [
        Wanted(TransferKind.COPY, place.destination, files, task_id=whose[job][0], job_id=job, user=whose[job][1])
        for job, files in lacking.items()
    ]
    add_rules(cursor, wanted)
    free = [job for job in jobs if job not in lacking]
    if free:
        reason = "its input is at the queue"
        move_some(cursor, free, JobStatus.ASSIGNED, JobStatus.ACTIVATED, by=by, reason=reason)
    return len(lacking)


# Tape is read by the mover only.
_READ_NEARBY = """
UPDATE job_files f SET surl = n.url FROM (
    SELECT DISTINCT ON (i.row_id) i.row_id, r.url FROM job_files i
      JOIN file_replicas r ON r.lfn = i.lfn AND r.scope = i.scope AND r.status = 'available'
       AND r.endpoint = ANY(%(reads)s::text[])
     WHERE i.pandaid = ANY(%(jobs)s::bigint[]) AND i.type = 'input'
       AND NOT EXISTS (SELECT 1 FROM storage_endpoints e WHERE e.name = r.endpoint
                          AND (e.is_tape OR e.blacklisted_read OR e.closed_reads))
       AND NOT EXISTS (SELECT 1 FROM catalogue_files k WHERE k.lfn = i.lfn AND k.scope = i.scope AND k.url = i.surl
                          AND k.endpoint = ANY(%(reads)s::text[]))
     ORDER BY i.row_id, array_position(%(reads)s::text[], r.endpoint)) n
 WHERE f.pandaid = ANY(%(jobs)s::bigint[]) AND f.row_id = n.row_id
"""


def read_nearby(cursor: psycopg.Cursor[Any], jobs: Sequence[int], reads: Sequence[str]) -> None:
    """Where an input's first place is not among what their queue reads, and a further replica is, jobs read that."""
    cursor.execute(_READ_NEARBY, {"jobs": numbers(jobs), "reads": texts(reads)})


def give_addresses(cursor: psycopg.Cursor[Any], files: Sequence[tuple[int, str, str, str]]) -> None:
    """Jobs read these inputs elsewhere than so far: job, scope, name and address."""
    if files:
        jobs, scopes, lfns, urls = zip(*files, strict=True)
        cursor.execute(
            """UPDATE job_files f SET surl = n.url
                 FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[]) n (job, scope, lfn, url)
                WHERE f.pandaid = n.job AND f.type = 'input' AND f.scope = n.scope AND f.lfn = n.lfn""",
            [numbers(jobs), texts(scopes), texts(lfns), texts(urls)],
        )
