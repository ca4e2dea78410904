"""A number over time against what it should be: a line in a band. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tasks_app.drawing.scales import Frame

FRAME: Final = Frame(240, 64, 0, 240, 3, 61)


@dataclass(frozen=True, slots=True)
class Trend:
    """A line, broken where nothing is known, with the height of what it should be and of the band that is allowed."""

    path: str
    wanted: float
    band_top: float
    band_height: float
    last: float | None
    frame: Frame = FRAME


def trend(values: Sequence[float | None], wanted: float, part: float) -> Trend:
    """Numbers evenly apart in time against a wanted one; the band is `part` of it to both sides."""
    known = [value for value in values if value is not None]
    top = max([*known, wanted * (1 + 2 * part), 1e-9])
    x, y = FRAME.x(0, max(len(values) - 1, 1)), FRAME.y(0, top)
    high, low = y(wanted * (1 + part)), y(wanted * (1 - part))
    path = _line([(x(i), None if v is None else y(v)) for i, v in enumerate(values)])
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
