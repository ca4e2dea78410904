"""Running cores over time, with what changed meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from brokerage_app.grid import samples
from tasks_app.drawing.stacks import Stack, of_series
from tasks_app.web.overview.recent_changes import Change

POINTS: Final = 150
TABLE_ROWS: Final = 48


@dataclass(frozen=True, slots=True)
class Mark:
    """A change on the plot: where, and what it says when pointed at."""

    at: float
    text: str
    number: int


@dataclass(frozen=True, slots=True)
class Cores:
    """Running cores over time, as a plot and as rows of a table: (time, numbers of `names`)."""

    title: str
    plot: Stack
    names: list[str]
    rows: list[tuple[datetime, list[float | None]]]
    marks: list[Mark]


def running_cores(since: datetime, until: datetime, share: str, changed: list[Change]) -> Cores | None:
    """Of the whole grid by share, or of a share by site; None when there is no sample. One query."""
    step = samples.step_for(until - since, POINTS)
    found = samples.each(
        "site" if share else "share",
        since=since,
        until=until,
        step=step,
        names=["running_cores"],
        share=share,
        under_way=True,
    )
    values = {name: one.values["running_cores"] for name, one in found.items() if any(one.values["running_cores"])}
    if not found:
        return None
    ends = samples.steps(since, until, step, under_way=True)
    plot = of_series(ends, values)
    # What changed since the last sample stands at the right edge.
    marks = [
        Mark(plot.times(change.at), f"{change.at:%H:%M} {change.what}", change.number)
        for change in changed
        if plot.times is not None
    ]
    names = [layer.name for layer in plot.layers if layer.name in values]
    every = max(1, -(-len(ends) // TABLE_ROWS))
    rows = [(end, [values[name][i] for name in names]) for i, end in enumerate(ends) if i % every == 0]
    return Cores(
        f"Running cores of {share} by site" if share else "Running cores by activity", plot, names, rows[::-1], marks
    )
