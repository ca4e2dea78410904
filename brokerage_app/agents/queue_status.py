"""Ends the status of a queue that was set for a time."""

from __future__ import annotations

from django.db import connection

from brokerage_app.grid.queue_status import LIMIT, end_due
from jedisite.agents.registry import Pass, agent


@agent("queue_status", every="10s", title="Ends temporary queue statuses when they expire")
def run(limit: int = LIMIT) -> Pass:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    ended = end_due(now, limit)
    return Pass(len(ended), f"{', '.join(ended[:5])}: the status ended" if ended else "", len(ended) == limit)
