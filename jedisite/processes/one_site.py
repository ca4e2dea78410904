"""One site in one home: a lock that `manage.py up` and `demo` hold until all has ended. Imports no Django.

The kernel gives the lock back with the process, however that ends. What runs there stands in the file.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

from jedisite.processes.children import open_private

CALLERS: Final = frozenset({"pilot", "local_workers"})
"""Commands that call the site of this home unless another one is named."""
COMMANDS: Final = frozenset({"up", "demo"})
ENDS_WITHIN_S: Final = 30.0
"""A site that ends is waited for so long; see GRACE_S of the supervisor."""
ANSWERS_WITHIN_S: Final = 3.0
"""For so long a site may not have seen yet that it is to end."""
POLL_S: Final = 0.1
_held: BinaryIO | None = None


class RunsAlreadyError(Exception):
    """Another process runs the site of this home; the text says which."""


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def is_new(home: Path) -> bool:
    """Whether nothing has run in this home yet: no site, no database."""
    return not (_lock(home).exists() or (home / "postgres").exists())


def hold(home: Path, say: Callable[[str], None] = _say) -> None:
    """Take the home for this process, until it ends. One that is just ending is waited for.

    Raises RunsAlreadyError.
    """
    global _held
    path = _lock(home)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = open_private(path)
    began, told = time.monotonic(), False
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        other = _read(path)
        ends = bool(other.get("ends"))
        if time.monotonic() - began > (ENDS_WITHIN_S if ends else ANSWERS_WITHIN_S):
            file.close()
            raise RunsAlreadyError(_sentence(home, other, ends))
        if ends and not told:
            told = True
            say(f"The site of {home} is still stopping; waiting for it for up to {ENDS_WITHIN_S:.0f} s.")
        time.sleep(POLL_S)
    _held = file
    _write({"pid": os.getpid()})


def note(**more: Any) -> None:
    """Write what runs here, `url`, or that it ends, `ends`. Does nothing in a process that holds no home."""
    if _held is not None:
        _write({"pid": os.getpid(), **more})


def address(home: Path) -> str:
    """Where the site of a home answers; "" when none runs."""
    url = _read(_lock(home)).get("url", "")
    return url if isinstance(url, str) and runs(home) else ""


def runs(home: Path) -> bool:
    """Whether a process holds the home."""
    try:
        with _lock(home).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _lock(home: Path) -> Path:
    return home / "run" / "site.lock"


def _write(what: dict[str, Any]) -> None:
    if _held is not None:
        _held.seek(0)
        _held.truncate()
        _held.write(json.dumps(what).encode())
        _held.flush()


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):  # it is being written
        return {}
    return found if isinstance(found, dict) else {}


def _sentence(home: Path, other: dict[str, Any], ends: bool) -> str:
    process = f"process {other['pid']}" if "pid" in other else "another process"
    if ends:
        return f"The site of {home} has not stopped yet ({process}); try again in a moment."
    at = f" at {other['url']}/" if other.get("url") else ""
    return (
        f"The site of {home} already runs{at} ({process}): stop it first (Ctrl-C where it was started). A second "
        "site needs its own JEDI_HOME."
    )
