"""Which ranges of events a job has, and how far each of them is. Pure: the time, in seconds, is passed in."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tasks_app.worker_node.pilot.job import Input
from tasks_app.worker_node.pilot.range_words import Failed, Finished

AHEAD_S: Final = 5.0
"""For how long a payload is to have work when the server does not answer. What waits here is lost with the pilot."""
BEGUN_AFTER_S: Final = 60.0
"""A range that the payload has had for so long is told to have begun: quick ones are spared the call."""
MOST: Final = 1000
"""Ranges that are fetched at once."""
MOST_IN_A_ZIP: Final = 500
MOST_TROUBLES: Final = 20
"""Times that outputs could not be stored, after which the payload is stopped. A success in between changes nothing."""


@dataclass(frozen=True, slots=True)
class Range:
    """`said`: what the server says of it, which the payload is told. `file` is brought before, where it is no input."""

    id: str
    events: int
    said: Mapping[str, object]
    file: Input | None = None


class RangeBook:
    """A job's ranges: here and not handed to the payload, with the payload, finished, failed.

    Outputs are packed together after `zip_every_s`, or when there are many.
    """

    def __init__(self, cores: int, zip_every_s: float, now: float) -> None:
        self._cores, self._zip_every_s, self._began = cores, zip_every_s, now
        self._waiting: deque[Range] = deque()
        self._at_work: dict[str, Range] = {}
        self._begun: dict[str, float] = {}
        """Since when the payload has a range of which the server does not know that."""
        self._outputs: deque[Finished] = deque()
        self._events: dict[str, int] = {}
        self._failed: list[Failed] = []
        self._handed = 0
        self._oldest: float | None = None
        self._not_before = now
        self._exhausted = False
        self._stopping = False
        self.troubles = 0
        self.events_done = 0
        """Events of the ranges that the server knows as finished."""

    def wanted(self, now: float) -> int:
        """How many ranges to ask the server for; 0 when there are enough, or when there will be no more."""
        if self._exhausted or self._stopping:
            return 0
        used = math.ceil(self._handed * AHEAD_S / max(AHEAD_S, now - self._began))
        ahead = min(MOST, max(2 * self._cores, used))
        return ahead - len(self._waiting) if len(self._waiting) <= ahead // 2 else 0

    def take_in(self, ranges: Sequence[Range], *, more: bool = False) -> None:
        """What the server gave: nothing means that it has no more, unless `more`: of what it gave no file could be had."""
        self._waiting.extend(ranges)
        self._exhausted = self._exhausted or not (ranges or more)

    @property
    def at_hand(self) -> set[str]:
        """The names of the files of ranges that are here or with the payload."""
        return {str(one.said.get("LFN") or "") for one in (*self._waiting, *self._at_work.values())}

    def stop(self) -> None:
        """Begin no more ranges."""
        self._stopping = True
        self._waiting.clear()

    def hand_out(self, now: float) -> Range | None:
        """A range for the payload; None when there is none now."""
        if not self._waiting:
            return None
        one = self._waiting.popleft()
        self._at_work[one.id] = one
        self._begun[one.id] = now
        self._handed += 1
        return one

    @property
    def over(self) -> bool:
        """Whether the payload gets no more ranges."""
        return (self._exhausted or self._stopping) and not self._waiting

    def finished(self, report: Finished, now: float) -> bool:
        """Whether the payload had the range, and so its output counts."""
        one = self._at_work.pop(report.range_id, None)
        if one is None:
            return False
        self._begun.pop(one.id, None)
        self._events[one.id] = one.events
        self._outputs.append(report)
        self._oldest = now if self._oldest is None else self._oldest
        return True

    def failed(self, report: Failed) -> bool:
        """Whether the payload had the range."""
        if self._at_work.pop(report.range_id, None) is None:
            return False
        self._begun.pop(report.range_id, None)
        self._failed.append(report)
        return True

    def begun_in(self, now: float) -> float | None:
        """Seconds until a range is to be told to have begun; None when there is none."""
        # In the order in which they were handed out.
        oldest = next(iter(self._begun.values()), None)
        return None if oldest is None else max(0.0, oldest + BEGUN_AFTER_S - now)

    def begun(self, now: float) -> list[str]:
        """Ranges that are to be told to have begun. They are not given again."""
        told = [one for one, since in self._begun.items() if since + BEGUN_AFTER_S <= now]
        for one in told:
            del self._begun[one]
        return told

    @property
    def has_failures(self) -> bool:
        return bool(self._failed)

    def failures(self) -> list[Failed]:
        """What is to be told at once. It is not given again."""
        told, self._failed = self._failed, []
        return told

    def packs_in(self, now: float) -> float | None:
        """Seconds until outputs are to be packed, 0 when they are; None when there are none."""
        if self._oldest is None:
            return None
        due = self._not_before if len(self._outputs) >= MOST_IN_A_ZIP else self._oldest + self._zip_every_s
        return max(0.0, due - now)

    def outputs(self) -> list[Finished]:
        """Those for the next zip file, the oldest first; give them back when it cannot be stored."""
        batch = [self._outputs.popleft() for _ in range(min(len(self._outputs), MOST_IN_A_ZIP))]
        self._oldest = self._oldest if self._outputs else None
        return batch

    def give_back(self, batch: Sequence[Finished], now: float) -> None:
        """They could not be stored, and are tried again with the next ones."""
        self.troubles += 1
        self._outputs.extendleft(reversed(batch))
        self._oldest, self._not_before = now, now + self._zip_every_s

    def lose(self, failures: Sequence[Failed]) -> None:
        """Finished ranges that count as failed after all."""
        self._failed.extend(failures)

    def told(self, range_ids: Sequence[str]) -> None:
        """The server has these as finished."""
        self.events_done += sum(self._events.pop(one, 0) for one in range_ids)
