"""Storage that is closed for a while: jobs could not store their outputs there, or its folder is away."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from django.db import connection

from brokerage_app.grid.written_storage import WRITTEN, WRITTEN_BY_ANALYSIS

_READS_ELSEWHERE: Final = """EXISTS (
    SELECT 1 FROM panda_ddm_relation r WHERE r.panda_site_name = q.name AND r.order_read IS NOT NULL
       AND r.ddm_endpoint_name NOT IN (SELECT name FROM closed WHERE closed_reads))"""
# ruff: noqa: S608 - pieces of ours
_QUEUES: Final = f"""
WITH closed AS MATERIALIZED (
    SELECT name, closed_why, closed_until, closed_reads FROM storage_endpoints WHERE closed_until > clock_timestamp())
SELECT DISTINCT ON (q.name) q.name, c.name, c.closed_why, c.closed_until, c.closed_reads
  FROM queues q CROSS JOIN closed c
 WHERE c.name = {WRITTEN} AND {WRITTEN_BY_ANALYSIS} IN (SELECT name FROM closed)
    OR c.closed_reads AND NOT {_READS_ELSEWHERE} AND EXISTS (
       SELECT 1 FROM panda_ddm_relation r WHERE r.panda_site_name = q.name AND r.order_read IS NOT NULL
          AND r.ddm_endpoint_name = c.name)
 ORDER BY q.name, c.closed_reads DESC, c.name
"""
_AWAY: Final = """
SELECT name, path, closed_why, closed_until FROM storage_endpoints
 WHERE closed_until > clock_timestamp() AND closed_reads AND path <> '' ORDER BY name
"""


def in_words(name: str, why: str, until: datetime, is_away: bool = False) -> str:
    """Why an endpoint is closed, as part of a sentence."""
    said = f" (“{why.rstrip('.')}”)" if why else ""
    met = f"the folder of the storage {name} is away" if is_away else f"jobs could not store their outputs at {name}"
    return f"{met}{said}; it is tried again at {until:%H:%M} UTC"


def queues_without_storage() -> dict[str, str]:
    """The queues all of whose jobs would write to such storage, or all of whose storage for inputs is away, with the words for
    it. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(_QUEUES)
        return {queue: in_words(*of) for queue, *of in cursor.fetchall()}


class AwayFolder(NamedTuple):
    """A storage of this machine from which nothing is read for a while. `words`: why, as part of a sentence."""

    name: str
    path: str
    words: str


def away_folders() -> list[AwayFolder]:
    """One statement."""
    with connection.cursor() as cursor:
        cursor.execute(_AWAY)
        return [
            AwayFolder(name, path, in_words(name, why, until, is_away=True))
            for name, path, why, until in cursor.fetchall()
        ]
