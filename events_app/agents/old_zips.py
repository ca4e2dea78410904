"""Watchdog: files that hold outputs of ranges are deleted once these are merged, or will never be, and so are strays."""

from __future__ import annotations

from datetime import datetime

from events_app.zips.deleting import delete_unneeded
from events_app.zips.strays import delete_strays
from jedisite.agents.registry import Pass, agent
from jedisite.database.sql import the_time

LIMIT = 1000


@agent("old_zips", every="10m", title="Deletes outputs of event ranges no longer needed")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Delete zip files of which no range waits for its merge, and, in one part of the storages, those that no pilot reported."""
    now = the_time(now)
    done = delete_unneeded(limit, now)
    return Pass(done + delete_strays(now, limit), more=done == limit)
