"""Watchdog: failures, counts of ended jobs, nodes, and fingerprints that nobody has classified are deleted after their time."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from tasks_app.upkeep.old_rows import LIMIT, delete_fingerprints, delete_oldest

KEEP_FAILURES = timedelta(days=30)
KEEP_COUNTS = timedelta(days=15)


@agent("old_failures", every="1h", title="Deletes old failures and error counts")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Delete up to `limit` rows of each table, the oldest first."""
    now = now or timezone.now()
    deleted = [
        delete_oldest("job_failures", "ended < %s", now - KEEP_FAILURES, limit, key="pandaid"),
        delete_oldest("job_ends", "hour < %s", now - KEEP_COUNTS, limit),
        delete_oldest("job_nodes", "last_seen < %s", now - KEEP_FAILURES, limit),
        delete_fingerprints(now - KEEP_FAILURES, limit),
    ]
    return Pass(sum(deleted), more=limit in deleted)
