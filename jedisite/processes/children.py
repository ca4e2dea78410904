"""Child processes that end with their parent. Linux only, imports no Django."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

PR_SET_PDEATHSIG = 1
LOG_LIMIT_BYTES = 20_000_000


def die_with_parent(death_signal: signal.Signals) -> Callable[[], None]:
    """Make a `preexec_fn` after which the child gets `death_signal` when its parent dies, however it dies.

    The kernel watches the *thread* that forks, so call `Popen` from a thread that lives as long as the child
    should: the main one.
    """
    # Loaded here and not in the child: after a fork only the least should happen.
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def arm() -> None:
        prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:  # it died between the fork and the line above, and no signal will come
            os._exit(1)

    return arm


def forks_die_with_parent() -> None:
    """From now on each process that this one forks, and those that they fork, is killed when its own parent dies."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = 0

    def remember() -> None:
        nonlocal parent
        parent = os.getpid()

    def arm() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # as above
            os._exit(1)

    os.register_at_fork(before=remember, after_in_child=arm)


def open_private(path: Path) -> BinaryIO:
    """Open a file for appending; a new one can be read by its owner only."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab")


def open_log(path: Path) -> BinaryIO:
    """Open a log file for appending; one that has grown over 20 MB is put aside as `<name>.1` first."""
    if path.exists() and path.stat().st_size > LOG_LIMIT_BYTES:
        path.replace(path.with_name(path.name + ".1"))
    return open_private(path)
