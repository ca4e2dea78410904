"""The time window of a page: `window=12h`, or a custom one with `since=` and `until=`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

CHOICES: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "8h": timedelta(hours=8),
    "12h": timedelta(hours=12),
    "24h": timedelta(hours=24),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
}
TITLES: Final[Mapping[str, str]] = {
    "1h": "1 hour",
    "6h": "6 hours",
    "8h": "8 hours",
    "12h": "12 hours",
    "24h": "24 hours",
    "3d": "3 days",
    "7d": "7 days",
}
USUAL: Final = "12h"
LONGEST: Final = timedelta(days=31)
NAMES: Final = ("window", "since", "until")
"""The parameters of addresses that say the window."""


@dataclass(frozen=True, slots=True)
class Window:
    """From `since` (inclusive) to `until` (exclusive), in UTC. `key` is one of CHOICES, or "" for a custom one.

    `fault` says in a sentence what of the address could not be read; then the window is the usual one.
    """

    key: str
    since: datetime
    until: datetime
    fault: str = ""

    @property
    def length(self) -> timedelta:
        return self.until - self.since

    @property
    def title(self) -> str:
        return (
            f"last {TITLES[self.key]}"
            if self.key
            else f"{self.since:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M} UTC"
        )

    @property
    def parameters(self) -> dict[str, str]:
        """What an address needs to show this window."""
        if self.key:
            return {"window": self.key}
        return {"since": f"{self.since:%Y-%m-%dT%H:%M}", "until": f"{self.until:%Y-%m-%dT%H:%M}"}


def read(given: Mapping[str, str], now: datetime, usual: str = USUAL) -> Window:
    """The window that the parameters of an address say; the usual one for those that make no sense."""
    since, until, key = given.get("since", ""), given.get("until", ""), given.get("window", "")
    if since or until:
        try:
            end = _moment(until) if until else now
            start = _moment(since) if since else end - CHOICES[usual]
        except (ValueError, OverflowError):
            return _usual(now, usual, "since and until are times such as 2026-01-31T08:00, in UTC.")
        if start >= end:
            return _usual(now, usual, "since must be before until.")
        if end - start > LONGEST:
            return _usual(now, usual, f"A window is {LONGEST.days} days long at most.")
        return Window("", start, end)
    if key and key not in CHOICES:
        return _usual(now, usual, f"window is one of {', '.join(CHOICES)}.")
    key = key or usual
    return Window(key, now - CHOICES[key], now)


def _usual(now: datetime, key: str, fault: str) -> Window:
    return Window(key, now - CHOICES[key], now, fault)


def _moment(text: str) -> datetime:
    """An ISO time, in UTC where it names no zone. Raises ValueError or OverflowError."""
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
