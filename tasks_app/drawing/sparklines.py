"""Sparklines: the last values of something as a line of text's height, with marks where something failed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 120
HEIGHT: Final = 24
EDGE: Final = 2


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Paths for SVG in a picture of `width` x `height`; `marks` are the places of values that failed."""

    line: str
    area: str
    marks: list[tuple[float, float]]
    label: str
    width: int = WIDTH
    height: int = HEIGHT


def sparkline(values: Sequence[float], failed: Sequence[bool] = (), label: str = "") -> Sparkline | None:
    """The line through values that are not negative, oldest first, from 0 to the highest; None when there are none."""
    if not values:
        return None
    top = max(values) or 1.0
    step = (WIDTH - 2 * EDGE) / max(len(values) - 1, 1)
    points = [
        (round(EDGE + i * step, 1), round(HEIGHT - EDGE - value / top * (HEIGHT - 2 * EDGE), 1))
        for i, value in enumerate(values)
    ]
    if len(points) == 1:
        points.append((WIDTH - EDGE, points[0][1]))
    line = "M" + " L".join(f"{x},{y}" for x, y in points)
    area = f"{line} L{points[-1][0]},{HEIGHT} L{points[0][0]},{HEIGHT} Z"
    marks = [point for point, bad in zip(points, failed, strict=False) if bad]
    return Sparkline(line, area, marks, label)
