"""Sparklines: the last values of something as a line of text's height, with marks where something failed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tasks_app.drawing.scales import Frame

FRAME: Final = Frame(120, 24, 2, 118, 2, 22)


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Paths for SVG; `marks` are the places of values that failed."""

    line: str
    area: str
    marks: list[tuple[float, float]]
    label: str
    frame: Frame = FRAME


def sparkline(values: Sequence[float], failed: Sequence[bool] = (), label: str = "") -> Sparkline | None:
    """The line through values that are not negative, oldest first, from 0 to the highest; None when there are none."""
    if not values:
        return None
    x, y = FRAME.x(0, max(len(values) - 1, 1)), FRAME.y(0, max(values))
    points = [(x(i), y(value)) for i, value in enumerate(values)]
    if len(points) == 1:
        points.append((FRAME.right, points[0][1]))
    line = "M" + " L".join(f"{x},{y}" for x, y in points)
    area = f"{line} L{points[-1][0]},{FRAME.height} L{points[0][0]},{FRAME.height} Z"
    marks = [point for point, bad in zip(points, failed, strict=False) if bad]
    return Sparkline(line, area, marks, label)
