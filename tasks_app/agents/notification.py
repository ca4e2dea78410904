"""Notification: mails to owners about tasks that have ended, stopped, or were paused by the system."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from jedisite.agents.passes import renew_lease
from jedisite.agents.registry import Pass, agent
from tasks_app.messaging.sending import claim_mails, send_mail

LIMIT = 50


@agent("notification", every="10s", title="Mails owners when their tasks end or stop")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Send due mails, each at least once: a repetition has the same Message-ID."""
    now = now or timezone.now()
    claimed = claim_mails(limit, now)
    sent = 0
    for row in claimed:
        renew_lease()
        sent += send_mail(row, now)
    return Pass(len(claimed), f"{sent} mails sent" if claimed else "", more=len(claimed) == limit)
