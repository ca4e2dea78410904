"""Watchdog: final jobs move to the archive after the retention time; their parameters and reports go with the months."""

from __future__ import annotations

from jedisite.agents.registry import Pass, agent
from tasks_app.upkeep.archiving import archive_jobs

LIMIT = 5000


@agent("archive", every="5m", title="Moves old jobs to the archive")
def run(limit: int = LIMIT) -> Pass:
    """Move jobs that ended long ago, of tasks that have ended too, or that run on a schedule and may never end."""
    moved = archive_jobs(limit)
    return Pass(moved, more=moved == limit)
