"""Installs programs from the package index, once for all processes of a test run."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

INSTALL_LIMIT_S = 300


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills, once in a test run, whichever process comes first.

    When the package index cannot be reached the test is skipped, or fails where JEDI_TEST_ALL says so.
    """
    base = factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder, done = shared / name, shared / f"{name}.done"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir(exist_ok=True)
            try:
                make(folder)
            except subprocess.CalledProcessError as exc:
                reason = f"{name} could not be installed: {exc.stderr[-500:]}"
                if os.environ.get("JEDI_TEST_ALL") == "1":
                    pytest.fail(reason)
                pytest.skip(reason)
            done.touch()
    return folder


def pip(folder: Path, *arguments: str) -> None:
    """Run pip in an environment of its own, which is made at first. Raises CalledProcessError."""
    if not (folder / "bin" / "pip").exists():
        run(sys.executable, "-m", "venv", str(folder))
    run(str(folder / "bin" / "pip"), "--disable-pip-version-check", *arguments)


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
