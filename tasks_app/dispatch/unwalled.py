"""Queues whose payloads nothing keeps apart from their machine: pilots there get jobs of administrators only.

Our own pilot says so itself when it asks for jobs. PanDA's cannot, so the site looks it up. Where walls do stand round
payloads of PanDA's pilot, these do not reach its channel for ranges of events: that pilot gets no job that takes some.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from django.db import connection

from brokerage_app.grid.describing import NO_CHANNEL
from brokerage_app.models import Queue
from jedisite.database.sql import hot_cursor

KEY = "unwalled"
"""Of a queue's description: why there are no walls."""


def note(queue: str, why: str) -> bool:
    """Keep why a queue's payloads run without walls; "" when they have some. False when there is no such queue."""
    return _note(queue, KEY, why)


def note_channel(queue: str, why: str) -> None:
    """Keep why a queue's payloads cannot take ranges of events; "" when they can."""
    _note(queue, NO_CHANNEL, why)


def _note(queue: str, key: str, why: str) -> bool:
    said = {key: why} if why else {}
    with connection.cursor() as cursor:
        # In one statement: others may change the rest of the description at the same time.
        cursor.execute(
            "UPDATE queues SET data = (data - %s) || %s::jsonb WHERE name = %s AND coalesce(data->>%s, '') <> %s",
            [key, json.dumps(said), queue, key, why],
        )
    return Queue.objects.filter(pk=queue).exists()


class Lacks(NamedTuple):
    """What payloads of PanDA's pilots at a queue lack: walls, or the channel for ranges of events."""

    walls: bool = False
    channel: bool = False


def lacks(queue: str) -> Lacks:
    """What has been noted of a queue; asked anew each time, so that no payload slips through after a start."""
    with hot_cursor() as cursor:
        cursor.execute("SELECT data ? %s, data ? %s FROM queues WHERE name = %s", [KEY, NO_CHANNEL, queue])
        found = cursor.fetchone()
    return Lacks(*found) if found else Lacks()
