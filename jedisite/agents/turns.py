"""An agent's turn on one task has an end: a limit of time, kept twice.

In the process itself a timer breaks off what runs in Python, or waits for the database. What does not come back to
Python (a long sum, some other library) is ended by `manage.py cluster`, which reads from a file what each worker has in hand
and kills a worker whose turn is over. Either way the task is named and left aside.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from django.conf import settings

IN_ALL: Final = 5
"""A turn that shows that it gets on, page by page, may last so many times as long."""
FOR_EACH_S: Final = 30.0
"""After so long no further turn is begun in one go: what is left is set free for the next pass."""
PULSE: Final = "JEDI_CLUSTER_PULSE"
_IN_HAND: Final = ".turn."


class TurnTooLongError(KeyboardInterrupt):
    """A turn took longer than it may. No `Exception`, so that no work catches it; the database's driver ends a statement
    that runs, as it does for Ctrl-C."""


def limit_s() -> float:
    return float(settings.JEDI_TURN_S)


def sentence(seconds: float) -> str:
    return f"it took longer than the {seconds:g} s that one task may take"


class _Turn:
    """The turn that the main thread of this process is in."""

    def __init__(self, agent: str, task_id: int, most_s: float | None) -> None:
        self.agent, self.task_id = agent, task_id
        self.limit = limit_s() if most_s is None else min(most_s, limit_s())
        self.began = time.monotonic()
        self.outer, _ = signal.getitimer(signal.ITIMER_REAL)
        # A shorter timer of others stays in force instead.
        self.is_timed = not self.outer or self.limit < self.outer
        pulse = os.environ.get(PULSE)
        self.path = Path(f"{pulse}{_IN_HAND}{os.getpid()}") if pulse else None

    def wind(self) -> None:
        """From now on it may take its time, but not beyond what all of it may, or what others allow."""
        used, limit = time.monotonic() - self.began, self.limit
        left = max(min(limit, limit * IN_ALL - used, self.outer - used if self.outer else limit), 0.001)
        if self.is_timed:
            signal.setitimer(signal.ITIMER_REAL, left)
        if self.path is not None:
            with suppress(OSError):
                self.path.write_text(
                    json.dumps({"agent": self.agent, "task": self.task_id, "until": time.time() + left})
                )

    def end(self) -> None:
        """What was set before goes on."""
        if self.is_timed:
            left = max(self.outer - (time.monotonic() - self.began), 0.001) if self.outer else 0
            signal.setitimer(signal.ITIMER_REAL, left)
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink()


_now: _Turn | None = None


@contextmanager
def turn(agent: str, task_id: int, most_s: float | None = None) -> Iterator[None]:
    """One task's turn, which may be limited to `most_s`. Raises TurnTooLongError within what takes too long; only in the main
    thread of a process."""
    global _now
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    outside, mine = _now, _Turn(agent, task_id, most_s)
    before = signal.signal(signal.SIGALRM, _over) if mine.is_timed else None
    _now = mine
    mine.wind()
    try:
        try:
            yield
        finally:
            _now = outside
            if mine.is_timed:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        # Also when the time was over just before the timer was stopped.
        if mine.is_timed:
            signal.signal(signal.SIGALRM, before)
        mine.end()


def _over(number: int, frame: FrameType | None) -> None:
    raise TurnTooLongError(sentence(limit_s() if _now is None else _now.limit))


def renewed() -> None:
    """The turn that is on has got something done: it has its time anew. Called with every renewal of a lease."""
    if _now is not None and threading.current_thread() is threading.main_thread():
        _now.wind()


@dataclass(frozen=True, slots=True)
class Lost:
    """A turn that ended with its process."""

    agent: str
    task_id: int
    error: str


def end_overlong(pulse: Path) -> list[Lost]:
    """Kill the workers of a cluster whose turn is long over. Returns their turns, and those of workers that died in one."""
    lost = []
    for path in pulse.parent.glob(f"{pulse.name}{_IN_HAND}*"):
        try:
            pid, found = int(path.name.rpartition(".")[2]), json.loads(path.read_text())
            overdue = time.time() - found["until"]
        except (OSError, ValueError):
            continue  # it is being written, or its turn has just ended
        if _is_gone(pid):
            error = "the process that worked on it was killed or crashed"
        elif overdue > 1 + limit_s() / 8:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            error = f"{sentence(limit_s())}; its process was killed"
        else:
            continue
        path.unlink(missing_ok=True)
        lost.append(Lost(found["agent"], found["task"], error))
    return lost


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
