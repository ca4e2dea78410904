"""The message processor: carries out each message of other systems once."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from jedisite.agents.passes import renew_lease
from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.messaging.inbox import parked_messages, process_next

LIMIT = 200


@agent("message_processor", every="5s", title="Processes messages from other systems")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Process due messages. Two processors may run at once: each skips messages that the other holds."""
    now = now or timezone.now()
    items = 0
    while items < limit and process_next(now):
        items += 1
        renew_lease()
    parked = parked_messages() if items else 0
    return Pass(items, f"{plural(parked, 'message is', 'messages are')} parked" if parked else "", more=items == limit)
