"""The same tests on the PostgreSQL of the distribution: what runs on the embedded 18 runs on Debian's 15 too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WHAT = [
    "tests/jedisite/test_partitions.py",
    "tests/jedisite/test_agents.py",
    "tests/tasks_app/test_models.py",
    "tests/tasks_app/test_dispatch.py",
    "tests/tasks_app/test_report.py",
    "tests/tasks_app/test_feeding.py",
    "tests/tasks_app/test_generating.py",
    "tests/flow",
]
LEFT_OUT = ["tests/flow/test_demo.py", "tests/flow/test_random_walk.py", "tests/flow/test_long_walk.py"]


def distribution_bin() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("1[5-8]/bin/postgres"))
    return found[0].parent if found else None


def test_the_flow_runs_on_the_postgresql_of_the_distribution() -> None:
    binaries = distribution_bin()
    if binaries is None:
        if os.environ.get("JEDI_TEST_ALL") == "1":
            pytest.fail("no PostgreSQL of the distribution is installed")
        pytest.skip("no PostgreSQL of the distribution is installed")
    environment = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "JEDI_HOME") and "PYTEST" not in k}
    environment["JEDI_POSTGRES_BIN"] = str(binaries)
    ignored = [f"--ignore={path}" for path in LEFT_OUT]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", *WHAT, *ignored],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
