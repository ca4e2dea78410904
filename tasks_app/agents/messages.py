"""The publisher: gives new messages of the outbox their place in the feed, then hands them to the bus, in order."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.messaging.publishing import place, publish

LIMIT = 5000


@agent("messages", every="2s", title="Publishes changes of state")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Place and publish what is new. A bus that refuses gets the same messages again at the next pass."""
    placed = place(limit)
    sent, error = publish(limit, now or timezone.now())
    return Pass(
        max(placed, sent), error or (f"{plural(sent, 'message')}" if sent else ""), more=not error and placed == limit
    )
