"""Histograms: numbers from a file checked, and turned into the geometry of a drawing. Pure.

A file holds one histogram, a list of them, or `{"histograms": [...]}`. Each is an object with its bins as `edges` (n + 1
rising numbers) or as `low` and `high`; its `counts` (n numbers) and optional `errors` (n numbers, not negative; without
them, whole counts get the square root); optional texts `name`, `title`, `xlabel`, `unit`, `ylabel`. Every other number in
it, and every object with a number `value` (and `error`), is shown beside the drawing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from jedisite.vocabulary.words import plural
from tasks_app.drawing.scales import Frame, Tick, marks_between

MOST_HISTOGRAMS = 40
MOST_BINS = 2000
MOST_FACTS = 40
LARGEST = 1e300


class HistogramError(ValueError):
    """A file that does not hold histograms as described; the sentence names the first fault."""


@dataclass(frozen=True, slots=True)
class Histogram:
    name: str
    title: str
    x_label: str
    y_label: str
    edges: tuple[float, ...]
    counts: tuple[float, ...]
    errors: tuple[float, ...]
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def total(self) -> float:
        return math.fsum(self.counts)

    @property
    def mean(self) -> float | None:
        """Mean of the bins' centres weighted with their counts; None when the weights sum to nothing."""
        if not self.total:
            return None
        return math.fsum(count * (low + high) / 2 for low, high, count, _ in self.bins()) / self.total

    def bins(self) -> list[tuple[float, float, float, float | None]]:
        """(low, high, count, error) of every bin."""
        errors: tuple[float | None, ...] = self.errors or (None,) * len(self.counts)
        return list(zip(self.edges, self.edges[1:], self.counts, errors, strict=False))


def read(content: bytes) -> list[Histogram]:
    """The histograms in a JSON text. Raises HistogramError."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise HistogramError("The file is not JSON.") from exc
    if isinstance(raw, Mapping) and "histograms" in raw:
        raw = raw["histograms"]
    if isinstance(raw, Mapping) and raw and all(isinstance(value, Mapping) for value in raw.values()):
        raw = [{"name": name, **value} for name, value in raw.items()]
    listed = raw if isinstance(raw, list) else [raw]
    if len(listed) > MOST_HISTOGRAMS:
        raise HistogramError(f"The file contains {len(listed)} histograms; {MOST_HISTOGRAMS} are shown at most.")
    return [_one(item, number) for number, item in enumerate(listed, 1)]


def _one(raw: Any, number: int) -> Histogram:
    if not isinstance(raw, Mapping):
        raise HistogramError(f"Histogram {number} is not an object.")
    name = _text(raw.get("name")) or _text(raw.get("title")) or f"histogram {number}"
    counts = _numbers(raw.get("counts"), f"counts of {name}")
    if not 1 <= len(counts) <= MOST_BINS:
        raise HistogramError(f"{name} has {plural(len(counts), 'bin')}; 1 to {MOST_BINS} are shown.")
    if "edges" in raw:
        edges = _numbers(raw["edges"], f"edges of {name}")
    else:
        low, high = _numbers([raw.get("low"), raw.get("high")], f"low and high of {name}")
        edges = tuple(low + (high - low) * i / len(counts) for i in range(len(counts) + 1))
    if len(edges) != len(counts) + 1:
        raise HistogramError(
            f"{name} has {len(counts)} counts and {len(edges)} edges; it needs one more edge than counts."
        )
    if any(b <= a for a, b in pairwise(edges)):
        raise HistogramError(f"The bin edges of {name} do not increase.")
    errors = _numbers(raw["errors"], f"errors of {name}") if raw.get("errors") is not None else ()
    if errors and (len(errors) != len(counts) or min(errors) < 0):
        raise HistogramError(f"The errors of {name} must be one non-negative number for each count.")
    if not errors and all(count >= 0 and count == int(count) for count in counts):
        errors = tuple(math.sqrt(count) for count in counts)
    title, x_label, y_label, unit = (_text(raw.get(key)) for key in ("title", "xlabel", "ylabel", "unit"))
    if unit:
        x_label = f"{x_label} [{unit}]".strip()
    return Histogram(name, title, x_label, y_label, edges, counts, errors, tuple(_facts(raw, unit)))


def _facts(raw: Mapping[str, Any], unit: str) -> Iterator[tuple[str, str]]:
    """(word, value) of the further numbers of a histogram, for people."""
    for key, value in list(raw.items())[:MOST_FACTS]:
        word = str(key)[:50].replace("_", " ")
        if _is_number(value) and key not in ("low", "high"):
            yield word, _label(value)
        elif isinstance(value, Mapping) and _is_number(value.get("value")):
            error = f" ± {_label(value['error'])}" if _is_number(value.get("error")) else ""
            yield word, f"{_label(value['value'])}{error} {unit}".strip()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST


def _numbers(raw: Any, what: str) -> tuple[float, ...]:
    if not isinstance(raw, list):
        raise HistogramError(f"The {what} are not a list.")
    if len(raw) > MOST_BINS + 1:
        raise HistogramError(f"The {what} are {plural(len(raw), 'number')}; {MOST_BINS + 1} are read at most.")
    for value in raw:
        if not _is_number(value):
            raise HistogramError(f"The {what} contain something that is not a number.")
    return tuple(float(value) for value in raw)


def _text(raw: Any) -> str:
    return raw[:200] if isinstance(raw, str) else ""


FRAME: Final = Frame(640, 300, 64, 626, 14, 256)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A histogram in the coordinates of a picture: paths ready for SVG, and ticks."""

    histogram: Histogram
    outline: str
    area: str
    error_bars: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    frame: Frame = FRAME


def draw(histogram: Histogram) -> Drawing:
    """The geometry of a step plot with error bars. Bins are drawn to the scale of their edges."""
    low_x, high_x = histogram.edges[0], histogram.edges[-1]
    errors = histogram.errors or (0.0,) * len(histogram.counts)
    low_y = min(0.0, *(c - e for c, e in zip(histogram.counts, errors, strict=True)), 0.0)
    high_y = max(0.0, *(c + e for c, e in zip(histogram.counts, errors, strict=True)), 0.0)
    if high_y <= low_y:
        high_y = low_y + 1
    high_y += (high_y - low_y) * 0.05
    x, y = FRAME.x(low_x, high_x), FRAME.y(low_y, high_y)
    corners = [f"{x(edge)},{y(count)}" for a, b, count, _ in histogram.bins() for edge in (a, b)]
    outline = "M" + " L".join(corners)
    area = f"M{x(low_x)},{y(0)} L" + " L".join(corners) + f" L{x(high_x)},{y(0)} Z"
    bars = " ".join(
        f"M{x((a + b) / 2)},{y(count - error)} V{y(count + error)}" for a, b, count, error in histogram.bins() if error
    )
    return Drawing(
        histogram,
        outline,
        area,
        bars,
        [Tick(x(value), _label(value)) for value in marks_between(low_x, high_x, 7)],
        [Tick(y(value), _label(value)) for value in marks_between(low_y, high_y, 5)],
    )


def _label(value: float) -> str:
    return f"{value:.6g}"
