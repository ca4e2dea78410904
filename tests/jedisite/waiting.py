"""Waiting for something that other processes do, with an end to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

LIMIT_S = 60.0


def until(condition: Callable[[], object], what: str, pause: Callable[[float], object] = time.sleep) -> None:
    """Return as soon as the condition holds; fail when it does not hold in time."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {LIMIT_S} s in vain until {what}"
        pause(0.02)


def is_gone(pid: int) -> bool:
    """Whether a process is dead; one that nobody has reaped yet counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
