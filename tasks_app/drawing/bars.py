"""Counts over time as bars: the geometry of a small drawing, with its numbers for a table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tasks_app.domain import words

WIDTH, HEIGHT = 960, 120
LEFT, TOP, BOTTOM = 44, 8, 22


@dataclass(frozen=True, slots=True)
class Bar:
    """One step of time in the coordinates of the drawing, what it counts, and the list that it counts."""

    x: float
    y: float
    width: float
    height: float
    start: datetime
    end: datetime
    count: int
    url: str


@dataclass(frozen=True, slots=True)
class Mark:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Bars:
    bars: list[Bar]
    times: list[Mark]
    counts: list[Mark]
    step: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    bottom: int = HEIGHT - BOTTOM

    @property
    def total(self) -> int:
        return sum(bar.count for bar in self.bars)


def bars(since: datetime, step: timedelta, counts: Sequence[int], url: Callable[[datetime], str]) -> Bars:
    """Bars of the counts of equal steps; `url` gives the address of what is counted from a moment on, for a step."""
    width = (WIDTH - LEFT) / max(len(counts), 1)
    room = HEIGHT - TOP - BOTTOM
    highest = max(max(counts, default=0), 1)
    drawn = []
    for number, count in enumerate(counts):
        start = since + number * step
        height = round(room * count / highest, 2)
        drawn.append(
            Bar(
                round(LEFT + number * width + width * 0.1, 2),
                round(HEIGHT - BOTTOM - height, 2),
                round(width * 0.8, 2),
                height,
                start,
                start + step,
                count,
                url(start) if count else "",
            )
        )
    every = max(1, len(counts) // 6)
    form = "%H:%M" if step * len(counts) <= timedelta(days=2) else "%d %b %H:%M"
    times = [
        Mark(round(LEFT + number * width, 2), f"{since + number * step:{form}}")
        for number in range(0, len(counts), every)
    ]
    levels = [Mark(round(HEIGHT - BOTTOM - room * part, 2), words.count(round(highest * part))) for part in (0, 1)]
    return Bars(drawn, times, levels, words.duration(step.total_seconds()))
