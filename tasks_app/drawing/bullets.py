"""Bars that show a number against what it should be, as SVG in percent of their width."""

from __future__ import annotations

from dataclasses import dataclass

from tasks_app.domain import words
from tasks_app.drawing.scales import Scale


@dataclass(frozen=True, slots=True)
class Bullet:
    """A bar of `value` with the `mark` it should reach and, where one is allowed, the band around it.

    `cut`: the value is beyond the end of the scale. `label` says all of it in words.
    """

    label: str
    tone: str
    value: float
    mark: float | None
    band: tuple[float, float] | None = None
    cut: bool = False

    @property
    def mark_start(self) -> float | None:
        """The left end of the mark, kept inside the bar."""
        return None if self.mark is None else min(max(round(self.mark - 0.75, 2), 0.0), 98.5)

    @property
    def band_width(self) -> float:
        return round(self.band[1] - self.band[0], 2) if self.band else 0.0


def of_ratio(ratio: float | None, part: float, label: str, tone: str) -> Bullet | None:
    """A ratio on a scale from 0 to 2: the mark is 1, the band is `part` of it to both sides. None without a ratio."""
    if ratio is None:
        return None
    at = Scale(0.0, 2.0, 0.0, 100.0)
    return Bullet(label, tone, at(min(max(ratio, 0.0), 2.0)), at(1.0), (at(1 - part), at(1 + part)), cut=ratio > 2)


def of_amount(value: float, wanted: float | None, label: str, tone: str, *, top: float = 0.0) -> Bullet:
    """An amount against another one. The scale ends at `top`, or a tenth beyond the larger of the two."""
    mark = wanted if wanted and wanted > 0 else None
    at = Scale(0.0, max(top, value * 1.02, (mark or 0.0) * 1.1, 1.0), 0.0, 100.0)
    return Bullet(label, tone, at(max(value, 0.0)), at(mark) if mark else None)


def of_cores(cores: int, pledged: int) -> Bullet:
    """Running cores against the pledge of a queue; -1 marks an opportunistic one, 0 one without."""
    if pledged <= 0:
        what = "opportunistic, nothing is pledged" if pledged < 0 else "nothing is pledged"
        return of_amount(
            cores, None, f"{words.plural(cores, 'core runs', 'cores run')}; {what}", "run" if cores else "wait"
        )
    label = f"{words.plural(cores, 'core runs', 'cores run')}, {words.plural(pledged, 'is', 'are')} pledged"
    return of_amount(cores, pledged, label, "ok" if cores >= 0.85 * pledged else "warn" if cores else "bad")
