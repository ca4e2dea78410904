"""What it takes to start pilots somewhere, and how many to start when. No Django, no database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 60.0
STEADY_S = 30.0


class WorkerState(StrEnum):
    """A worker is one pilot as its batch system sees it."""

    SUBMITTED = "submitted"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({WorkerState.FINISHED, WorkerState.FAILED, WorkerState.CANCELLED})


@dataclass(frozen=True, slots=True)
class PilotSpec:
    """What pilots are told. `label` empty: any kind of job; `memory_mb` 0: the memory of a slot is unsaid.

    The last four are about the walls round payloads, see `tasks_app/pilot/walls.py`.
    """

    queue: str
    server: str
    label: str = ""
    heartbeat_s: float = 30.0
    memory_mb: int = 0
    keep: bool = False
    isolation: str = "auto"
    network: bool = False
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Worker:
    """`id` is unique for good; `batch_id` is the batch system's name for it. `ran_s`: seconds since the start."""

    id: int
    batch_id: str
    state: WorkerState
    ran_s: float = 0.0
    detail: str = ""


class PilotSubmitter(Protocol):
    """A batch system. Calls return soon; what became of a pilot is learnt from `poll`."""

    def submit(self, spec: PilotSpec, count: int) -> Sequence[Worker]:
        """Start pilots; returns those that were accepted, fewer than `count` when the system is full."""
        ...

    def poll(self) -> Sequence[Worker]:
        """All workers that have not been reported as ended before; an ended one is told once."""
        ...

    def cancel(self, worker_ids: Sequence[int]) -> None:
        """Ask pilots to end: they end their payloads and report their jobs. Unknown ids are ignored."""
        ...


def next_delay(last_s: float, worker: Worker) -> float:
    """Seconds before pilots are started again after one has ended; `last_s` is the answer of the time before.

    One that did its work makes no delay. One that failed soon after its start does, doubling up to a limit: something
    is wrong that will not pass in a second, and a thousand starts a minute help nobody.
    """
    if worker.state != WorkerState.FAILED:
        return 0.0
    if worker.ran_s >= STEADY_S:
        return FIRST_DELAY_S
    return min(max(last_s * 2, FIRST_DELAY_S), LONGEST_DELAY_S)
