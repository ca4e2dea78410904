"""How PanDA's pilot is held: it is never started where it could reach other people's processes."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tasks_app.workers import panda
from tasks_app.workers.base import PilotSpec

SPEC = PilotSpec("LAB", "http://127.0.0.1:8000", heartbeat_s=7.4)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder that looks like the pilot's source."""
    folder = tmp_path / "panda-pilot"
    (folder / "pilot" / "util").mkdir(parents=True)
    (folder / panda.SCRIPT).write_text("")
    (folder / panda.CONFIGURATION).write_text("[Pilot]\nheartbeat: 1800\ndebug_heartbeat: 60\nlost_heartbeat: 10800\n")
    return folder


def test_it_is_held_in_a_namespace_and_told_not_to_kill(source: Path, tmp_path: Path) -> None:
    command = panda.command(source, SPEC, tmp_path / "storage")
    assert command[0] == "unshare" and {"--pid", "--fork", "--kill-child", "--mount-proc"} <= set(command)
    server, port = command[command.index("--url") + 1], command[command.index("-p") + 1]
    assert (server, port) == ("http://127.0.0.1", "8000")
    env = panda.environment({"PATH": "/bin"}, source, tmp_path, SPEC.server)
    assert env["PILOT_NOKILL"] == "1"
    assert env["OIDC_AUTH_DIR"] == f"{tmp_path}/", "the pilot takes only the folder part of it"
    assert env["PATH"].endswith(":/bin")


def test_the_token_is_in_a_file_of_its_own_and_nowhere_else(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    panda.prepare(source, folder, "jedi_swordfish", SPEC.heartbeat_s)
    kept = folder / "token"
    assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (b"jedi_swordfish", 0o600)
    said = [*panda.command(source, SPEC, tmp_path), *panda.environment({}, source, folder, SPEC.server).values()]
    assert not any("swordfish" in text for text in said)
    settings = (folder / "pilot.cfg").read_text()
    assert settings == "[Pilot]\nheartbeat: 7\ndebug_heartbeat: 7\nlost_heartbeat: 10800\n"


def test_without_a_namespace_or_its_source_it_is_refused_with_the_reason(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(panda.CannotIsolateError, match=r"pilot\.py is missing"):
        panda.check(tmp_path)
    refusing = tmp_path / "bin"
    refusing.mkdir()
    (refusing / "unshare").write_text("#!/bin/sh\necho not permitted >&2\nexit 1\n")
    (refusing / "unshare").chmod(0o755)
    for path, reason in ((str(tmp_path), "not installed"), (f"{refusing}:{os.environ['PATH']}", "not permitted")):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(panda.CannotIsolateError, match=f"pid namespace.*{reason}"):
            panda.check(source)


def test_all_that_it_started_ends_with_the_process_that_holds_it(source: Path) -> None:
    try:
        panda.check(source)
    except panda.CannotIsolateError as exc:
        if os.environ.get("JEDI_TEST_ALL") == "1":
            pytest.fail(str(exc))
        pytest.skip(str(exc))
    holder = subprocess.Popen(panda.isolated(["sh", "-c", "setsid sleep 1000 & exec sleep 1000"]))
    deadline = time.monotonic() + 30
    while len(held := psutil.Process(holder.pid).children(recursive=True)) < 2:
        assert time.monotonic() < deadline
    holder.kill()
    holder.wait()
    assert not psutil.wait_procs(held, 30)[1]
