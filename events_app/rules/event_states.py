"""The states of event ranges, and what moves them: one table, from which the conditions of statements are made.

Names and numbers are those of JEDI_Events.STATUS. A range is owned (PANDAID) by its jobset while it is ready, and by the
consumer that has it from then on. ATTEMPTNR counts down: it is the number of attempts that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Final

from tasks_app.domain.states import IllegalMoveError


class EventStatus(IntEnum):
    READY = 0
    SENT = 1
    RUNNING = 2
    """Its pilot says that it has begun with it. Pilots need not say so."""
    FINISHED = 3
    """Processed; the job that has it is still at work, or is a jumbo job."""
    CANCELLED = 4
    DISCARDED = 5
    DONE = 6
    """Processed, its job has ended, and its output waits to be merged."""
    FAILED = 7
    """Kept as history: what is tried again is a copy."""
    FATAL = 8
    MERGED = 9
    CORRUPTED = 10
    """It was done, and the file that holds its output cannot be read."""

    @property
    def word(self) -> str:
        """The name of the state, as people and pilots write it."""
        return self.name.lower()


S = EventStatus


class EventAct(Enum):
    """What can be done with ranges, with a sentence on it."""

    HAND_OUT = "a consumer gets it"
    TAKE_BACK = "it goes back as it was: nobody began with it"
    BEGIN = "the pilot says that it has begun with it"
    FINISH = "the pilot says that it is processed"
    FAIL = "the pilot says that it failed"
    RELEASE = "its consumer ended without it"
    RETRY = "it failed, and a copy of it is tried again"
    COMPLETE = "it is processed, and its consumer has ended"
    GIVE_UP = "no attempt is left, and the task takes a partial result"
    MERGE = "its output is merged"
    CORRUPT = "its output cannot be read"
    DISCARD = "its output is not wanted any more, or its file is tried again"
    CANCEL = "its jobset ended before it was processed"
    LOSE = "its output was lost"


@dataclass(frozen=True, slots=True)
class EventMove:
    """An act as a move: ranges in one of the states `before` get the state `after`.

    `copies`: the range stays as it is, and `after` is the state of a copy.
    """

    before: frozenset[EventStatus]
    after: EventStatus
    copies: bool = False


HANDED_OUT: Final = frozenset({S.SENT, S.RUNNING})
"""A consumer has it."""
PROCESSED: Final = frozenset({S.FINISHED, S.DONE, S.MERGED})
"""Counted as events of a job (NEVENTS)."""
AT_WORK: Final = HANDED_OUT | {S.READY, S.FINISHED}
"""Something is still to happen with it before it can be merged."""
LIVE: Final = AT_WORK | PROCESSED
"""Of each position in a file there is at most one range in these states."""

EVENT_ACTS: Final[Mapping[EventAct, EventMove]] = MappingProxyType(
    {
        EventAct.HAND_OUT: EventMove(frozenset({S.READY}), S.SENT),
        EventAct.TAKE_BACK: EventMove(HANDED_OUT, S.READY),
        EventAct.BEGIN: EventMove(frozenset({S.SENT, S.READY}), S.RUNNING),
        EventAct.FINISH: EventMove(HANDED_OUT | {S.READY}, S.FINISHED),
        EventAct.FAIL: EventMove(HANDED_OUT | {S.READY}, S.FAILED),
        EventAct.RELEASE: EventMove(HANDED_OUT, S.READY),
        EventAct.RETRY: EventMove(frozenset({S.FAILED}), S.READY, copies=True),
        EventAct.COMPLETE: EventMove(frozenset({S.FINISHED}), S.DONE),
        EventAct.GIVE_UP: EventMove(frozenset({S.READY}), S.FATAL),
        EventAct.MERGE: EventMove(frozenset({S.DONE}), S.MERGED),
        EventAct.CORRUPT: EventMove(frozenset({S.DONE}), S.CORRUPTED),
        EventAct.DISCARD: EventMove(frozenset({S.FINISHED, S.DONE, S.FATAL}), S.DISCARDED),
        EventAct.CANCEL: EventMove(HANDED_OUT | {S.READY}, S.CANCELLED),
        EventAct.LOSE: EventMove(PROCESSED, S.CANCELLED),
    }
)
"""From ready, BEGIN, FINISH and FAIL are for fine-grained jobs only, whose pilots report ranges that they were not handed."""


def _moves() -> dict[EventStatus, frozenset[EventStatus]]:
    moves = [move for move in EVENT_ACTS.values() if not move.copies]
    return {old: frozenset(move.after for move in moves if old in move.before) for old in EventStatus}


EVENT_MOVES: Final[Mapping[EventStatus, frozenset[EventStatus]]] = MappingProxyType(_moves())
"""What each state may become."""
EVENT_FINAL: Final = frozenset(status for status, nexts in EVENT_MOVES.items() if not nexts)


def before(act: EventAct, among: Iterable[EventStatus] = tuple(EventStatus)) -> frozenset[EventStatus]:
    """The states out of `among` in which ranges are for this act: what the WHERE of its statement says."""
    return EVENT_ACTS[act].before & frozenset(among)


def check_event_move(old: int, new: int) -> None:
    """Raise IllegalMoveError unless a range in state `old` may become `new`."""
    if EventStatus(new) not in EVENT_MOVES[EventStatus(old)]:
        raise IllegalMoveError(f"a range cannot go from {EventStatus(old).word} to {EventStatus(new).word}")


def is_ready(status: int, attempts_left: int) -> bool:
    """Whether a range may be handed out."""
    return status == S.READY and attempts_left > 0


def is_said_before(status: int, said: int) -> bool:
    """Whether a range in this state is what a report `said` of it: a report that is sent again is no mistake."""
    return status == said or said == S.RUNNING or (said == S.FINISHED and status in PROCESSED)


def is_hopeless(status: int, attempts_left: int) -> bool:
    """Whether a range has no attempt left, and was neither cancelled nor discarded: it will never be processed."""
    return attempts_left <= 0 and status not in (S.CANCELLED, S.DISCARDED)


def attempts_after_release(attempts_left: int, *, only_failed_count: bool, was_begun: bool = True) -> int:
    """Attempts of a range that its consumer leaves unprocessed: one less, unless only failures count (decAttOnFailedES).

    `was_begun`: False of a range with which the consumer has not begun, as far as it has said of any that it has.
    """
    return attempts_left if only_failed_count or not was_begun else max(0, attempts_left - 1)


def attempts_of_retry(attempts_left: int) -> int:
    """Attempts of the copy of a range that failed: one less, whatever the task says of released ones."""
    return max(0, attempts_left - 1)


class Owner(Enum):
    """Whose ranges an act is for."""

    JOB = "ranges that the job has"
    JOBSET = "ranges of its jobset that no job has"
    JUMBO = "ranges of its files that a jumbo job has or had"
    FILES = "all ranges of its files"


@dataclass(frozen=True, slots=True)
class Sweep:
    """Ranges that an act moves all at once: those of `owner` in one of `states`.

    `among` are the states of which the act takes those that it is for. `spares_jumbo` leaves ranges alone that a jumbo
    job has. `only_hopeless`: those without attempts only.
    """

    act: EventAct
    owner: Owner
    among: frozenset[EventStatus] = frozenset(EventStatus)
    spares_jumbo: bool = False
    only_hopeless: bool = False

    @property
    def states(self) -> frozenset[EventStatus]:
        """The states in which it takes ranges: for the WHERE of its statement."""
        return before(self.act, self.among)
