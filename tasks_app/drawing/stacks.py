"""Stacked areas over time: lines between what was measured at some times, or steps of what held for some time. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tasks_app.drawing.scales import Frame, Tick, TimeScale, count_ticks, grouped, marks_from_zero, time_ticks

FRAME: Final = Frame(900, 240, 70, 892, 10, 210)
TALL: Final = Frame(900, 300, 70, 892, 10, 268)
GOOD: Final = "k2"
LOOKS: Final = ("k0", "k1", GOOD, "k3", "k4", "k5", "k6")
"""Looks of layers that have one of their own; the others are drawn as one, which has the last look."""
OTHERS, LAST_LOOK = "others", "k7"


@dataclass(frozen=True, slots=True)
class Period:
    """What was counted from `start` to `end`."""

    start: datetime
    end: datetime
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Layer:
    """One area: what people call it, how it looks, and its path. `note`: a number beside its name."""

    name: str
    title: str
    look: str
    path: str
    note: str


@dataclass(frozen=True, slots=True)
class Stack:
    """Layers from the bottom up. `times`: where a time stands."""

    layers: tuple[Layer, ...]
    times: TimeScale | None
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    frame: Frame


Values = Mapping[str, Sequence[float]]


def of_periods(
    periods: Sequence[Period], since: datetime, until: datetime, *, good: str = "", called: Callable[[str], str] = str
) -> Stack:
    """Counts of periods that do not overlap, in their order; where there is a gap, nothing is drawn.

    good    the name that lies at the bottom and looks good
    called  what people call a name
    """
    periods = [one for one in periods if one.end > since and one.start < until]
    names = {name for one in periods for name in one.counts}
    rows = _few({name: [one.counts.get(name, 0) for one in periods] for name in names}, good)
    looks = [look for look in LOOKS if look != GOOD] if good else list(LOOKS)
    look_of = {good: GOOD, OTHERS: LAST_LOOK}
    look_of |= dict(zip((name for name in rows if name not in look_of), looks, strict=False))
    x = FRAME.times(since, until)
    marks = marks_from_zero(max(map(sum, zip(*rows.values(), strict=True)), default=0))
    y = FRAME.y(0, marks[-1])
    layers = []
    for name, below, above in _piled(rows):
        boxes = _joined(periods, below, above)
        path = " ".join(f"M{x(a)} {y(low)}V{y(high)}H{x(b)}V{y(low)}Z" for a, b, low, high in boxes)
        layers.append(
            Layer(name, called(name), look_of.get(name, LAST_LOOK), path, f"up to {grouped(max(rows[name]))}")
        )
    return Stack(tuple(layers), x, time_ticks(x), count_ticks(marks, y), FRAME)


def of_series(ends: Sequence[datetime], values: Mapping[str, Sequence[float | None]]) -> Stack:
    """Numbers by name at the same times, the largest at the bottom, the smallest put together.

    A time of which nothing is known is left out; else what is not known counts as nothing.
    """
    known = [i for i in range(len(ends)) if any(row[i] is not None for row in values.values())]
    rows = _few({name: [row[i] or 0.0 for i in known] for name, row in values.items()})
    looks = {name: look for name, look in zip(rows, (*LOOKS, LAST_LOOK), strict=False)}
    return _lines([ends[i] for i in known], rows, looks, FRAME)


def of_tones(ends: Sequence[datetime], rows: Values, tones: Mapping[str, str]) -> Stack:
    """Numbers at the same times in the given order from below, each in its tone; empty layers are left out."""
    return _lines(ends, {name: row for name, row in rows.items() if any(row)}, tones, TALL)


def _few(values: Values, first: str = "") -> dict[str, Sequence[float]]:
    """The largest of them, `first` before all, and the sum of the others: as many as can be told apart."""
    order = sorted(values, key=lambda name: (name != first, -sum(values[name]), name))
    room = len(LOOKS) - (bool(first) and first not in values)
    few = {name: values[name] for name in order[:room]}
    rest = order[room:]
    if rest:
        few[rest[0] if len(rest) == 1 else OTHERS] = [
            sum(at) for at in zip(*(values[name] for name in rest), strict=True)
        ]
    return few


def _piled(rows: Values) -> Iterator[tuple[str, list[float], list[float]]]:
    """Each layer with its lower and upper edges."""
    below = [0.0] * max(map(len, rows.values()), default=0)
    for name, row in rows.items():
        above = [low + value for low, value in zip(below, row, strict=True)]
        yield name, below, above
        below = above


def _lines(ends: Sequence[datetime], rows: Values, looks: Mapping[str, str], frame: Frame) -> Stack:
    marks = marks_from_zero(max(map(sum, zip(*rows.values(), strict=True)), default=0))
    y = frame.y(0, marks[-1])
    if not ends:
        return Stack((), None, (), count_ticks(marks, y), frame)
    x = frame.times(ends[0], ends[-1])
    # A single time is drawn as a level over the whole width: else it could not be seen.
    places = [x(end) for end in ends] if len(ends) > 1 else [float(frame.left), float(frame.right)]
    levels = rows if len(ends) > 1 else {name: [*row, *row] for name, row in rows.items()}
    layers = []
    for name, below, above in _piled(levels):
        upper = " L".join(f"{at},{y(value)}" for at, value in zip(places, above, strict=True))
        lower = " L".join(f"{at},{y(value)}" for at, value in list(zip(places, below, strict=True))[::-1])
        layers.append(Layer(name, name, looks.get(name, "wait"), f"M{upper} L{lower} Z", grouped(rows[name][-1])))
    return Stack(tuple(layers), x, time_ticks(x) if len(ends) > 1 else (), count_ticks(marks, y), frame)


def _joined(
    periods: Sequence[Period], below: Sequence[float], above: Sequence[float]
) -> list[tuple[datetime, datetime, float, float]]:
    """Boxes of a layer that are not empty; neighbours of the same height are one."""
    found: list[tuple[datetime, datetime, float, float]] = []
    for one, low, high in zip(periods, below, above, strict=True):
        if high <= low:
            continue
        if found and found[-1][1:] == (one.start, low, high):
            found[-1] = (found[-1][0], one.end, low, high)
        else:
            found.append((one.start, one.end, low, high))
    return found
