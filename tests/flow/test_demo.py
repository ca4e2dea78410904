"""The demonstration as a stranger runs it, from an empty folder to verified outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(660)
ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_demo_ends_with_every_output_verified(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JEDI_") and k != "DATABASE_URL"}
    environment["JEDI_HOME"] = str(tmp_path / "home")
    done = subprocess.run(
        [sys.executable, "manage.py", "demo", "--exit", "--timeout", "400"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["ok"]
    assert {task["name"].rsplit(".", 1)[1]: task["status"] for task in summary["tasks"]} == {
        "evgen": "done",
        "reco": "done",
        "zmass": "done",
        "sources": "done",
        "checksums": "finished",
        "primes": "done",
        "merged": "done",
        "ranges": "done",
    }
    assert not any(task["faults"] for task in summary["tasks"])
    assert summary["tasks"][0]["events"] == 40_000
    assert summary["tasks"][3]["events"] >= 1_000
