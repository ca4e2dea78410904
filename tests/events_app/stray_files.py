"""When the watchdog over zip files looks at the part of a storage in which a file lies."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from events_app.zips.strays import EACH, PARTS


def turn_of(path: Path, before: datetime) -> datetime:
    """The last such time before another, in the middle of a turn."""
    each = int(EACH.total_seconds())
    turn = int(before.timestamp()) // each - 1
    while turn % PARTS != int(path.parent.parent.name, 16):
        turn -= 1
    return datetime.fromtimestamp(turn * each + each // 2, UTC)
