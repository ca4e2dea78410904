"""Storage to which nothing is written for a while, since jobs could not store their outputs there."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db import connection

from brokerage_app.grid.written_storage import WRITTEN, WRITTEN_BY_ANALYSIS

# ruff: noqa: S608 - pieces of ours
_QUEUES: Final = f"""
WITH closed AS MATERIALIZED (SELECT name, closed_why, closed_until FROM storage_endpoints WHERE closed_until > clock_timestamp())
SELECT q.name, c.name, c.closed_why, c.closed_until FROM queues q JOIN closed c ON c.name = {WRITTEN}
 WHERE {WRITTEN_BY_ANALYSIS} IN (SELECT name FROM closed)
"""


def in_words(name: str, why: str, until: datetime) -> str:
    """Why nothing is written to an endpoint, as part of a sentence."""
    said = f" (“{why.rstrip('.')}”)" if why else ""
    return f"jobs could not store their outputs at {name}{said}; it is tried again at {until:%H:%M} UTC"


def queues_without_storage() -> dict[str, str]:
    """The queues all of whose jobs would write to such storage, with the words for it. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(_QUEUES)
        return {queue: in_words(*of) for queue, *of in cursor.fetchall()}
