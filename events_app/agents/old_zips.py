"""Watchdog: files that hold outputs of ranges are deleted once these are merged, or will never be."""

from __future__ import annotations

from events_app.zips.deleting import delete_unneeded
from jedisite.agents.registry import Pass, agent

LIMIT = 1000


@agent("old_zips", every="10m", title="Deletes outputs of event ranges that are merged")
def run(limit: int = LIMIT) -> Pass:
    """Delete zip files of which no range waits for its merge."""
    done = delete_unneeded(limit)
    return Pass(done, more=done == limit)
