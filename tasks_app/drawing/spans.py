"""What happened to a task or a job, as stays, moments and bars for a timeline. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from tasks_app.domain import words

FAR_OFF: Final = 3.0
"""A stay so many times longer than usual is worth a sentence; so much shorter is not."""
LEAST_WORTH_A_WORD: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Logged:
    """A row of a status log."""

    at: datetime
    status: str
    by: str = ""
    reason: str = ""
    site: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that lasted: `end` None means that it goes on. `usual_s`: how long such a stay usually takes.

    `text` is what it is called on the drawing, `count` the number of things that it stands for, `url` leads to them.
    """

    lane: str
    text: str
    tone: str
    start: datetime
    end: datetime | None = None
    by: str = ""
    reason: str = ""
    usual_s: float | None = None
    url: str = ""
    count: int = 1

    def length(self, now: datetime) -> timedelta:
        return (self.end or now) - self.start


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened at once."""

    at: datetime
    text: str
    tone: str = "wait"
    by: str = ""
    reason: str = ""
    url: str = ""


def stays(log: Sequence[Logged], *, kind: str, usual: Mapping[str, float], final: Iterable[str]) -> list[Span]:
    """The stays in states that a log tells, oldest first. Rows that do not change the state belong to the stay before."""
    ends = frozenset(final)
    found: list[Span] = []
    for row in log:
        if found and found[-1].text == row.status:
            continue
        if found:
            found[-1] = replace(found[-1], end=row.at)
        found.append(
            Span(
                "states",
                row.status,
                words.tone(row.status, kind),
                row.at,
                by=row.by,
                reason=row.reason,
                usual_s=usual.get(row.status),
            )
        )
    if found and found[-1].text in ends:
        found[-1] = replace(found[-1], end=found[-1].start)
    return found


def notes(log: Sequence[Logged]) -> list[Moment]:
    """The rows of a log that change no state: what was done to the task where it was."""
    found, before = [], ""
    for row in log:
        if row.status == before:
            found.append(Moment(row.at, _short(row.reason) or "note", by=row.by, reason=row.reason))
        before = row.status
    return found


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def taken(spans: Sequence[Span]) -> dict[tuple[str, str], int]:
    """How often each move between states was made."""
    found: dict[tuple[str, str], int] = {}
    for old, new in pairwise(spans):
        found[old.text, new.text] = found.get((old.text, new.text), 0) + 1
    return found


@dataclass(frozen=True, slots=True)
class Total:
    """All stays in one state together; `usual_s` is the usual length of one."""

    status: str
    stays: int
    total_s: float
    longest_s: float
    usual_s: float | None = None

    @property
    def times(self) -> float | None:
        """How many times as long as usual the longest stay was."""
        return self.longest_s / self.usual_s if self.usual_s else None


def totals(spans: Sequence[Span], now: datetime) -> list[Total]:
    """The longest in all first; without the end, where nothing passes any more."""
    found: dict[str, Total] = {}
    for span in spans:
        length = span.length(now).total_seconds()
        if not length:
            continue
        known = found.get(span.text, Total(span.text, 0, 0.0, 0.0, span.usual_s))
        found[span.text] = replace(
            known, stays=known.stays + 1, total_s=known.total_s + length, longest_s=max(known.longest_s, length)
        )
    return sorted(found.values(), key=lambda total: -total.total_s)


def sentence(spans: Sequence[Span], now: datetime) -> str:
    """What stands out: the present stay against what is usual, and else the stay that was longest against it."""
    if not spans:
        return ""
    last = spans[-1]
    parts = []
    if last.end is None:
        parts.append(_against("in", last, now))
    unusual = [
        span
        for span in spans
        if span.usual_s
        and span.length(now) >= LEAST_WORTH_A_WORD
        and span.length(now).total_seconds() > FAR_OFF * span.usual_s
    ]
    if unusual:
        worst = max(unusual, key=lambda span: span.length(now).total_seconds() / (span.usual_s or 1))
        if worst is not last or last.end is not None:
            parts.append(_against("it was in", worst, now))
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _against(begin: str, span: Span, now: datetime) -> str:
    said = f"{begin} {span.text} {'for ' if begin == 'in' else ''}{words.duration(span.length(now).total_seconds())}"
    return f"{said}; usual {words.duration(span.usual_s)}" if span.usual_s is not None else said


@dataclass(frozen=True, slots=True)
class View:
    """The part of time that is shown, and the whole of it that there is something to show of."""

    since: datetime
    until: datetime
    first: datetime
    last: datetime
    fault: str = ""

    @property
    def length(self) -> timedelta:
        return self.until - self.since

    @property
    def is_whole(self) -> bool:
        return self.since <= self.first and self.until >= self.last

    def zoomed(self, factor: float) -> tuple[datetime, datetime]:
        """The view around the same middle, `factor` times as long; between ten seconds and twice the whole."""
        most = max((self.last - self.first) * 2, SHORTEST)
        length = min(max(self.length * factor, SHORTEST), most)
        middle = self.since + self.length / 2
        return middle - length / 2, middle + length / 2

    def moved(self, part: float) -> tuple[datetime, datetime]:
        return self.since + self.length * part, self.until + self.length * part


SHORTEST: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane of the drawing: spans in rows that do not overlap, or moments."""

    name: str
    rows: list[list[Span]] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    note: str = ""
    is_slim: bool = False


def packed(spans: Iterable[Span], now: datetime) -> list[list[Span]]:
    """Spans in as few rows as they need so that none lies on another."""
    rows: list[list[Span]] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end or now)):
        row = next((row for row in rows if (row[-1].end or now) <= span.start), None)
        if row is None:
            rows.append([span])
        else:
            row.append(span)
    return rows
