"""Watchdog: datasets that tasks made and that need not be kept any longer are deleted with their files."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from tasks_app.upkeep.expired_outputs import delete_expired

LIMIT = 20


@agent("expired_datasets", every="10m", title="Deletes outputs whose lifetime is over")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Delete closed datasets whose time is over, but for those that a task still reads. What users registered stays."""
    names = delete_expired(now or timezone.now(), limit)
    return Pass(len(names), ", ".join(names)[:500], more=len(names) == limit)
