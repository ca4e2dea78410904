"""The report of a shift as plain text, for a mail, a chat or the draft of a hand-over. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tasks_app.shifts.rules.sections import Line, Section, headline, sections
from tasks_app.shifts.rules.shift_facts import ShiftFacts

TIME: Final = "%Y-%m-%d %H:%M"


@dataclass(frozen=True, slots=True)
class Remark:
    """A note of a shifter."""

    by: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A hand-over; `acknowledged_by` is "" while nobody has acknowledged it."""

    by: str
    at: datetime
    acknowledged_by: str
    acknowledged_at: datetime | None


def report(facts: ShiftFacts, notes: Sequence[Remark], handovers: Iterable[HandedOver] = ()) -> str:
    """The window in lines: a headline, each section that holds something, the notes and the hand-overs."""
    out = [
        f"Shift from {facts.since:{TIME}} to {facts.until:{TIME}} UTC, as of {facts.now:%H:%M:%S} UTC",
        headline(facts),
    ]
    for section in sections(facts):
        out += ["", section.title.upper(), *_lines(section)]
    if notes:
        out += ["", "NOTES"]
        out += [f"* {note.at:{TIME}} {note.by}: {_indented(note.text)}" for note in notes]
    handed = [_handed(one) for one in handovers]
    if handed:
        out += ["", "HAND-OVERS", *handed]
    return "\n".join(out) + "\n"


def _lines(section: Section) -> list[str]:
    if not section.lines:
        return [section.empty]
    more = [f"* and {section.more} more"] if section.more > 0 else []
    return [_line(line) for line in section.lines] + more


def _line(line: Line) -> str:
    at = f"{line.at:{TIME}} " if line.at else ""
    links = f" (tasks {', '.join(label for label, _ in line.links)})" if line.links else ""
    note = f" [{line.note}]" if line.note else ""
    return f"* {at}{line.text}{links}{note}"


def _handed(one: HandedOver) -> str:
    ends = "not acknowledged yet"
    if one.acknowledged_at is not None:
        ends = f"acknowledged by {one.acknowledged_by} at {one.acknowledged_at:{TIME}}"
    return f"* {one.at:{TIME}} {one.by} handed over; {ends}"


def _indented(text: str) -> str:
    """Further lines of a note stand below its first, so that none passes for another note."""
    return text.replace("\n", "\n    ")
