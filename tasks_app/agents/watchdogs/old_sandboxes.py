"""Watchdog: sandboxes that nobody used for long, and that no open task needs, are removed; left-over files are swept."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.submission import sandboxes

LIMIT = 1000


@agent("old_sandboxes", every="1h", title="Deletes unused sandboxes")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    now = now or timezone.now()
    found = sandboxes.unused(now - timedelta(days=settings.JEDI_SANDBOX_DAYS), limit)
    removed, swept = sandboxes.remove(found), sandboxes.sweep(now)
    return Pass(removed, f"{plural(swept, 'left-over file')} swept" if swept else "", more=len(found) == limit)
