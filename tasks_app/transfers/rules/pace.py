"""How fast transfers go, how often they are tried, and from where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

MB: Final = 1_000_000
LONGEST_WAIT: Final = timedelta(hours=1)
ROOM_FOR: Final = timedelta(days=1)
"""After so long a copy for which there is no room has failed, and is tried as often as any."""
SAVED_UP: Final = timedelta(seconds=30)
"""A link whose time was not used, as nobody ran, is not faster than usual for longer than this."""


@dataclass(frozen=True, slots=True)
class LinkPace:
    """What a link gives: files at a time, MB/s of all of them together (0: unlimited), wait before the first byte."""

    at_once: int
    mbps: float = 0.0
    latency: timedelta = timedelta()


def allowance(pace: LinkPace, active: int, started: datetime, moved_at: datetime, now: datetime) -> int | None:
    """Bytes that one of `active` transfers of a link may copy now; None is any number.

    `moved_at` is up to when its part of the link has been used.
    """
    first = started + pace.latency
    if now < first:
        return 0
    if pace.mbps <= 0:
        return None
    since = min(now - max(moved_at, first), SAVED_UP).total_seconds()
    return max(int(pace.mbps * MB * since / max(active, 1)), 0)


def next_try(attempt: int, attempts: int, wait: timedelta, now: datetime) -> datetime | None:
    """When a transfer that has failed `attempt` times is tried again; None: not any more."""
    if attempt >= attempts:
        return None
    doubled: int = 1 << min(attempt - 1, 16)
    return now + min(wait * doubled, LONGEST_WAIT)


@dataclass(frozen=True, slots=True)
class Source:
    """An endpoint from which a file may be read. `mbps` is what was measured of the link; None: nothing."""

    endpoint: str
    is_tape: bool = False
    is_same_site: bool = False
    mbps: float | None = None


def choose_source(sources: Iterable[Source], failed: str = "") -> str:
    """Disk before tape, another than the one that has just failed, the same site, then the fastest; "" without any."""
    ranked = sorted(
        sources,
        key=lambda s: (s.is_tape, s.endpoint == failed, not s.is_same_site, -(s.mbps or 0.0), s.endpoint),
    )
    return ranked[0].endpoint if ranked else ""
