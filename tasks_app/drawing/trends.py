"""Small plots of numbers over time, as the geometry of an SVG drawing. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from tasks_app.drawing.plots import Tick

WIDTH: Final = 240
HEIGHT: Final = 64
EDGE: Final = 3
KINDS: Final = 8
"""Kinds of areas that look different; those beyond are drawn together as the last one."""
TIMES: Final = (
    (timedelta(hours=1), timedelta(minutes=15)),
    (timedelta(hours=3), timedelta(minutes=30)),
    (timedelta(hours=8), timedelta(hours=1)),
    (timedelta(hours=16), timedelta(hours=2)),
    (timedelta(days=2), timedelta(hours=4)),
    (timedelta(days=4), timedelta(hours=12)),
    (timedelta(days=10), timedelta(days=1)),
    (timedelta(days=40), timedelta(days=5)),
)
"""How far apart the marks of a time axis of up to some length stand."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A line, broken where nothing is known, with the height of what it should be and of the band that is allowed."""

    path: str
    wanted: float
    band_top: float
    band_height: float
    last: float | None
    width: int = WIDTH
    height: int = HEIGHT


def trend(values: Sequence[float | None], wanted: float, part: float) -> Trend:
    """Numbers evenly apart in time against a wanted one; the band is `part` of it to both sides."""
    known = [value for value in values if value is not None]
    top = max([*known, wanted * (1 + 2 * part), 1e-9])

    def y(value: float) -> float:
        return round(HEIGHT - EDGE - value / top * (HEIGHT - 2 * EDGE), 2)

    step = WIDTH / max(len(values) - 1, 1)
    high, low = y(wanted * (1 + part)), y(wanted * (1 - part))
    path = _line([(round(i * step, 2), None if v is None else y(v)) for i, v in enumerate(values)])
    return Trend(path, y(wanted), high, round(low - high, 2), known[-1] if known else None)


def _line(points: Sequence[tuple[float, float | None]]) -> str:
    """Corners joined by lines; a single one between gaps is a dot of a line."""
    parts, pen = [], False
    for x, y in points:
        if y is None:
            pen = False
            continue
        parts.append(f"{'L' if pen else 'M'}{x},{y}" if pen else f"M{x},{y} h0.01")
        pen = True
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Layer:
    """One area of a stack. `kind` is the number of its look; `last` its latest number."""

    name: str
    kind: int
    path: str
    last: float | None


@dataclass(frozen=True, slots=True)
class Stack:
    """Areas upon one another over time in a drawing of `width` x `height`, the largest at the bottom."""

    layers: list[Layer]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    top: float
    totals: list[float] = field(default_factory=list)
    width: int = 900
    height: int = 240
    left: int = 70
    right: int = 892
    bottom: int = 210


OTHERS: Final = "others"


def stacked(ends: Sequence[datetime], values: Mapping[str, Sequence[float | None]]) -> Stack:
    """Areas of numbers by name at the same times. The smallest are put together.

    A time of which nothing is known is left out; else what is not known counts as nothing.
    """
    known = [i for i in range(len(ends)) if any(row[i] is not None for row in values.values())]
    ends, values = [ends[i] for i in known], {name: [row[i] for i in known] for name, row in values.items()}
    order = sorted(values, key=lambda name: (-sum(v or 0 for v in values[name]), name))
    rows = {name: [v or 0.0 for v in values[name]] for name in order[: KINDS - 1]}
    rest = order[KINDS - 1 :]
    if len(rest) == 1:
        rows[rest[0]] = [v or 0.0 for v in values[rest[0]]]
    elif rest:
        rows[OTHERS] = [sum(values[name][i] or 0.0 for name in rest) for i in range(len(ends))]
    totals = [sum(row[i] for row in rows.values()) for i in range(len(ends))]
    empty = Stack([], [], [], 0.0)
    marks = nice(max(totals, default=0.0))
    top = marks[-1]

    def y(value: float) -> float:
        return round(empty.bottom - value / top * (empty.bottom - 10), 1)

    length = (ends[-1] - ends[0]) / timedelta(seconds=1) if len(ends) > 1 else 1.0

    def x(number: int) -> float:
        part = (ends[number] - ends[0]) / timedelta(seconds=1) / length
        return round(empty.left + part * (empty.right - empty.left), 1)

    # A single time is drawn as a level over the whole width: else it could not be seen.
    places = [x(i) for i in range(len(ends))] if len(ends) != 1 else [float(empty.left), float(empty.right)]
    lasts = {name: row[-1] if row else None for name, row in rows.items()}
    if len(ends) == 1:
        rows = {name: row * 2 for name, row in rows.items()}
    below, layers = [0.0] * len(places), []
    for kind, (name, row) in enumerate(rows.items()):
        above = [low + value for low, value in zip(below, row, strict=True)]
        upper = " L".join(f"{at},{y(v)}" for at, v in zip(places, above, strict=True))
        lower = " L".join(f"{at},{y(v)}" for at, v in reversed(list(zip(places, below, strict=True))))
        layers.append(Layer(name, kind, f"M{upper} L{lower} Z" if ends else "", lasts[name]))
        below = above
    return Stack(
        layers,
        times(ends, empty.left, empty.right),
        [Tick(y(v), f"{v:,.0f}".replace(",", "\u202f")) for v in marks],
        top,
        totals,
    )


def nice(largest: float) -> list[float]:
    """Four or five round marks from 0 to at least the largest number."""
    if largest <= 0:
        return [0.0, 1.0]
    power = 1.0
    while power * 10 <= largest / 4:
        power *= 10
    step = next(m * power for m in (1, 2, 2.5, 5, 10, 20) if m * power * 4 >= largest)
    return [step * i for i in range(5) if i == 0 or step * (i - 1) < largest]


def times(ends: Sequence[datetime], left: float, right: float) -> list[Tick]:
    """Round times on an axis from the first to the last."""
    if len(ends) < 2:
        return []
    first, length = ends[0], ends[-1] - ends[0]
    step = next((s for most, s in TIMES if length <= most), timedelta(days=10))
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    found, at = [], midnight + step * -((midnight - first) // step)
    while at <= ends[-1]:
        text = f"{at:%d %b}" if step >= timedelta(days=1) or (at.hour, at.minute) == (0, 0) else f"{at:%H:%M}"
        found.append(Tick(round(left + (at - first) / length * (right - left), 1), text))
        at += step
    return found
