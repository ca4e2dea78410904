"""Files that wait since their source, or the link from its site, is closed are read elsewhere where they have another place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from django.db import transaction

from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.transfers import replicas
from tasks_app.transfers.link_settings import MoverSettings
from tasks_app.transfers.requesting import source_of
from tasks_app.transfers.storages import Storage, shut_from

MOST: Final = 500
"""Requests that a turn looks at; each is looked at again after the wait of a transfer that is tried again."""

# What is gathered lies at its source alone. Whoever cancels has a request before us, or finds it with another source.
_CLOSED: Final = """
SELECT q.id, q.scope, q.lfn, q.source, q.destination
  FROM unnest(%s::text[], %s::text[]) c (source, destination)
  JOIN transfer_requests q ON q.status = 'queued' AND q.source = c.source AND q.destination = c.destination
  JOIN transfer_rules r ON r.id = q.rule_id AND r.kind <> 'gather'
 WHERE q.next_try IS NULL OR q.next_try <= %s ORDER BY q.id LIMIT %s FOR UPDATE OF q SKIP LOCKED
"""
_READ_THERE: Final = """
UPDATE transfer_requests q SET source = n.source, next_try = n.due
  FROM unnest(%s::bigint[], %s::text[], %s::timestamptz[]) n (id, source, due) WHERE q.id = n.id
"""


def read_elsewhere(settings: MoverSettings, stores: Mapping[str, Storage], now: datetime) -> int:
    """Returns how many requests have another source now. No statement while all sources and links are open."""
    closed = [(one, other) for one in stores for other in stores if one != other and shut_from(one, other, stores)]
    if not closed:
        return 0
    with transaction.atomic(), hot_cursor() as cursor:
        ways = texts(source for source, _ in closed), texts(destination for _, destination in closed)
        cursor.execute(_CLOSED, [*ways, now, MOST])
        rows = cursor.fetchall()
        if not rows:
            return 0
        places = replicas.places_of(cursor, [(scope, lfn) for _, scope, lfn, _, _ in rows])
        found = {
            request: (old, source_of(places[scope, lfn], destination, stores) or old)
            for request, scope, lfn, old, destination in rows
        }
        dues = [now if new != old else now + settings.wait for old, new in found.values()]
        cursor.execute(_READ_THERE, [numbers(found), texts(new for _, new in found.values()), dues])
    return sum(old != new for old, new in found.values())
