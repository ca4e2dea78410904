"""Swim lanes over time as SVG: spans, bars of many jobs, and moments. Pure.

Everything drawn is a link, so that it is reached and read with keys: to what it stands for or else to its row in the table
below the drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import Final

from tasks_app.domain import words
from tasks_app.drawing.scales import Scale, TimeScale, time_ticks
from tasks_app.drawing.spans import Lane, Moment, Span, View

WIDTH: Final = 1200
LEFT: Final = 92
RIGHT: Final = 12
TOP: Final = 26
ROW: Final = 22
SLIM: Final = 13
"""Height of rows without words."""
GAP: Final = 16
BARS: Final = 84
"""Height of a lane with bars of many jobs."""
LEAST: Final = 3.0
"""Pixels of the shortest span; shorter ones beside each other are drawn as one."""
LETTER: Final = 7.9
TABLE: Final = "#as-table"


@dataclass(frozen=True, slots=True)
class Bar:
    """Jobs in one state that last changed between two times."""

    start: datetime
    end: datetime
    status: str
    count: int
    url: str


@dataclass(frozen=True, slots=True)
class Bars:
    """A lane of bars, one above the other where the times are the same."""

    name: str
    bars: Sequence[Bar]


def draw(lanes: Sequence[Lane | Bars], view: View, now: datetime) -> str:
    """The drawing of all lanes between the times of the view."""
    scale = TimeScale(view.since, view.until, LEFT, WIDTH - RIGHT)
    y, parts = float(TOP), []
    for lane in lanes:
        parts.append(f'<text class="lane" x="0" y="{y + 15:.0f}">{escape(lane.name)}</text>')
        if isinstance(lane, Bars):
            parts.append(_bars(lane.bars, scale, y))
            y += BARS + GAP
            continue
        thick = SLIM if lane.is_slim else ROW
        for row in lane.rows:
            parts += _row(row, scale, y, view, now, thick)
            y += thick + (6 if any(span.usual_s for span in row) else 1)
        if lane.moments or not lane.rows:
            parts += _moments(lane.moments, scale, y, view)
            y += ROW
        if lane.note:
            parts.append(f'<text class="note" x="{LEFT}" y="{y + 12:.0f}">{escape(lane.note)}</text>')
            y += 16
        y += GAP
    height = y - GAP + 8
    axis = _axis(scale, height)
    ahead = ""
    if view.since < now < view.until:
        ahead = f'<line class="now" x1="{scale(now):.1f}" x2="{scale(now):.1f}" y1="{TOP - 6}" y2="{height:.0f}"/>'
    return (
        f'<svg class="lanes" role="group" aria-label="Timeline" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'xmlns="http://www.w3.org/2000/svg">{axis}{ahead}{"".join(parts)}</svg>'
    )


def _axis(scale: TimeScale, height: float) -> str:
    return "".join(
        f'<line class="tick" x1="{tick.at:.1f}" x2="{tick.at:.1f}" y1="{TOP - 8}" y2="{height:.0f}"/>'
        f'<text class="time" x="{tick.at:.1f}" y="12" text-anchor="{tick.anchor}">{tick.text}</text>'
        for tick in time_ticks(scale, dated=True)
    )


def merged(row: Iterable[Span], scale: TimeScale, now: datetime) -> list[tuple[Span, list[Span]]]:
    """Spans with the run of spans that each stands for: neighbours that are too short to be drawn are drawn as one."""
    found: list[tuple[Span, list[Span]]] = []
    tiny_since = 0.0
    for span in row:
        x1, x2 = scale(span.start), scale(span.end or now)
        is_tiny = x2 - x1 < LEAST
        if (
            is_tiny
            and found
            and len(found[-1][1])
            and x1 - tiny_since < LEAST
            and _is_tiny(found[-1][1][-1], scale, now)
        ):
            found[-1][1].append(span)
            continue
        tiny_since = x1
        found.append((span, [span]))
    return found


def _is_tiny(span: Span, scale: TimeScale, now: datetime) -> bool:
    return scale(span.end or now) - scale(span.start) < LEAST


def _row(row: Sequence[Span], scale: TimeScale, y: float, view: View, now: datetime, height: int) -> list[str]:
    shown = [span for span in row if span.start < view.until and (span.end or now) >= view.since]
    parts = []
    drawn = merged(shown, scale, now)
    for place, (span, run) in enumerate(drawn):
        x1 = scale(span.start)
        x2 = max(scale(run[-1].end or now), x1 + LEAST)
        if span.usual_s and len(run) == 1:
            end = min(scale(span.start + timedelta(seconds=min(span.usual_s, 10**9))), x2)
            parts.append(
                f'<rect class="usual" x="{x1:.1f}" y="{y + height - 1:.0f}" width="{max(end - x1, LEAST):.1f}" height="5"/>'
            )
        title = described(span, now) if len(run) == 1 else _several(run, now)
        tone = span.tone if len(run) == 1 else "many"
        free = scale(drawn[place + 1][0].start) if place + 1 < len(drawn) else WIDTH
        label = _label(span.text, tone, x1, x2, free, y) if len(run) == 1 and height == ROW else ""
        parts.append(
            f'<a href="{escape(span.url or TABLE)}" aria-label="{escape(title)}"><title>{escape(title)}</title>'
            f'<rect class="span {tone}" x="{x1:.1f}" y="{y:.0f}" width="{x2 - x1:.1f}" height="{height - 3}" rx="2"/>{label}</a>'
        )
    return parts


def _label(text: str, tone: str, x1: float, x2: float, free: float, y: float) -> str:
    """The text of a span: in it, or else behind it, where there is room up to `free`; else nothing."""
    width = len(text) * LETTER + 8
    if width < x2 - x1:
        return f'<text class="in {tone}" x="{x1 + 5:.1f}" y="{y + 14:.0f}">{escape(text)}</text>'
    if width < free - x2:
        return f'<text class="out" x="{x2 + 5:.1f}" y="{y + 14:.0f}">{escape(text)}</text>'
    return ""


def described(span: Span, now: datetime) -> str:
    """A span in words: what, how long, how long usually, who and why."""
    length = words.duration(span.length(now).total_seconds())
    parts = [f"{span.text}: {length}{' so far' if span.end is None else ''}"]
    if span.usual_s is not None:
        parts.append(f"usual {words.duration(span.usual_s)}")
    if span.by:
        parts.append(f"by {span.by}")
    text = ", ".join(parts) + f", from {span.start:%Y-%m-%d %H:%M:%S} UTC"
    return f"{text}. {span.reason[:300]}" if span.reason else text


def _several(run: Sequence[Span], now: datetime) -> str:
    few = ", ".join(dict.fromkeys(span.text for span in run))
    return f"{len(run)} short ones: {few[:200]}, from {run[0].start:%Y-%m-%d %H:%M:%S} UTC; zoom in to tell them apart"


def _moments(moments: Sequence[Moment], scale: TimeScale, y: float, view: View) -> list[str]:
    """Diamonds; those that would lie on each other are one, with their number."""
    groups: list[list[Moment]] = []
    for moment in sorted(moments, key=lambda m: m.at):
        if not view.since <= moment.at <= view.until:
            continue
        if groups and scale(moment.at) - scale(groups[-1][0].at) < 14:
            groups[-1].append(moment)
        else:
            groups.append([moment])
    parts = []
    for group in groups:
        x, middle = scale(group[0].at), y + ROW / 2 - 2
        lines = [in_words(moment) for moment in group[:8]] + (["and more"] if len(group) > 8 else [])
        title = "; ".join(lines)
        number = (
            f'<text class="number" x="{x + 9:.1f}" y="{middle + 4:.0f}">{len(group)}</text>' if len(group) > 1 else ""
        )
        parts.append(
            f'<a href="{escape(group[0].url or TABLE)}" aria-label="{escape(title)}"><title>{escape(title)}</title>'
            f'<path class="moment {group[0].tone}" d="M{x:.1f} {middle - 7:.0f}l7 7l-7 7l-7 -7z"/>{number}</a>'
        )
    return parts


def in_words(moment: Moment) -> str:
    """A moment in words."""
    by = f" by {moment.by}" if moment.by else ""
    why = f": {moment.reason[:200]}" if moment.reason and moment.reason != moment.text else ""
    return f"{moment.at:%Y-%m-%d %H:%M:%S} UTC {moment.text}{by}{why}"


def _bars(bars: Sequence[Bar], scale: TimeScale, y: float) -> str:
    by_start: dict[datetime, list[Bar]] = {}
    for bar in bars:
        by_start.setdefault(bar.start, []).append(bar)
    highest = max((sum(bar.count for bar in pile) for pile in by_start.values()), default=1)
    up = Scale(0, highest, 0, BARS)
    parts = [
        f'<text class="note" x="{LEFT - 6}" y="{y + 30:.0f}" text-anchor="end">{escape(words.count(highest))}</text>',
        f'<line class="tick" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y + BARS:.0f}" y2="{y + BARS:.0f}"/>',
    ]
    for pile in by_start.values():
        foot = y + BARS
        for bar in pile:
            height = max(up(bar.count), 1.5)
            foot -= height
            x1, x2 = scale(bar.start), scale(bar.end)
            title = f"{bar.count} {bar.status}, {bar.start:%Y-%m-%d %H:%M} to {bar.end:%H:%M} UTC"
            parts.append(
                f'<a href="{escape(bar.url)}" aria-label="{escape(title)}"><title>{escape(title)}</title>'
                f'<rect class="span {words.tone(bar.status)}" x="{x1 + 0.5:.1f}" y="{foot:.1f}" '
                f'width="{max(x2 - x1 - 1, 1):.1f}" height="{height:.1f}"/></a>'
            )
    return "".join(parts)
