"""One site in one home: a second start is refused or waits, with real processes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jedisite.processes import one_site

ROOT = Path(__file__).resolve().parents[3]
HOLDER = """
import sys, time
from pathlib import Path
from jedisite.processes import one_site
one_site.hold(Path(sys.argv[1]))
if sys.argv[2] == "ends":
    one_site.note(ends=True)
else:
    one_site.note(url="http://127.0.0.1:8811")
print("held", flush=True)
sys.stdin.read(1)
time.sleep(float(sys.argv[3]))
"""


@contextmanager
def holder(home: Path, how: str, then_s: float = 0.0) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the home, until it is to go on, and for some time more."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home), how, str(then_s)],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(autouse=True)
def let_go() -> Iterator[None]:
    yield
    if one_site._held is not None:
        one_site._held.close()
        one_site._held = None


@pytest.mark.parametrize("command", ["up", "demo"])
def test_a_second_site_of_a_home_is_refused_before_it_touches_the_database(command: str, tmp_path: Path) -> None:
    with holder(tmp_path, "runs") as other:
        done = subprocess.run(
            [sys.executable, "manage.py", command, "--port", "8812"],
            cwd=ROOT,
            text=True,
            capture_output=True,
            timeout=60,
            env={"PATH": "/usr/bin:/bin", "JEDI_HOME": str(tmp_path)},
        )
    assert done.returncode == 1 and not (tmp_path / "postgres").exists()
    assert done.stderr.strip() == (
        f"The site of {tmp_path} already runs at http://127.0.0.1:8811/ (process {other.pid}): stop it first (Ctrl-C where it "
        "was started). A second site needs its own JEDI_HOME."
    )


def test_a_site_that_is_ending_is_waited_for(tmp_path: Path) -> None:
    said: list[str] = []
    with holder(tmp_path, "ends", then_s=0.5) as other:
        assert other.stdin is not None
        other.stdin.write("x")
        other.stdin.flush()
        began = time.monotonic()
        one_site.hold(tmp_path, said.append)
        assert time.monotonic() - began < one_site.ENDS_WITHIN_S
    assert said == [f"The site of {tmp_path} is still stopping; waiting for it for up to 30 s."]


def test_one_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    with holder(tmp_path, "runs"):
        assert one_site.address(tmp_path) == "http://127.0.0.1:8811", "where pilots of this home call"
        assert one_site.runs(tmp_path)
    assert one_site.address(tmp_path) == "" and not one_site.runs(tmp_path)
    one_site.hold(tmp_path)
    one_site.note(url="http://127.0.0.1:8000")
    assert "8000" in (tmp_path / "run" / "site.lock").read_text()
