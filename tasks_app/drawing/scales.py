"""Scales and axes of all drawings: where a number or a time stands, and the round marks beside it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

LETTER: Final = 5.5
"""How wide a letter of an axis is, about."""
STEPS: Final = (1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
"""Seconds that marks of a time axis stand apart, below a day."""
DAYS: Final = (1, 2, 4, 7, 14, 28)
SHADES: Final = 6


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers from `low` to `high` as places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        part = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + part * (self.end - self.start), 2)


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Times as places from `start` to `end`; earlier and later ones stand at its ends."""

    since: datetime
    until: datetime
    start: float
    end: float

    def __call__(self, moment: datetime) -> float:
        length = max((self.until - self.since).total_seconds(), 0.001)
        part = min(max((moment - self.since).total_seconds() / length, 0.0), 1.0)
        return round(self.start + part * (self.end - self.start), 2)


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture of `width` x `height`, and in it the edges of what is drawn."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    def x(self, low: float, high: float) -> Scale:
        return Scale(low, high, self.left, self.right)

    def y(self, low: float, high: float) -> Scale:
        """From the bottom up."""
        return Scale(low, high, self.bottom, self.top)

    def times(self, since: datetime, until: datetime) -> TimeScale:
        return TimeScale(since, until, self.left, self.right)


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis. `anchor`: the part of its text that stands there."""

    at: float
    text: str
    anchor: str = "middle"


def round_step(least: float, *, whole: bool = False) -> float:
    """The smallest of 1, 2, 2.5 and 5, and these times powers of ten, that is not below `least`."""
    least = max(least, 1.0) if whole else least
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 2.5, 5, 10, 20) if m * power >= least and not (whole and m * power % 1))


def marks_from_zero(largest: float, most: int = 4) -> list[float]:
    """Whole round numbers from 0 to at least the largest, `most` steps apart at most."""
    step = round_step(largest / most, whole=True)
    return [number * step for number in range(max(math.ceil(largest / step), 1) + 1)]


def marks_between(low: float, high: float, most: int) -> list[float]:
    """Round numbers between low and high, about `most` of them."""
    raw = (high - low) / most
    if not raw > 0 or not math.isfinite(raw):
        return [low]
    step = round_step(raw)
    first = math.ceil(low / step)
    return [n * step for n in range(first, first + 2 * most + 2) if n * step <= high + step * 1e-9]


def grouped(number: float) -> str:
    """A whole number as axes have it."""
    return f"{number:,.0f}".replace(",", "\u202f")


def count_ticks(marks: Sequence[float], y: Scale) -> tuple[Tick, ...]:
    return tuple(Tick(y(mark), grouped(mark), "end") for mark in marks)


def time_ticks(x: TimeScale, most: int = 9, *, dated: bool = False) -> tuple[Tick, ...]:
    """Round times, `most` of them at most; midnights as days. `dated`: each with its day."""
    length = x.until - x.since
    step = next((s for s in (timedelta(seconds=s) for s in STEPS) if length <= s * most), None)
    if step is None:
        days = next((d for d in DAYS if length <= timedelta(days=d * most)), None)
        step = timedelta(days=days or 28 * -(-length.days // (28 * most)))
    seconds = step.total_seconds()
    first = math.ceil(x.since.timestamp() / seconds)
    found: list[Tick] = []
    for number in count(first):
        moment = datetime.fromtimestamp(number * seconds, UTC)
        if moment > x.until:
            return tuple(found)
        if step >= timedelta(days=1) or (not dated and (moment.hour, moment.minute, moment.second) == (0, 0, 0)):
            text = f"{moment:%d %b}"
        elif step < timedelta(minutes=1):
            text = f"{moment:%H:%M:%S}"
        else:
            text = f"{moment:%d %b %H:%M}" if dated else f"{moment:%H:%M}"
        at = x(moment)
        found.append(Tick(at, text, "end" if at + len(text) * LETTER / 2 > x.end else "middle"))
    raise AssertionError("the numbers do not end")


def shade(value: float | None, highest: float) -> int:
    """How dark a cell of a table is: 0 for nothing, else 1 to SHADES, by the logarithm: what is ten times as much is some
    steps darker."""
    if not value or highest <= 0:
        return 0
    return max(1, min(SHADES, math.ceil(SHADES * math.log1p(value) / math.log1p(highest))))
