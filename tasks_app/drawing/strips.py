"""A strip of what held from when to when, as pieces in percent of its width. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tasks_app.drawing.scales import TimeScale


@dataclass(frozen=True, slots=True)
class Held:
    """Something that held from `at` to `ended`; None is still."""

    name: str
    at: datetime
    ended: datetime | None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the strip. `tone` decides its look; `words` say what it is."""

    name: str
    tone: str
    start: float
    width: float
    words: str


LEAST_WIDTH = 0.4
"""Percent: what is shorter is drawn so wide, so that it can be seen."""


def strip(held: Iterable[Held], since: datetime, until: datetime, tone: dict[str, str]) -> list[Piece]:
    """The pieces within a window, in the order of time."""
    x = TimeScale(since, until, 0, 100)
    found = []
    for one in sorted(held, key=lambda each: each.at):
        start, end = max(one.at, since), min(one.ended or until, until)
        if end < start:
            continue
        place = x(start)
        width = max(x(end) - place, LEAST_WIDTH)
        place = min(place, 100 - LEAST_WIDTH)
        ended = f"to {one.ended:%Y-%m-%d %H:%M}" if one.ended else "still"
        words = f"{one.name} from {one.at:%Y-%m-%d %H:%M} {ended}{': ' if one.words else ''}{one.words}"
        found.append(
            Piece(one.name, tone.get(one.name, "wait"), round(place, 3), round(min(width, 100 - place), 3), words)
        )
    return found
