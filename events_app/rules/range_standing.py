"""How ranges stand, as people see it: the states in words, and one more for ranges that wait and have no attempt left.

What is kept as history (a failed range whose copy is tried again, what was cancelled or discarded) is of no position's progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from events_app.rules.event_states import EVENT_ACTS, HANDED_OUT, PROCESSED, EventAct, EventStatus
from tasks_app.domain import words
from tasks_app.drawing.scales import Scale

NO_ATTEMPT: Final = "no attempt left"
"""The state of ranges that wait and will never be handed out."""
S = EventStatus


def word_of(status: int, attempts: int | None) -> str:
    """The state of a range in a word, by its number and the attempts that are left."""
    if status == S.READY and (attempts or 0) <= 0:
        return NO_ATTEMPT
    return EventStatus(status).word


WORDS: Final = (*(status.word for status in EventStatus), NO_ATTEMPT)
"""All that `word_of` says."""


class Standing(Enum):
    """How far a position of a file is; the values order a strip from left to right."""

    MERGED = "merged"
    DONE = "done"
    FINISHED = "finished"
    SENT = "sent"
    READY = "ready"
    FAILED = "failed"
    HOPELESS = NO_ATTEMPT
    PAST = "past"
    CANCELLED = "cancelled"

    @property
    def look(self) -> str:
        """The class of its pieces in drawings."""
        return LOOKS[self].look

    @property
    def title(self) -> str:
        return LOOKS[self].title

    @property
    def filters(self) -> dict[str, str]:
        """The filters of the list of ranges for what stands so."""
        look = LOOKS[self]
        waits = {} if look.awaits_retry is None else {"awaits_retry": str(look.awaits_retry).lower()}
        return {"status": ",".join(look.states), **waits}


@dataclass(frozen=True, slots=True)
class Look:
    """`look` is the class of its pieces in drawings; `awaits_retry` tells failed ranges from those whose copy is there."""

    title: str
    look: str
    states: tuple[str, ...]
    awaits_retry: bool | None = None


LOOKS: Final[Mapping[Standing, Look]] = MappingProxyType(
    {
        Standing.MERGED: Look("merged", "ok", ("merged",)),
        Standing.DONE: Look("waiting for merge", "done", ("done",)),
        Standing.FINISHED: Look("finished", "finished", ("finished",)),
        Standing.SENT: Look("at consumers", "run", ("sent", "running")),
        Standing.READY: Look("ready", "wait", ("ready",)),
        Standing.FAILED: Look("waiting for retry", "warn", ("failed",), awaits_retry=True),
        Standing.HOPELESS: Look("without attempts", "bad", (NO_ATTEMPT, "fatal")),
        Standing.PAST: Look("in earlier attempts", "off", ("failed", "discarded", "corrupted"), awaits_retry=False),
        Standing.CANCELLED: Look("cancelled", "off", ("cancelled",)),
    }
)
HISTORY: Final = frozenset({Standing.PAST, Standing.CANCELLED})
"""Ranges that do not count any more: attempts that were made, and those that were never to be made."""
LIVE: Final = tuple(standing for standing in Standing if standing not in HISTORY)
"""Those that a strip shows: of each position of a file at most one range stands so."""
_BY_STATE: Final[Mapping[EventStatus, Standing]] = {
    S.MERGED: Standing.MERGED,
    S.DONE: Standing.DONE,
    S.FINISHED: Standing.FINISHED,
    **dict.fromkeys(HANDED_OUT, Standing.SENT),
    S.FATAL: Standing.HOPELESS,
    S.CANCELLED: Standing.CANCELLED,
}


def standing_of(status: int, attempts: int | None, *, handled: bool = False) -> Standing:
    """How a range stands. `handled`: it failed, and a copy of it is tried again."""
    state = EventStatus(status)
    if state is S.READY:
        return Standing.READY if (attempts or 0) > 0 else Standing.HOPELESS
    if state in EVENT_ACTS[EventAct.RETRY].before:
        return Standing.PAST if handled else Standing.FAILED
    return _BY_STATE.get(state, Standing.PAST)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a strip in percent of its width. `count` ranges stand alike; `y` and `height` in percent of its height."""

    look: str
    start: float
    width: float
    y: float = 0.0
    height: float = 100.0


@dataclass(frozen=True, slots=True)
class Counts:
    """Ranges by how they stand."""

    of: Mapping[Standing, int]

    @property
    def total(self) -> int:
        """Ranges without those that are history."""
        return sum(self.of.get(one, 0) for one in LIVE)

    @property
    def processed(self) -> int:
        return sum(self.of.get(one, 0) for one in (Standing.MERGED, Standing.DONE, Standing.FINISHED))

    @property
    def percent(self) -> int:
        """Processed ranges in percent, rounded down, so that 100 means all."""
        return self.processed * 100 // self.total if self.total else 0

    @property
    def listed(self) -> list[tuple[Standing, int]]:
        """Those that there are, history last."""
        return [(one, self.of[one]) for one in Standing if self.of.get(one)]

    @property
    def label(self) -> str:
        """The numbers as a sentence."""
        if not self.total:
            return "No ranges yet"
        parts = [f"{words.count(count)} {one.title}" for one, count in self.listed if one not in HISTORY]
        return f"Of {words.plural(self.total, 'range')}: {', '.join(parts)}"

    def pieces(self) -> list[Piece]:
        """The strip of progress: how many stand how, side by side."""
        x = Scale(0, self.total, 0, 100)
        found, before = [], 0
        for one, count in self.listed:
            if one not in HISTORY:
                start = x(before)
                found.append(Piece(one.look, start, round(x(before + count) - start, 2)))
                before += count
        return found


def counts(numbers: Iterable[tuple[Standing, int]]) -> Counts:
    """Sums by how ranges stand."""
    found: dict[Standing, int] = {}
    for one, number in numbers:
        found[one] = found.get(one, 0) + number
    return Counts(found)


def map_of(cells: Mapping[int, Counts], bins: int) -> list[Piece]:
    """A file as a row of a heat map: its positions from left to right in `bins` equal parts, of each how its ranges stand.

    What is processed lies at the bottom. Ranges count where they begin: a part in which none begins is as the one before it,
    whose last range goes on there.
    """
    x, found = Scale(0, bins, 0, 100), list[Piece]()
    places = sorted(place for place, cell in cells.items() if cell.total)
    for place, beyond in pairwise([*places, bins]):
        cell = cells[place]
        y, before = Scale(0, cell.total, 100, 0), 0
        for one, count in cell.listed:
            if one not in HISTORY:
                top = y(before + count)
                found.append(Piece(one.look, x(place), round(x(beyond) - x(place), 2), top, round(y(before) - top, 2)))
                before += count
    return found


def per_hour(processed: int, seconds: float) -> float | None:
    """Ranges an hour; None of what has not lasted a minute."""
    return None if seconds < 60 else processed * 3600 / seconds


PROCESSED_STATES: Final = tuple(sorted(int(status) for status in PROCESSED))
"""Numbers of the states of ranges whose output there is."""
