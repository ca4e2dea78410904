"""When a queue runs out of jobs, and when it has enough again. Pure.

Formulas of the JEDI brokerage document (queue filler). An empty queue gets a few large tasks of its own, which go nowhere
else until it is busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from brokerage_app.formulas.queue_room import QUEUED_TO_RUNNING
from brokerage_app.policy.configuration import Configuration

FLOOR: Final = 20
EMPTY_PART: Final = 0.25
"""Part of the jobs that may be queued below which a queue is empty."""
BUSY_PART: Final = 0.375
"""The same above which it is busy."""
EMPTY_FOR: Final = timedelta(seconds=1800)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Jobs of one queue. `queued` is activated + starting; `slots` in cores, None when the queue is not told any;
    `cores` of one slot."""

    queue: str
    running: int = 0
    queued: int = 0
    slots: int | None = None
    cores: int = 1

    @property
    def jobs_in_slots(self) -> int:
        return (self.slots or 0) // max(self.cores, 1)


def jobs_lacking(seen: Occupancy) -> float:
    """max(20, 2 x max(running, slots / cores)) x 0.25 - queued: above 0 the queue is empty."""
    return max(FLOOR, QUEUED_TO_RUNNING * max(seen.running, seen.jobs_in_slots)) * EMPTY_PART - seen.queued


def is_empty(seen: Occupancy) -> bool:
    return jobs_lacking(seen) > 0


def is_busy(seen: Occupancy) -> bool:
    """queued > max(max(20, 2 x running) x 0.375, slots / cores): a queue between the two is neither empty nor busy."""
    return seen.queued > max(max(FLOOR, QUEUED_TO_RUNNING * seen.running) * BUSY_PART, seen.jobs_in_slots)


def may_be_filled(seen: Occupancy, empty_since: datetime | None, now: datetime, wait: timedelta = EMPTY_FOR) -> bool:
    """Whether a queue is to get tasks: it has been empty for long enough, or is empty and told how many slots it has."""
    if not is_empty(seen):
        return False
    return seen.jobs_in_slots > 0 or (empty_since is not None and now - empty_since >= wait)


@dataclass(frozen=True, slots=True)
class FillLimits:
    """MAX_PREASSIGNED_TASKS, MIN_FILES_READY (and that of full chains) and MIN_FILES_REMAINING."""

    most_tasks: int = 3
    files_ready: int = 50
    files_ready_full_chain: int = 10
    files_remaining: int = 100

    @classmethod
    def from_configuration(cls, configuration: Configuration, label: str, vo: str = "") -> FillLimits:
        def get(key: str, *more: str) -> int:
            return int(configuration.get("queue_filler", key, label, *more, vo=vo))

        return cls(
            get("MAX_PREASSIGNED_TASKS"),
            get("MIN_FILES_READY"),
            get("MIN_FILES_READY", "FC"),
            get("MIN_FILES_REMAINING"),
        )


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task that may be sent to an empty queue. `files_ready`: no job has them; `files_remaining`: not done yet."""

    task_id: int
    resource_type: str
    files_ready: int
    files_remaining: int
    full_chain: bool = False


def is_large_enough(task: WaitingTask, limits: FillLimits) -> bool:
    least = limits.files_ready_full_chain if task.full_chain else limits.files_ready
    return task.files_ready >= least and task.files_remaining >= limits.files_remaining


def choose(tasks: Iterable[tuple[WaitingTask, FillLimits]], already: Mapping[str, int]) -> list[WaitingTask]:
    """The first of fitting tasks, as many of each resource type as may be at one queue; `already` are there, by type."""
    counts, found = dict(already), []
    for task, limits in tasks:
        if is_large_enough(task, limits) and counts.get(task.resource_type, 0) < limits.most_tasks:
            counts[task.resource_type] = counts.get(task.resource_type, 0) + 1
            found.append(task)
    return found
