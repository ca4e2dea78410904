"""Numbers as bars side by side, each of one piece or of several upon one another: geometry, with numbers for a table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tasks_app.domain import words
from tasks_app.drawing.scales import Frame, Tick, count_ticks, time_ticks

FRAME: Final = Frame(960, 120, 44, 960, 8, 98)
MOST_TIMES: Final = 8


@dataclass(frozen=True, slots=True)
class Box:
    x: float
    y: float
    width: float
    height: float


def pile(frame: Frame, columns: Sequence[Sequence[float]], *, fewest: int = 1, gap: float = 0.2) -> list[list[Box]]:
    """A box for each number, those of a column upon one another; the highest column fills the frame.

    fewest  for so many columns there is room, also where there are fewer
    gap     the part of a column's width that is left free
    """
    x = frame.x(0, max(len(columns), fewest))
    y = frame.y(0, max([*map(sum, columns), 1]))
    found = []
    for place, column in enumerate(columns):
        below, boxes = 0.0, []
        for number in column:
            high = y(below + number)
            left, right = x(place + gap / 2), x(place + 1 - gap / 2)
            boxes.append(Box(left, high, round(right - left, 2), round(y(below) - high, 2)))
            below += number
        found.append(boxes)
    return found


@dataclass(frozen=True, slots=True)
class Bar:
    """One step of time, what it counts, and the list that it counts."""

    box: Box
    start: datetime
    end: datetime
    count: int
    url: str


@dataclass(frozen=True, slots=True)
class Bars:
    bars: list[Bar]
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    step: str
    frame: Frame = FRAME

    @property
    def total(self) -> int:
        return sum(bar.count for bar in self.bars)


def bars(since: datetime, step: timedelta, counts: Sequence[int], url: Callable[[datetime], str]) -> Bars:
    """Bars of the counts of equal steps; `url` gives the address of what is counted from a moment on, for a step."""
    starts = [since + number * step for number in range(len(counts))]
    boxes = pile(FRAME, [[count] for count in counts])
    drawn = [
        Bar(box, start, start + step, count, url(start) if count else "")
        for start, count, (box,) in zip(starts, counts, boxes, strict=True)
    ]
    highest = max([*counts, 1])
    return Bars(
        drawn,
        time_ticks(FRAME.times(since, since + step * max(len(counts), 1)), MOST_TIMES),
        count_ticks((0, highest), FRAME.y(0, highest)),
        words.duration(step.total_seconds()),
    )
