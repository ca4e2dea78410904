"""What rules return, and how findings are ranked. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

LONGEST_SENTENCE: Final = 500
MOST_OF_A_KIND: Final = 10
"""So many findings of a kind are told one by one; beyond it the largest ones, and the rest in one sentence."""
SHOWN_OF_MANY: Final = 5


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding. `base` orders kinds, `who` says who can do something about it."""

    title: str
    base: int
    tone: str
    who: str


_kinds: Final = {
    "late_agent": Kind("Agents that are late or fail", 90, "bad", "expert"),
    "paused_agent": Kind("Agents that are paused", 78, "warn", "shifter"),
    "trouble": Kind("Tasks on which an agent fails", 88, "bad", "expert"),
    "backlog": Kind("Backlogs of the server", 85, "bad", "expert"),
    "all_closed": Kind("No queue takes jobs", 86, "bad", "shifter"),
    "nothing_runs": Kind("Nothing runs although jobs are queued or tasks wait for jobs", 84, "bad", "shifter"),
    "no_calls": Kind("No pilot asks for jobs", 83, "bad", "shifter"),
    "failures": Kind("Failure spikes", 75, "bad", "shifter"),
    "black_hole": Kind("Worker nodes that fail nearly all jobs", 72, "bad", "site"),
    "no_pilots": Kind("Sites with work but no pilots", 65, "bad", "site"),
    "away_storage": Kind("Storage whose folder is away", 70, "bad", "site"),
    "full_storage": Kind("Full storage", 60, "bad", "site"),
    "offline": Kind("Sites newly closed, or closed with queued jobs", 55, "warn", "site"),
    "stuck_task": Kind("Stuck tasks", 50, "bad", "shifter"),
    "data": Kind("Input data that does not arrive", 45, "warn", "shifter"),
    "asks": Kind("Tasks that need a person", 40, "warn", "owner"),
    "share": Kind("Shares far from their target", 35, "warn", "expert"),
}
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(_kinds)


def add_kind(name: str, kind: Kind) -> None:
    """Make a kind known that another app finds; the same once more changes nothing. Raises ValueError when the name is taken."""
    if _kinds.setdefault(name, kind) != kind:
        raise ValueError(f"the kind {name!r} is {_kinds[name].title!r} already")


@dataclass(frozen=True, slots=True)
class Found:
    """Something that needs somebody.

    key       the subject within the kind: the same cause, the same key
    sentence  what is wrong, with the numbers
    path      the page that says more
    owner     whose it is
    size      how much is concerned, in `unit`
    since     when it began; None: when it was found first
    """

    kind: str
    key: str
    sentence: str
    path: str
    owner: str = ""
    size: int = 0
    unit: str = ""
    since: datetime | None = None

    @property
    def tone(self) -> str:
        return KINDS[self.kind].tone

    @property
    def rank(self) -> float:
        """The kind counts most, then the size: ten times as much is ten points."""
        return round(KINDS[self.kind].base + min(30.0, 10 * math.log10(1 + max(self.size, 0))), 2)


def few(found: Sequence[Found], rest: str, path: str) -> Iterator[Found]:
    """Findings of one kind: all of them when they are few, else the first ones and one that stands for the rest.

    `rest` follows the number of the others in a sentence; `path` lists them all.
    """
    if len(found) <= MOST_OF_A_KIND:
        yield from found
        return
    yield from found[:SHOWN_OF_MANY]
    others = found[SHOWN_OF_MANY:]
    since = min((one.since for one in others if one.since), default=None)
    kind = others[0].kind
    number = len(others)
    yield Found(kind, f"others:{rest}"[:150], f"{number} more {rest}.", path, size=number, unit="more", since=since)


def sentence(*parts: str) -> str:
    """Parts that are not empty, as one sentence of bounded length."""
    text = "; ".join(part.strip().rstrip(".") for part in parts if part and part.strip())
    if len(text) >= LONGEST_SENTENCE:
        text = text[: LONGEST_SENTENCE - 2].rstrip() + "…"
    return f"{text}."


def address(*parts: str | int) -> str:
    """The path of a page: address("sites", "A B/1") is /sites/A%20B/1/."""
    return "/" + "".join(f"{quote(str(part))}/" for part in parts)


def hours(seconds: float) -> str:
    """A length of time in its largest unit."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def waits(number: int, one: str) -> str:
    """A number of things that wait: "1 job waits", "12 jobs wait"."""
    return f"{number} {one} waits" if number == 1 else f"{number} {one}s wait"


def in_a_row(times: int) -> str:
    """How often something failed without a break: "once", "3 times in a row"."""
    return "once" if times == 1 else f"{times} times in a row"


def largest(found: Iterable[Found]) -> list[Found]:
    return sorted(found, key=lambda one: (-one.size, one.key))
