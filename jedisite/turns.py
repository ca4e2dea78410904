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

FOR_EACH_S: Final = 30.0
"""After so long no further turn is begun in one go: what is left is set free for the next pass."""
PULSE: Final = "JEDI_CLUSTER_PULSE"
_IN_HAND: Final = ".turn."


class TurnTooLongError(KeyboardInterrupt):
    """A turn took longer than it may. No `Exception`, so that no work catches it; the database's driver ends a statement
    that runs, as it does for Ctrl-C."""


def limit_s() -> float:
    return float(settings.JEDI_TURN_S)


def killed_after_s() -> float:
    """When a turn that could not be broken off is ended with its process."""
    return limit_s() * 1.125 + 1


def sentence(seconds: float) -> str:
    return f"it took longer than the {seconds:g} s that one task may take"


@contextmanager
def turn(agent: str, task_id: int) -> Iterator[None]:
    """One task's turn. Raises TurnTooLongError within what takes too long; only in the main thread of a process."""
    with _in_hand(agent, task_id), _timer(limit_s()):
        yield


@contextmanager
def _timer(seconds: float) -> Iterator[None]:
    """A timer around others: one that was set before goes on afterwards, and stays in force where it is shorter."""
    outer, _ = signal.getitimer(signal.ITIMER_REAL)
    if threading.current_thread() is not threading.main_thread() or 0 < outer <= seconds:
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise TurnTooLongError(sentence(seconds))

    before, began = signal.signal(signal.SIGALRM, over), time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer:
            signal.setitimer(signal.ITIMER_REAL, max(outer - (time.monotonic() - began), 0.001))


@contextmanager
def _in_hand(agent: str, task_id: int) -> Iterator[None]:
    pulse = os.environ.get(PULSE)
    if not pulse:
        yield
        return
    path = Path(f"{pulse}{_IN_HAND}{os.getpid()}")
    with suppress(OSError):
        path.write_text(json.dumps({"agent": agent, "task": task_id, "began": time.time()}))
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()


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
            age = time.time() - found["began"]
        except (OSError, ValueError):
            continue  # it is being written, or its turn has just ended
        if _is_gone(pid):
            error = "the process that worked on it died"
        elif age > killed_after_s():
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
