"""Replicas of datasets as last reported by data management: stored, and read for a decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from brokerage_app.models import DatasetReplica, ReplicaLookup
from brokerage_app.vocabulary.needs import Replica
from jedisite.database.sql import hot_cursor, numbers, texts

MB = 1_000_000
STALE_AFTER = timedelta(hours=1)
"""Data management is asked again when its answer is so old."""


@dataclass(frozen=True, slots=True)
class Found:
    """The answer of data management on a dataset: its files and bytes, and (endpoint, files, bytes, complete) of its replicas."""

    dataset: str
    files: int
    bytes: int
    replicas: Sequence[tuple[str, int, int, bool]]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A dataset with its replicas by endpoint. `asked_at` is None when they have not been looked up yet."""

    files: int = 0
    size_mb: float = 0.0
    replicas: dict[str, Replica] | None = None
    asked_at: datetime | None = None


_ASKED = """
INSERT INTO dataset_replica_lookups (datasetname, nfiles, bytes, ts)
SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::timestamptz[]) AS n (name, files, bytes, ts) ORDER BY name
    ON CONFLICT (datasetname) DO UPDATE SET nfiles = excluded.nfiles, bytes = excluded.bytes, ts = excluded.ts
"""
_GONE = """
DELETE FROM dataset_replicas r WHERE r.datasetname = ANY(%s::text[])
   AND NOT EXISTS (SELECT 1 FROM unnest(%s::text[], %s::text[]) AS n (name, endpoint)
                    WHERE n.name = r.datasetname AND n.endpoint = r.endpoint)
"""
_MORE = """
SELECT DISTINCT n.name FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::boolean[]) AS n (name, endpoint, files, complete)
  LEFT JOIN dataset_replicas r ON r.datasetname = n.name AND r.endpoint = n.endpoint
 WHERE r.endpoint IS NULL OR n.files > r.nfiles OR n.complete AND NOT r.complete
"""
_HELD = """
INSERT INTO dataset_replicas AS r (datasetname, endpoint, nfiles, bytes, complete, ts)
SELECT n.*, %s FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::boolean[])
                 AS n (name, endpoint, files, bytes, complete) ORDER BY name, endpoint
    ON CONFLICT (datasetname, endpoint) DO UPDATE
   SET nfiles = excluded.nfiles, bytes = excluded.bytes, complete = excluded.complete, ts = excluded.ts
"""
_READ = """
SELECT l.datasetname, l.nfiles, l.bytes, l.ts, r.endpoint, r.nfiles, r.bytes, r.complete, coalesce(e.is_tape, false)
  FROM dataset_replica_lookups l LEFT JOIN dataset_replicas r USING (datasetname)
  LEFT JOIN storage_endpoints e ON e.name = r.endpoint
 WHERE l.datasetname = ANY(%s::text[]) ORDER BY l.datasetname, r.endpoint
"""


def keep(found: Iterable[Found], now: datetime) -> list[str]:
    """Store the answers of data management; replicas that it no longer names are deleted.

    Returns the names of datasets of which there is more somewhere than was known.
    """
    datasets = sorted({one.dataset: one for one in found}.values(), key=lambda one: one.dataset)
    if not datasets:
        return []
    names = texts(one.dataset for one in datasets)
    rows = [(one.dataset, *row) for one in datasets for row in one.replicas]
    owners, endpoints = texts(row[0] for row in rows), texts(row[1] for row in rows)
    with transaction.atomic(), hot_cursor() as cursor:
        sizes = [numbers(one.files for one in datasets), numbers(one.bytes for one in datasets)]
        cursor.execute(_ASKED, [names, *sizes, [now] * len(datasets)])
        cursor.execute(_GONE, [names, owners, endpoints])
        files, complete = numbers(row[2] for row in rows), numbers(row[4] for row in rows)
        cursor.execute(_MORE, [owners, endpoints, files, complete])
        more = [name for (name,) in cursor.fetchall()]
        cursor.execute(_HELD, [now, owners, endpoints, files, numbers(row[3] for row in rows), complete])
    return more


def whereabouts(names: Iterable[str]) -> dict[str, Whereabouts]:
    """Stored replicas of datasets, by name. One statement; datasets that were never looked up have none."""
    wanted = sorted(set(names))
    found = {name: Whereabouts() for name in wanted}
    if not wanted:
        return found
    with hot_cursor() as cursor:
        cursor.execute(_READ, [texts(wanted)])
        for name, files, size, at, endpoint, held, held_size, complete, is_tape in cursor:
            known = found[name]
            if known.replicas is None:
                known = found[name] = Whereabouts(files, size / MB, {}, at)
            if endpoint is not None and known.replicas is not None:
                known.replicas[endpoint] = Replica(
                    files=held, size_mb=held_size / MB, complete=complete, is_tape=is_tape
                )
    return found


def forget_before(moment: datetime) -> None:
    """Delete answers that are older."""
    DatasetReplica.objects.filter(at__lt=moment).delete()
    ReplicaLookup.objects.filter(at__lt=moment).delete()
