"""How far the copy of one file is, how fast it goes, and when it will be there. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tasks_app.transfers.rules.pace import MB


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file that is being copied, in bytes. `moved_at`: up to when its part of the link is used.

    attempt   the first begins with nothing; later ones go on with what an earlier one has left
    limit     MB/s that all files on the link may have together; 0: any
    """

    lfn: str
    source: str
    destination: str
    rule: int
    size: int
    copied: int
    attempt: int
    started: datetime | None
    moved_at: datetime | None
    limit: float = 0.0

    @property
    def percent(self) -> int:
        return min(self.copied * 100 // self.size, 100) if self.size > 0 else 0

    @property
    def mbps(self) -> float | None:
        """The mean since the copy began; None where that cannot be said, as of one that goes on with what was left."""
        if self.attempt != 1 or self.started is None or self.moved_at is None or not self.copied:
            return None
        seconds = (self.moved_at - self.started).total_seconds()
        return self.copied / MB / seconds if seconds > 0 else None

    def ends(self, now: datetime) -> datetime | None:
        """When it will be there at that rate; None where that cannot be said, or has passed."""
        if self.mbps is None or self.moved_at is None:
            return None
        seconds = (self.size - self.copied) / MB / self.mbps
        end = self.moved_at + timedelta(seconds=min(seconds, 10 * 365 * 86400))
        return end if end > now else None
