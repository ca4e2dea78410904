"""A graph without cycles in layers from left to right: where its boxes stand and how its arrows run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from tasks_app.drawing.scales import Scale

WIDTH, HEIGHT = 172, 46
GAP_X, GAP_Y, EDGE = 64, 14, 10
MOST_ARROWS: Final = 2_000
SWEEPS: Final = 3


@dataclass(frozen=True, slots=True)
class Placed:
    """The left upper corner of a box."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one box to another, by their places in the list of boxes; `path` is that of an SVG."""

    start: int
    end: int
    path: str
    is_bold: bool


@dataclass(frozen=True, slots=True)
class Layered:
    """`left_out` arrows are not drawn: there are too many to tell them apart."""

    width: float
    height: float
    boxes: tuple[Placed, ...]
    arrows: tuple[Arrow, ...]
    left_out: int = 0
    box_width: int = WIDTH
    box_height: int = HEIGHT


def layered(depths: Sequence[int], edges: Sequence[tuple[int, int]], bold: Collection[tuple[int, int]] = ()) -> Layered:
    """A place for each box, in the column of its depth, near those that it is joined with; bold arrows come last, on top."""
    columns = _columns(depths, edges)
    most = max((len(column) for column in columns), default=0)
    width = 2 * EDGE + len(columns) * (WIDTH + GAP_X) - GAP_X if columns else 0
    height = 2 * EDGE + most * (HEIGHT + GAP_Y) - GAP_Y if most else 0
    x = Scale(0, 1, EDGE, EDGE + WIDTH + GAP_X)
    y = Scale(0, 1, EDGE, EDGE + HEIGHT + GAP_Y)
    boxes = [Placed(0, 0)] * len(depths)
    for number, column in enumerate(columns):
        above = (most - len(column)) / 2
        for row, at in enumerate(column):
            boxes[at] = Placed(x(number), y(above + row))
    drawn = sorted(edges, key=lambda edge: (edge in bold, edge))
    kept = drawn[-MOST_ARROWS:]
    arrows = tuple(Arrow(a, b, _path(boxes[a], boxes[b]), (a, b) in bold) for a, b in kept)
    return Layered(width, height, tuple(boxes), arrows, len(drawn) - len(kept))


def _columns(depths: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Boxes by column. Each is drawn towards the middle of those that it is joined with in other columns, a few times."""
    columns: list[list[int]] = [[] for _ in range(max(depths, default=-1) + 1)]
    for at, depth in enumerate(depths):
        columns[depth].append(at)
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for a, b in edges:
        before.setdefault(b, []).append(a)
        after.setdefault(a, []).append(b)
    place = {at: row - len(column) / 2 for column in columns for row, at in enumerate(column)}
    for sweep in range(SWEEPS):
        forwards = sweep % 2 == 0
        joined = before if forwards else after
        for column in columns if forwards else reversed(columns):
            middle = {
                at: sum(place[one] for one in joined[at]) / len(joined[at]) if at in joined else place[at]
                for at in column
            }
            column.sort(key=lambda at: (middle[at], at))
            for row, at in enumerate(column):
                place[at] = row - len(column) / 2
    return columns


def _path(start: Placed, end: Placed) -> str:
    """From the right side of a box to the left side of another; back in an arch below, where folding has led to that."""
    y1, y2 = start.y + HEIGHT / 2, end.y + HEIGHT / 2
    if end.x > start.x:
        x1, x2 = start.x + WIDTH, end.x - 5
        bend = (x2 - x1) / 2
        return f"M{x1:.0f} {y1:.0f} C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
    x1, x2 = start.x + WIDTH / 2, end.x + WIDTH / 2
    y1, y2 = start.y + HEIGHT, end.y + HEIGHT + 5
    low = max(y1, y2) + GAP_Y
    return f"M{x1:.0f} {y1:.0f} C{x1:.0f} {low:.0f} {x2:.0f} {low:.0f} {x2:.0f} {y2:.0f}"
