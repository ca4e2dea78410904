"""How PanDA's pilot is held: it is never started where it could reach other people's processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tasks_app.pilot.storage import place
from tasks_app.pilot.walls import Walls
from tasks_app.workers import panda
from tasks_app.workers.base import PilotSpec
from tests.tasks_app.pilot.running import CHECKOUT

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
    command = panda.isolated(panda.command(source, SPEC, tmp_path / "storage"))
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


THIEF = r"""
import glob, json, os, subprocess, sys
home, pid = {home!r}, {pid}
def attempt(act):
    try:
        return act()
    except OSError:
        return False
got = {{
    "the key": attempt(lambda: open(home + "/secret_key").read()),
    "the run folder": attempt(lambda: os.listdir(home + "/run")),
    "other pilots": attempt(lambda: os.listdir(home + "/work")),
    "writes to the inputs": attempt(lambda: open("/inputs/mine", "w").close() or True),
    "changes its source": attempt(lambda: open(os.path.dirname(sys.argv[0]) + "/pilot.py", "a").close() or True),
    "the shadow": attempt(lambda: open("/etc/shadow").read()),
    "a process": attempt(lambda: os.kill(pid, 0) or True),
    "environments": [path for path in glob.glob("/proc/[0-9]*/environ")
                     if os.access(path, os.R_OK) and b"A_PASSWORD" in open(path, "rb").read()],
}}
who = subprocess.run("whoami && ps -u $(whoami) -o pid=", shell=True, capture_output=True, text=True).stdout.split()
got["cannot find itself"] = str(os.getpid()) not in who
os.makedirs(home + "/storage/user/ada/{folders}", exist_ok=True)
open("out", "w").write(json.dumps([got, open("/inputs/user/ada/in").read(), os.environ["OIDC_AUTH_DIR"], open("token").read()]))
sys.exit(subprocess.run(["/usr/bin/env", "mv", "out", home + "/storage/user/ada/{folders}/{name}"]).returncode)
"""


STARTER = """
import signal, sys
from pathlib import Path
from tasks_app.pilot.latch import Latch
from tasks_app.workers import panda
from tasks_app.workers.base import ENDED, OneForAll, PilotSpec
from tasks_app.workers.local import LocalSubmitter, PandaPilot
source, home, stop = Path(sys.argv[1]), Path(sys.argv[2]), Latch()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
walls = panda.find_walls(source, [str(home.parent)], [str(home)])
submitter = LocalSubmitter(home / "work", PandaPilot(source, home / "storage", walls), OneForAll("jedi_swordfish"))
(worker,) = submitter.submit(PilotSpec("LAB", "http://127.0.0.1:8000"), 1)
never, asked = Latch(), False
while worker.state not in ENDED:
    submitter.wait(never if asked else stop, 5)
    if stop.is_set and not asked:
        submitter.cancel([worker.id])  # once: a second SIGTERM would reach a process that is about to exit
        asked = True
    (worker,) = submitter.poll()
print(worker.state, worker.detail)
"""
"""Starts one pilot and says how it ended, in a process of its own: it kills what it inherits."""


@pytest.fixture
def walled(source: Path) -> Walls:
    found = panda.find_walls(source, [], [])
    if isinstance(found, str):
        if os.environ.get("JEDI_TEST_ALL") == "1":
            pytest.fail(found)
        pytest.skip(found)
    return found


@pytest.fixture
def starter(source: Path, tmp_path: Path, walled: Walls) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts this script as a pilot."""
    home = tmp_path / "home"
    tmp_path.chmod(0o755)  # a folder that payloads may read, with the site's in it
    for name in ("run", "storage/user/ada", "work"):
        (home / name).mkdir(parents=True)
    (home / "secret_key").write_text("the key")
    started: list[subprocess.Popen[str]] = []

    def start(script: str) -> subprocess.Popen[str]:
        (source / panda.SCRIPT).write_text(script)
        command = [sys.executable, "-c", STARTER, str(source), str(home)]
        started.append(subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_the_pilot_and_its_payload_see_nothing_of_the_site_and_its_outputs_come_to_the_storage(
    tmp_path: Path, starter: Callable[[str], subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_PASSWORD", "swordfish")
    home = tmp_path / "home"
    (home / "storage" / "user" / "ada" / "in").write_text("fine")
    where = place(home / "storage", "user.ada", "got.json").path
    folders = "/".join(where.parts[-3:-1])
    said, _ = starter(THIEF.format(home=str(home), pid=os.getpid(), folders=folders, name=where.name)).communicate(
        timeout=60
    )
    assert said == "finished exit code 0\n"
    got, *others = json.loads(where.read_text())
    assert {name: what for name, what in got.items() if what} == {}
    assert others == ["fine", "/job/", "jedi_swordfish"]
    assert not list((home / "work").iterdir())


def test_the_pilot_is_asked_to_end_through_its_walls(
    tmp_path: Path, starter: Callable[[str], subprocess.Popen[str]]
) -> None:
    process = starter(
        "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "open('told', 'w').close()\nwhile True: signal.pause()\n"
    )
    deadline = time.monotonic() + 60
    while not list((tmp_path / "home" / "work").glob("w-*/told")):
        assert time.monotonic() < deadline
    held = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    said, _ = process.communicate(timeout=60)
    assert (said, psutil.wait_procs(held, 30)[1]) == ("cancelled exit code 7\n", [])


def test_each_pilot_has_a_user_of_its_own(walled: Walls) -> None:
    users = {walled.of_another(number).uid for number in range(1, 50)}
    assert users == {None} or len(users) == 49
