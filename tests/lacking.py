"""What a test needs and this machine lacks: the test is skipped, or fails where all tests were asked for."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def lacking(what: str) -> NoReturn:
    """Skip the test with that sentence; with JEDI_TEST_ALL, which `.ci/run` sets, it fails."""
    if os.environ.get("JEDI_TEST_ALL"):
        pytest.fail(what)
    pytest.skip(what)


def needs_program(name: str) -> None:
    if shutil.which(name) is None:
        lacking(f"{name} is not installed")
