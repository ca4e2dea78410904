"""New messages of the outbox get their place in the feed, and are handed to the bus in that order."""

from __future__ import annotations

from datetime import datetime

from django.db import connection, transaction
from django.db.models import F

from jedisite.vocabulary.words import plural
from tasks_app.lifecycle.bus import BusError, Message, message_bus
from tasks_app.models import OutMessage

# One publisher gives positions at a time, so that they become visible in their order.
_PLACES = """
WITH start AS (SELECT coalesce(max(position), 0) AS last FROM messages_out),
new AS (SELECT id, row_number() OVER (ORDER BY id) AS place
          FROM (SELECT id FROM messages_out WHERE position IS NULL ORDER BY id LIMIT %s) n)
UPDATE messages_out m SET position = start.last + new.place FROM new, start WHERE m.id = new.id
"""
LOCK_ID = 7_316_001
"""Number of the advisory lock of whoever gives places."""


@transaction.atomic
def place(limit: int) -> int:
    """Give new messages their position. Those of one task follow each other as its changes did: each change holds the
    task's row, so its message has a higher id than the one before, and is committed after it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_ID])
        cursor.execute(_PLACES, [limit])
        return cursor.rowcount


def publish(limit: int, now: datetime) -> tuple[int, str]:
    """Hand unsent messages to the bus, with no transaction open, then mark them. Returns how many, and what went wrong.

    A publisher that is killed in between leaves them unsent: they are sent again under the same ids.
    """
    bus = message_bus()
    unsent = OutMessage.objects.filter(sent=None, position__isnull=False).order_by("position")[:limit]
    found = list(unsent.values_list("position", "message_id", "topic", "kind", "payload", "created"))
    if not found:
        return 0, ""
    batch = OutMessage.objects.filter(position__range=(found[0][0], found[-1][0]), sent=None)
    try:
        bus.publish([Message._make(row) for row in found])
    except BusError as exc:
        batch.update(attempts=F("attempts") + 1, error=str(exc)[:2000])
        return 0, f"the bus {bus.name} did not take {plural(len(found), 'message')}: {exc}"
    return batch.update(sent=now, attempts=F("attempts") + 1, error=""), ""
