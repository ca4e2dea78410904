"""A payload that tries to get at everything around it gets nothing: run by real pilots, behind the walls of this machine."""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

from tasks_app.worker_node.pilot import walls
from tasks_app.worker_node.pilot.errors import Code
from tasks_app.worker_node.pilot.settings import Settings, add_arguments, from_arguments
from tasks_app.worker_node.pilot.walls import Walls
from tests.lacking import lacking
from tests.tasks_app.worker_node.running import Pilots
from tests.tasks_app.worker_node.site import Site
from tests.tasks_app.worker_node.test_sandboxes import sandbox, stored

SECRET = "the signing key of the site"
THIEF = """#!/usr/bin/env python3
import glob, json, os, signal, socket, sys
got = {}
def attempt(name, act):
    try:
        got[name] = act()
    except Exception as exc:
        got[name] = False
def reached(address, kind=socket.AF_INET):
    with socket.socket(kind) as probe:
        probe.settimeout(3)
        probe.connect(address)
    return True
home, port, pid, other, mine = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
attempt("read the key", lambda: open(home + "/secret_key").read())
attempt("list the home", lambda: os.listdir(home))
attempt("read another job", lambda: os.listdir(other))
attempt("read the shadow", lambda: open("/etc/shadow").read())
attempt("reach the server", lambda: reached(("127.0.0.1", port)))
attempt("reach a socket", lambda: reached(chr(0) + "hidden." + str(port), socket.AF_UNIX))
attempt("see others", lambda: [path for path in os.listdir("/proc") if path.isdigit() and int(path) > 100])
attempt("signal another", lambda: os.kill(pid, signal.SIGTERM) or True)
attempt("write to the system", lambda: open("/usr/bin/mine", "w").close() or True)
attempt("write beside the folder", lambda: open("/mine", "w").close() or True)
attempt("be root again", lambda: os.setuid(0) or os.getuid() == 0)
readable = [path for path in glob.glob("/proc/[0-9]*/environ") if os.access(path, os.R_OK)]
got["environments"] = [path for path in readable if b"JEDI_" in open(path, "rb").read()]
got["variables"] = sorted(name for name in os.environ if name.startswith("JEDI_") or name == "MY_PASSWORD")
json.dump(got, open(mine, "w"))
"""


@pytest.fixture(scope="module")
def found() -> Walls:
    here = walls.find()
    if isinstance(here, str):
        lacking(here)
    return here


@pytest.fixture
def walled(site: Site, tmp_path: Path, found: Walls) -> Iterator[Pilots]:
    pilots = Pilots(site, tmp_path / "home" / "work", isolation="auto")
    yield pilots
    pilots.end()


def test_it_sees_nothing_and_reaches_nobody(site: Site, walled: Pilots, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "work" / "other").mkdir(parents=True)
    (home / "secret_key").write_text(SECRET)
    victim = subprocess.Popen(["sleep", "600"])
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as hidden:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        hidden.bind(f"\0hidden.{port}")
        hidden.listen()
        words = f"{home} {port} {victim.pid} {home / 'work' / 'other'} out.json"
        job = site.offer(THIEF, words, outputs=("out.json",))
        assert walled.run("--max-jobs", "1", "--hidden", str(home)) == 0
    report = site.wait_final(job)
    assert report["job_status"] == "finished", report
    got = json.loads(stored(report, "out.json").read_text())
    assert {name: what for name, what in got.items() if what} == {}
    assert victim.poll() is None
    victim.kill()
    victim.wait()
    assert walled.leftovers() == ["other"]


def test_what_it_leaves_as_links_is_neither_read_nor_written_through(
    site: Site, walled: Pilots, tmp_path: Path
) -> None:
    secret = tmp_path / "secret_key"
    secret.write_text(f"{SECRET}\n")
    log = "log.101.tgz"
    command = f"rm -f payload.stderr pilot.log; for n in payload.stderr pilot.log {log} out; do ln -s {secret} $n; done"
    job = site.offer("run_command", f"-p {quote(command + '; exit 3')}")
    assert walled.run() == 0
    report = site.wait_final(job)
    assert report["exe_error_code"] == 3 and SECRET not in json.dumps(report)
    assert secret.read_text() == f"{SECRET}\n"
    with tarfile.open(stored(report, log)) as packed:
        assert all(SECRET.encode() not in packed.extractfile(one).read() for one in packed if one.isfile())  # type: ignore[union-attr]


def test_a_sandbox_is_there_though_there_is_no_network(site: Site, walled: Pilots) -> None:
    site.sandboxes["jobO.1.tar.gz"] = sandbox(say__sh="echo of the sandbox > out")
    line = "-a jobO.1.tar.gz --sourceURL https://elsewhere.example -o \"{'out': 'lfn.1'}\" -p "
    job = site.offer("run_command", line + quote("sh say.sh"), outputs=("lfn.1",))
    missing = site.offer("run_command", line.replace("O.1", "O.2") + "true")
    assert walled.run("--max-jobs", "2") == 0
    assert stored(site.wait_final(job), "lfn.1").read_text() == "of the sandbox\n"
    report = site.wait_final(missing)
    assert (
        report["pilot_error_diag"]
        == "The sandbox jobO.2.tar.gz could not be fetched: the server answered 404: there is no such thing"
    )


def test_a_fork_bomb_and_a_glutton_end_with_their_jobs(site: Site, walled: Pilots) -> None:
    bomb = "#!/bin/sh\nbomb() { bomb | bomb & }\nbomb; sleep 600\n"
    eater = "#!/usr/bin/env python3\nhog = []\nwhile True: hog.append(bytearray(1 << 26))\n"
    before = set(psutil.pids())
    bombed = site.offer(bomb, maxWalltime=2)
    fed = site.offer(eater, minRamCount=200)
    assert walled.run("--max-jobs", "2") == 0
    assert site.wait_final(bombed)["job_status"] == "failed"
    report = site.wait_final(fed)
    assert report["pilot_error_code"] == Code.EXCEEDED_MAX_MEMORY, report
    assert report["max_rss"] < 4_000_000, "kB"
    mine = psutil.Process().children(recursive=True)
    assert not [one for one in mine if one.pid not in before and "program" in " ".join(one.cmdline())]


def test_a_killed_job_may_put_its_things_away_first(site: Site, walled: Pilots) -> None:
    program = "#!/bin/sh\ntrap 'echo tidy; exit 9' TERM\nwhile :; do sleep 0.1; done\n"
    job = site.offer(program)
    process = walled.start()
    site.wait(lambda: "running" in site.states(job), "the start of the payload")
    walled.output(process).wait_for("payload.started")
    site.commands[job] = "tobekilled"
    assert process.wait(30) == 0
    with tarfile.open(stored(site.wait_final(job), f"log.{job}.tgz")) as packed:
        (out,) = [packed.extractfile(one) for one in packed if one.name.endswith("payload.stdout")]
        assert out and out.read() == b"tidy\n"


def test_what_a_payload_took_is_measured_behind_walls_too(site: Site, walled: Pilots) -> None:
    program = "#!/usr/bin/env python3\nhog = bytearray(150_000_000)\nsum(range(5_000_000))\n"
    job = site.offer(program)
    assert walled.run() == 0
    report = site.wait_final(job)
    assert report["job_status"] == "finished"
    assert report["max_rss"] > 140_000


CALLS = """#!/usr/bin/env python3
import ctypes, json, os, socket, subprocess
got = {}
try:
    got["vsock"] = bool(socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
except OSError as exc:
    got["vsock"] = exc.strerror
got["pair"] = bool(socket.socketpair())
libc = ctypes.CDLL(None, use_errno=True)
got["io_uring"] = libc.syscall(425, 1, None), os.strerror(ctypes.get_errno())
json.dump(got, open("out.json", "w"))
words = "echo one > /dev/stdout && echo said > /dev/stderr && echo again | tee -a /dev/stderr"
subprocess.run(["sh", "-c", words], check=True)
"""


def test_a_payload_gets_no_socket_to_the_host_and_opens_its_own_outputs_once_more(site: Site, walled: Pilots) -> None:
    job = site.offer(CALLS, outputs=("out.json",))
    assert walled.run() == 0
    report = site.wait_final(job)
    assert report["job_status"] == "finished", report
    assert json.loads(stored(report, "out.json").read_text()) == {
        "vsock": "Address family not supported by protocol",
        "pair": True,
        "io_uring": [-1, "Function not implemented"],
    }
    said = {}
    with tarfile.open(stored(report, f"log.{job}.tgz")) as packed:
        for one in packed:
            file = packed.extractfile(one)
            said[one.name.rpartition("/")[2]] = file.read().decode() if file else ""
    assert (said["payload.stdout"], said["payload.stderr"]) == ("one\nagain\n", "said\nagain\n")


def test_outputs_with_holes_count_with_all_of_their_length(site: Site, walled: Pilots) -> None:
    program = "#!/bin/sh\ntruncate -s 60M out.1; truncate -s 60M out.2\n"
    job = site.offer(program, outputs=("out.1", "out.2"), maxDiskCount=100)
    fits = site.offer(program, outputs=("out.1", "out.2"), maxDiskCount=200)
    assert walled.run("--max-jobs", "2") == 0
    report = site.wait_final(job)
    assert (report["job_status"], report["pilot_error_code"]) == ("failed", Code.WORK_FOLDER_TOO_LARGE)
    said = "The work folder held 121 MB, including 120 MB of holes in outputs, its limit is 100 MB, what "
    assert report["pilot_error_diag"].startswith(said)
    assert site.wait_final(fits)["job_status"] == "finished"


@pytest.mark.parametrize("missing", ["bwrap", "namespaces"])
def test_without_walls_only_jobs_of_administrators_are_asked_for(
    site: Site, walled: Pilots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    if missing == "namespaces":
        (tools / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
        (tools / "bwrap").chmod(0o755)
        for name in ("setpriv", "sh"):
            (tools / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(tools))
    process = walled.start("--max-jobs", "1", "--idle-exit", "0")
    line = walled.output(process).wait_for("payloads.unwalled")
    says = {"bwrap": "bubblewrap (bwrap) is not installed", "namespaces": "No permissions to create new namespace"}
    assert says[missing] in line
    assert process.wait(30) == 0
    assert [asked.get("administrators_only") for asked in site.acquired] == [True]


def settings_of(*words: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = parser.parse_args(["--queue", "Q", "--server", "http://127.0.0.1:1", *words])
    return from_arguments(options, {"JEDI_PILOT_TOKEN": "t"})


def test_whoever_asks_for_none_gets_none() -> None:
    assert (settings_of("--isolation", "none").walls, settings_of("--isolation", "none").unwalled) == (None, "")


def test_another_user_than_root_builds_walls_too(found: Walls, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The namespaces of a user; here as one that nobody else is."""
    if os.geteuid() != 0:
        assert found.uid is None
        return
    folder = Path("/tmp") / f"walls-{os.getpid()}"
    (folder / "tmp").mkdir(parents=True)
    uid = walls.FIRST_UID + 1
    try:
        for path in (folder, folder / "tmp"):
            os.chown(path, uid, uid)
        own = [prefix for prefix in (sys.prefix, sys.base_prefix) if not prefix.startswith("/usr")]
        command = Walls(None).around(
            ["sh", "-c", "id -u; echo hers > made; ls /proc | grep -c '^[0-9]'; ls /root"], folder
        )
        for prefix in own:  # it lies where this user may not go
            at = command.index(prefix)
            del command[at - 1 : at + 2]
        done = subprocess.run(
            ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--", *command],
            capture_output=True,
            text=True,
            check=False,
        )
        if "namespace" in done.stderr:
            lacking(done.stderr)
        assert done.stdout.split()[0] == str(uid), done.stderr
        assert int(done.stdout.split()[1]) < 10
        assert (folder / "made").read_text() == "hers\n"
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_limits_of_the_kernel_are_above_what_the_pilot_watches(tmp_path: Path) -> None:
    limits = walls.limit(1000, 500, tmp_path)
    assert limits[resource.RLIMIT_DATA] > 1000 * 1024**2 and limits[resource.RLIMIT_FSIZE] > 500 * 1024**2
    assert walls.limit(0, 0, tmp_path)[resource.RLIMIT_DATA] > 0


def test_the_environment_is_a_short_list() -> None:
    outer: dict[str, Any] = {"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "s", "HOME": "/root"}
    assert set(Walls().environment(outer)) == {"PATH", "LC_ALL", "HOME", "TMPDIR", "USER", "LOGNAME"}
    assert Walls().environment(outer)["HOME"] == "/job/tmp"


def test_what_is_hidden_is_hidden_wherever_it_lies() -> None:
    command = Walls(None, readable=("/data",), hidden=("/data/site", "/var/site")).around(["true"], None)
    assert "/data/site" in command and "/var/site" not in command
