"""Real tables for tests of whole tasks, as in the tests of the flow; payloads run as the pilot runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flow.conftest import books, tables
from tests.tasks_app.running_transforms import TRANSFORMS, Run

__all__ = ["books", "tables"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    env = os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}

    def run(name: str, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(TRANSFORMS / name), *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        return done

    return run
