"""Watchdog: workers, what their instances said, and commands are deleted after their time. Times are PanDA's."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from tasks_app.upkeep.old_rows import LIMIT, delete_oldest

KEEP_WORKERS = timedelta(days=90)
KEEP_WORDS = timedelta(days=7)


@agent("old_workers", every="1h", title="Deletes old workers and their messages")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Delete up to `limit` rows of each table, the oldest first."""
    now = now or timezone.now()
    deleted = [
        delete_oldest("harvester_workers", "lastupdate < %s", now - KEEP_WORKERS, limit),
        delete_oldest("harvester_rel_jobs_workers", "lastupdate < %s", now - KEEP_WORKERS, limit),
        delete_oldest("harvester_dialogs", "creationtime < %s", now - KEEP_WORDS, limit),
        delete_oldest("harvester_metrics", "creation_time < %s", now - KEEP_WORDS, limit),
        delete_oldest("harvester_commands", "status_date < %s", now - KEEP_WORKERS, limit, key="command_id"),
    ]
    return Pass(sum(deleted), more=limit in deleted)
