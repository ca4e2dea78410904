"""Watchdog: messages, mails and alerts that are done with are deleted after their time."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from tasks_app.upkeep.old_rows import LIMIT, delete_oldest, delete_sent_messages

KEEP = timedelta(days=30)
KEEP_MAILS = timedelta(days=90)
_IN = "processed < %s"
_MAILS = "(sent IS NOT NULL OR not_sent <> '') AND created < %s"


@agent("old_messages", every="1h", title="Deletes old messages, mails and alerts")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Delete up to `limit` rows of each table, the oldest first."""
    now = now or timezone.now()
    deleted = [
        delete_sent_messages(now - KEEP, limit),
        delete_oldest("messages_in", _IN, now - KEEP, limit),
        delete_oldest("notifications", _MAILS, now - KEEP_MAILS, limit),
        delete_oldest("alerts", _MAILS, now - KEEP_MAILS, limit),
    ]
    return Pass(sum(deleted), more=limit in deleted)
