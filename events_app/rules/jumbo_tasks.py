"""Jumbo jobs of a task: the states of useJumbo, how many jobs it may have, and where. Pure.

A jumbo job takes ranges of any jobset of its task. USEJUMBO of a task says how far it is with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Final

MOST_TASKS: Final = 50
"""Tasks of one work queue whose jumbo jobs are under way: above that no further task of it gets its first."""


class UseJumbo(StrEnum):
    """Values of USEJUMBO; a task without any has no jumbo jobs."""

    WAITING = "W"
    RUNNING = "R"
    PENDING = "P"
    LACK = "L"
    DISABLED = "D"

    @property
    def words(self) -> str:
        """What people read."""
        return _WORDS[self]


U = UseJumbo
_WORDS: Final[Mapping[UseJumbo, str]] = MappingProxyType(
    {
        U.WAITING: "no jumbo job yet",
        U.RUNNING: "jumbo jobs are open",
        U.PENDING: "only queues for jumbo jobs take work of this task",
        U.LACK: "a jumbo job is to be replaced",
        U.DISABLED: "switched off",
    }
)
ENABLED: Final = frozenset(UseJumbo) - {U.DISABLED}
"""The task may get jumbo jobs."""


class JumboEvent(Enum):
    """What changes USEJUMBO, with a sentence on it."""

    ENABLE = "jumbo jobs are switched on"
    SUBMIT = "jumbo jobs were made"
    NO_PLACE = "only queues for jumbo jobs take work of this task"
    END = "a jumbo job ended"
    NONE_LEFT = "no jumbo job is open"
    DISABLE = "jumbo jobs are switched off"


def read_use(value: str | None) -> UseJumbo | None:
    """The state that a column holds. `Y`, an older word for it, is waiting; None is a task without jumbo jobs."""
    if not value:
        return None
    return U.WAITING if value == "Y" else UseJumbo(value)


def after(use: UseJumbo | None, event: JumboEvent, *, left: int = 0) -> UseJumbo | None:
    """The state after an event. `left`: files of the master that are in no job yet.

    Only switching on leads out of None and of switched off.
    """
    if event is JumboEvent.ENABLE:
        return U.WAITING
    if event is JumboEvent.DISABLE:
        return U.DISABLED
    if use is None or use is U.DISABLED:
        return use
    if event is JumboEvent.SUBMIT:
        return U.PENDING if use is U.PENDING and left else U.RUNNING
    if event is JumboEvent.NO_PLACE:
        return use if use is U.LACK or (use is U.RUNNING and not left) else U.PENDING
    if event is JumboEvent.NONE_LEFT:
        return U.LACK if use in (U.PENDING, U.RUNNING) else use
    return U.LACK


def new_jobs(wanted: int, active: int) -> int:
    """How many jumbo jobs are to be made. `wanted` is nJumboJobs; `active` are open, and not only storing their outputs."""
    return max(0, wanted - active)


def may_begin(use: UseJumbo, tasks_under_way: int) -> bool:
    """Whether a task may get jumbo jobs now. `tasks_under_way`: tasks of its work queue that have some."""
    return use in ENABLED and (use is not U.WAITING or tasks_under_way < MOST_TASKS)


def places_of(queues: Sequence[str], active: Mapping[str, int], *, number: int, per_queue: int) -> list[str]:
    """Where new jumbo jobs go: one to each of `queues`, which are ordered, before any gets a second (maxJumboPerSite).

    `active`: those that are open, by queue.
    """
    counts = {queue: active.get(queue, 0) for queue in queues}
    found: list[str] = []
    while len(found) < number and counts:
        queue = min(counts, key=counts.__getitem__)
        if counts[queue] >= per_queue:
            break
        counts[queue] += 1
        found.append(queue)
    return found


def consumers_wait(use: UseJumbo | None, *, scouting: bool, places: int, jumbo_queues: int) -> bool:
    """Whether consumers are made that wait until jumbo jobs have done their ranges, or a queue has room for them.

    `places`: queues that take consumers now; `jumbo_queues`: those that take jumbo jobs.
    """
    return use in ENABLED and not scouting and places == 0 and jumbo_queues > 0


def is_decided(ready: int, at_work: int) -> bool:
    """Whether a consumer that has not begun need not begin: all ranges of its files are decided.

    `ready`: those with attempts left; `at_work`: those that an open job has. Jobs that have ended hold none.
    """
    return not ready and not at_work


def is_not_needed(use: UseJumbo | None, *, task_is_final: bool, files: int, files_ended: int) -> bool:
    """Whether jumbo jobs that have not begun are to be ended."""
    return use is U.DISABLED or task_is_final or files_ended >= files
