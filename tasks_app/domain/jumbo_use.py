"""USEJUMBO of a task: how far it is with jumbo jobs, which take ranges of events of the whole task. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class UseJumbo(StrEnum):
    """Values of the column; a task without any has no jumbo jobs."""

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
        U.RUNNING: "jumbo jobs were made",
        U.PENDING: "only queues for jumbo jobs take work of this task",
        U.LACK: "a jumbo job is to be replaced",
        U.DISABLED: "switched off",
    }
)
ENABLED: Final = frozenset(UseJumbo) - {U.DISABLED}
"""The task may get jumbo jobs."""
WAITING_QUEUE: Final = "WAITING_CO_JUMBO"
"""Named in place of a queue by consumers that wait until jumbo jobs have done their ranges, or a queue has room for them."""


def read_use(value: str | None) -> UseJumbo | None:
    """The state that a column holds. `Y`, an older word for it, is waiting; None is a task without jumbo jobs."""
    if not value:
        return None
    return U.WAITING if value == "Y" else UseJumbo(value)


def use_of(wanted: int | None, before: str | None = None) -> str | None:
    """What the column holds for a task that wants so many jumbo jobs (nJumboJobs), and held `before` that was changed."""
    use = read_use(before)
    if wanted:
        return use.value if use in ENABLED else U.WAITING.value
    return None if use is None else U.DISABLED.value


def consumers_wait(use: UseJumbo | None, *, scouting: bool, places: int, jumbo_queues: int) -> bool:
    """Whether consumers are made that wait until jumbo jobs have done their ranges, or a queue has room for them.

    `places`: queues that take consumers now; `jumbo_queues`: those that take jumbo jobs.
    """
    return use in ENABLED and not scouting and places == 0 and jumbo_queues > 0
