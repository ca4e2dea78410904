"""What it takes to start pilots somewhere, and how many to start when. No Django, no database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 60.0
STEADY_S = 30.0
RENEW_EVERY_S = 600.0


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
    """What pilots are told. `label` empty: any kind of job; `memory_mb` 0: the memory of a slot is not set.

    The last four are about the walls round payloads, see `tasks_app/worker_node/pilot/walls.py`.
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


class NoTokenError(Exception):
    """No token can be had now, or pilots would get no jobs; the text says why. Try again later."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a pilot shows to the site. `file`: its token is in this file, and somebody writes a new one there in time.

    `begins_with`: the program that the site puts before those of this pilot's jobs; "" for none.
    """

    token: str
    file: Path | None = None
    begins_with: str = ""


class Tickets(Protocol):
    """Gives each worker its ticket, and takes it back."""

    def make(self, worker_id: int) -> Ticket:
        """Raises NoTokenError."""
        ...

    def renew(self, tokens: Collection[str]) -> None:
        """To be called every RENEW_EVERY_S for tokens in use. Raises NoTokenError."""
        ...

    def end(self, tokens: Mapping[str, str]) -> None:
        """The workers of these tokens have ended; with each, a sentence for jobs that it has left. Raises NoTokenError."""
        ...

    def killed(self, jobs: Collection[int]) -> Collection[int]:
        """Those of these jobs that are to be killed. Raises NoTokenError."""
        ...


@dataclass(frozen=True, slots=True)
class OneForAll:
    """A token that the operator has made: `token`, or what is in the file."""

    token: str
    file: Path | None = None

    def make(self, worker_id: int) -> Ticket:
        return Ticket(self.token, self.file)

    def renew(self, tokens: Collection[str]) -> None:
        """Its maker does."""

    def end(self, tokens: Mapping[str, str]) -> None:
        """Others use it."""

    def killed(self, jobs: Collection[int]) -> Collection[int]:
        """Heartbeats tell."""
        return ()


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
