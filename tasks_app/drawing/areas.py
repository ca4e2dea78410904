"""Stacked areas over time, in steps: what was counted holds until it is counted again. Geometry for SVG. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

WIDTH, HEIGHT = 900, 220
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 8, 24
COLOURS: Final = 7
"""Series with a colour of their own; the others are drawn as one."""
OTHERS: Final = "others"
STEPS_H: Final = (1 / 12, 1 / 6, 1 / 4, 1 / 2, 1, 2, 3, 6, 12, 24, 48, 96)


@dataclass(frozen=True, slots=True)
class Span:
    """What was counted from `start` to `end`."""

    start: datetime
    end: datetime
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Series:
    """One layer: what people call it, the path of its area, its number among the colours (0 for the others), and its
    largest count.
    """

    name: str
    title: str
    colour: int
    path: str
    most: int


@dataclass(frozen=True, slots=True)
class Areas:
    """A picture of `width` x `height`. Ticks are (place, text)."""

    series: tuple[Series, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    top: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM
    middle: float = (TOP + HEIGHT - BOTTOM) / 2

    @property
    def legend(self) -> list[Series]:
        """From the top layer to the bottom, as they are drawn."""
        return list(reversed(self.series))


def stack(
    spans: Sequence[Span],
    since: datetime,
    until: datetime,
    first: Sequence[str] = (),
    *,
    called: Callable[[str], str] = str,
) -> Areas:
    """Stack the counts of spans that do not overlap, in their order; where there is a gap, nothing is drawn.

    first   names that lie at the bottom and have the first colours, in this order; the others follow, the largest first
    called  what people call a name
    """
    spans = [one for one in spans if one.end > since and one.start < until]
    largest: dict[str, int] = {}
    for span in spans:
        for name, count in span.counts.items():
            largest[name] = max(largest.get(name, 0), count)
    names = [name for name in first if name in largest]
    names += sorted((name for name in largest if name not in names), key=lambda name: (-largest[name], name))
    room = COLOURS - len([name for name in first if name not in largest])
    own, rest = names[:room], names[room:]
    colours = {name: number for number, name in enumerate([*first, *(n for n in names if n not in first)], 1)}
    layers = [[span.counts.get(name, 0) for span in spans] for name in own]
    if rest:
        layers.append([sum(span.counts.get(name, 0) for name in rest) for span in spans])
    top = _rounded(max((sum(column) for column in zip(*layers, strict=True)), default=0))
    length = max((until - since).total_seconds(), 1.0)

    def x(moment: datetime) -> float:
        inside = min(max(moment, since), until)
        return round(LEFT + (inside - since).total_seconds() / length * (WIDTH - LEFT - RIGHT), 1)

    def y(count: float) -> float:
        return round(HEIGHT - BOTTOM - count / top * (HEIGHT - TOP - BOTTOM), 1)

    series, below = [], [0] * len(spans)
    for name, layer in zip([*own, *([OTHERS] if rest else [])], layers, strict=True):
        above = [low + count for low, count in zip(below, layer, strict=True)]
        path = " ".join(
            f"M{x(span.start)} {y(low)}V{y(high)}H{x(span.end)}V{y(low)}Z"
            for span, low, high in _joined(spans, below, above)
        )
        series.append(Series(name, called(name), colours.get(name, 0), path, max(layer, default=0)))
        below = above
    return Areas(tuple(series), _hours(since, until, x), _counts(top, y), top)


def _joined(spans: Sequence[Span], below: Sequence[int], above: Sequence[int]) -> list[tuple[Span, int, int]]:
    """Boxes of a layer that are not empty; neighbours of the same height are one."""
    found: list[tuple[Span, int, int]] = []
    for span, low, high in zip(spans, below, above, strict=True):
        if high <= low:
            continue
        last = found[-1] if found else None
        if last is not None and last[1:] == (low, high) and last[0].end == span.start:
            found[-1] = (Span(last[0].start, span.end, span.counts), low, high)
        else:
            found.append((span, low, high))
    return found


def _rounded(number: int) -> int:
    """The next round number, at least 4, that four lines divide evenly."""
    for factor in (1, 10, 100, 1000, 10_000, 100_000, 1_000_000):
        for step in (4, 5, 6, 8, 10, 12, 16, 20, 24, 32):
            if step * factor >= number and step * factor % 4 == 0:
                return step * factor
    return number


def _counts(top: int, y: Callable[[float], float]) -> tuple[tuple[float, str], ...]:
    return tuple((y(top * part / 4), f"{top * part // 4:,}".replace(",", "\u202f")) for part in range(5))


def _hours(since: datetime, until: datetime, x: Callable[[datetime], float]) -> tuple[tuple[float, str], ...]:
    """Ticks at round hours, days at midnight, of at most nine."""
    hours = (until - since).total_seconds() / 3600
    step = timedelta(hours=next((one for one in STEPS_H if hours / one <= 9), STEPS_H[-1]))
    midnight = since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    moment = midnight + step * (-(-(since - midnight) // step))
    found = []
    while moment < until:
        at_midnight = (moment.hour, moment.minute) == (0, 0)
        found.append((x(moment), f"{moment:%d %b}" if at_midnight else f"{moment:%H:%M}"))
        moment += step
    return tuple(found)
