"""Where files are: their first place in the catalogue, further replicas, and which of them are bad."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import psycopg

from jedisite.database.sql import texts
from tasks_app.domain.transfer_states import ReplicaStatus

Name = tuple[str, str]
"""Scope and name: a file."""


class Place(NamedTuple):
    """A file at an endpoint."""

    scope: str
    lfn: str
    endpoint: str
    url: str
    status: ReplicaStatus


# Names first, of which there are indexes. A row of `file_replicas` says more of a place than the catalogue does.
_PLACES = """
WITH named AS MATERIALIZED (SELECT DISTINCT * FROM unnest(%(scopes)s::text[], %(lfns)s::text[]) n (scope, lfn)),
kept AS (
    SELECT n.scope, n.lfn, r.endpoint, r.url, r.status FROM named n JOIN file_replicas r USING (scope, lfn)),
firsts AS (
    SELECT DISTINCT ON (n.scope, n.lfn, f.endpoint) n.scope, n.lfn, f.endpoint, f.url, 'available'::text AS status
      FROM named n JOIN catalogue_files f ON f.lfn = n.lfn AND f.scope = n.scope
     WHERE NOT EXISTS (SELECT 1 FROM kept k WHERE (k.scope, k.lfn, k.endpoint) = (n.scope, n.lfn, f.endpoint))
     ORDER BY n.scope, n.lfn, f.endpoint, f.id),
coming AS (
    SELECT DISTINCT n.scope, n.lfn, q.destination, q.url, 'copying'::text FROM named n
      JOIN transfer_requests q ON q.scope = n.scope AND q.lfn = n.lfn AND q.status IN ('queued', 'active')
     WHERE q.destination <> ''
       AND NOT EXISTS (SELECT 1 FROM kept k WHERE (k.scope, k.lfn, k.endpoint) = (n.scope, n.lfn, q.destination))
       AND NOT EXISTS (SELECT 1 FROM firsts k WHERE (k.scope, k.lfn, k.endpoint) = (n.scope, n.lfn, q.destination)))
SELECT p.scope, p.lfn, p.endpoint, p.url,
       CASE WHEN p.status = 'available' AND coalesce(e.is_tape, false) THEN 'tape' ELSE p.status END
  FROM (SELECT * FROM kept UNION ALL SELECT * FROM firsts UNION ALL SELECT * FROM coming) p
  LEFT JOIN storage_endpoints e ON e.name = p.endpoint
 ORDER BY p.scope, p.lfn, p.endpoint, p.url
"""


def places_of(cursor: psycopg.Cursor[Any], files: Iterable[Name]) -> dict[Name, list[Place]]:
    """All places of these files, by scope and name. Files of which the catalogue has nothing have none."""
    wanted = list(dict.fromkeys(files))
    found: dict[Name, list[Place]] = {name: [] for name in wanted}
    if wanted:
        cursor.execute(_PLACES, {"scopes": texts(s for s, _ in wanted), "lfns": texts(lfn for _, lfn in wanted)})
        for scope, lfn, endpoint, url, status in cursor.fetchall():
            found[scope, lfn].append(Place(scope, lfn, endpoint, url, ReplicaStatus(status)))
    return found


READABLE = (ReplicaStatus.AVAILABLE, ReplicaStatus.TAPE)


def readable(places: Iterable[Place], endpoints: Collection[str]) -> list[Place]:
    """Those of a file's places at these endpoints that are there."""
    return [one for one in places if one.status in READABLE and one.endpoint in endpoints]


def add(cursor: psycopg.Cursor[Any], rows: Iterable[tuple[str, str, str, str]]) -> None:
    """Files have a further replica: scope, name, endpoint and address. What was bad there is good again.

    At the endpoint of its first place no row is kept, but that place is good again.
    """
    found = sorted(set(rows))
    if not found:
        return
    columns = [texts(column) for column in zip(*found, strict=True)]
    cursor.execute(
        """WITH n AS (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) n (scope, lfn, endpoint, url)),
           cleared AS (
               DELETE FROM file_replicas r USING n
                WHERE (r.scope, r.lfn, r.endpoint) = (n.scope, n.lfn, n.endpoint) AND EXISTS (
                      SELECT 1 FROM catalogue_files f WHERE (f.lfn, f.scope, f.endpoint) = (n.lfn, n.scope, n.endpoint)))
           INSERT INTO file_replicas (scope, lfn, endpoint, url, status, reason)
           SELECT n.scope, n.lfn, n.endpoint, n.url, 'available', '' FROM n WHERE NOT EXISTS (
                  SELECT 1 FROM catalogue_files f WHERE (f.lfn, f.scope, f.endpoint) = (n.lfn, n.scope, n.endpoint))
               ON CONFLICT (scope, lfn, endpoint) DO UPDATE
              SET url = excluded.url, status = 'available', reason = '', at = clock_timestamp()""",
        columns,
    )


_MARK_BAD = """
INSERT INTO file_replicas (scope, lfn, endpoint, url, status, reason)
SELECT n.scope, n.lfn, n.endpoint, n.url, 'bad', left(n.reason, 500)
  FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[]) n (scope, lfn, endpoint, url, reason)
 ORDER BY 1, 2, 3
    ON CONFLICT (scope, lfn, endpoint) DO UPDATE SET status = 'bad', reason = excluded.reason, at = clock_timestamp()
 WHERE file_replicas.status <> 'bad'
RETURNING scope, lfn
"""
# Another good one takes the first place; the bad one stays in the table.
_OTHER_FIRST = """
WITH named AS MATERIALIZED (SELECT DISTINCT * FROM unnest(%s::text[], %s::text[]) n (scope, lfn)),
good AS (
    SELECT DISTINCT ON (r.scope, r.lfn) r.scope, r.lfn, r.endpoint, r.url
      FROM named n JOIN file_replicas r ON r.scope = n.scope AND r.lfn = n.lfn
      LEFT JOIN storage_endpoints e ON e.name = r.endpoint
     WHERE r.status = 'available' ORDER BY r.scope, r.lfn, coalesce(e.is_tape, false), r.endpoint),
moved AS (
    UPDATE catalogue_files f SET endpoint = g.endpoint, url = g.url FROM good g
     WHERE f.lfn = g.lfn AND f.scope = g.scope AND EXISTS (
           SELECT 1 FROM file_replicas b WHERE (b.scope, b.lfn, b.endpoint) = (f.scope, f.lfn, f.endpoint) AND b.status = 'bad')
    RETURNING f.scope, f.lfn, f.endpoint)
DELETE FROM file_replicas r USING moved m WHERE (r.scope, r.lfn, r.endpoint) = (m.scope, m.lfn, m.endpoint)
"""


def mark_bad(cursor: psycopg.Cursor[Any], places: Iterable[Place], reason: str) -> int:
    """These copies are no good: nobody reads them any more. Returns how many were good so far.

    Where a file has another replica, that takes its first place, which the address of inputs is read from.
    """
    found = sorted({place[:4]: place for place in places}.values())
    if not found:
        return 0
    scopes, lfns, endpoints, urls = ([place[n] for place in found] for n in range(4))
    cursor.execute(_MARK_BAD, [texts(scopes), texts(lfns), texts(endpoints), texts(urls), texts([reason] * len(found))])
    marked = cursor.rowcount
    cursor.execute(_OTHER_FIRST, [texts(scopes), texts(lfns)])
    return marked
