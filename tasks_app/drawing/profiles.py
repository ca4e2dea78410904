"""The profile of a task's jobs over time as the geometry of a drawing. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tasks_app.drawing.plots import Tick
from tasks_app.drawing.trends import nice, times

TONES: Final = {"finished": "ok", "failed": "bad", "cancelled or closed": "off", "running": "run", "waiting": "wait"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 300, 70, 892, 10, 268


@dataclass(frozen=True, slots=True)
class Layer:
    name: str
    tone: str
    path: str
    last: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """Areas upon one another: how many jobs had come how far at which time."""

    layers: list[Layer]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = RIGHT
    bottom: int = BOTTOM


def draw(ends: Sequence[datetime], layers: Mapping[str, Sequence[int]]) -> Drawing:
    """The drawing of numbers at the same times, in the given order from below; empty layers are left out."""
    totals = [sum(at) for at in zip(*layers.values(), strict=True)]
    marks = nice(float(max(totals, default=0)))

    def x(number: int) -> float:
        return round(LEFT + number * (RIGHT - LEFT) / max(len(ends) - 1, 1), 1)

    def y(value: float) -> float:
        return round(BOTTOM - value / marks[-1] * (BOTTOM - TOP), 1)

    below, drawn = [0] * len(ends), []
    for name, row in layers.items():
        above = [low + value for low, value in zip(below, row, strict=True)]
        if any(row):
            upper = " L".join(f"{x(i)},{y(value)}" for i, value in enumerate(above))
            lower = " L".join(f"{x(i)},{y(value)}" for i, value in reversed(list(enumerate(below))))
            drawn.append(Layer(name, TONES.get(name, "wait"), f"M{upper} L{lower} Z", row[-1]))
        below = above
    return Drawing(
        drawn, times(ends, LEFT, RIGHT), [Tick(y(mark), f"{mark:,.0f}".replace(",", "\u202f")) for mark in marks]
    )
