"""How PanDA's pilot is held: it is never started where it could reach other people's processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tasks_app.dispatch.description import behind_walls
from tasks_app.worker_node.pilot.storage import place
from tasks_app.worker_node.pilot.walls import Walls
from tasks_app.worker_node.submitters import panda_pilots
from tasks_app.worker_node.submitters.base import PilotSpec
from tests.lacking import lacking
from tests.tasks_app.worker_node.running import CHECKOUT

PROGRAM = "walls_of_a_test"
SPEC = PilotSpec("LAB", "http://127.0.0.1:8000", heartbeat_s=7.4)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder that looks like the pilot's source."""
    folder = tmp_path / "panda-pilot"
    (folder / "pilot" / "util").mkdir(parents=True)
    (folder / panda_pilots.SCRIPT).write_text("")
    (folder / panda_pilots.CONFIGURATION).write_text(
        "[Pilot]\nheartbeat: 1800\ndebug_heartbeat: 60\nlost_heartbeat: 10800\n"
    )
    return folder


def test_it_is_held_in_a_namespace_and_told_not_to_kill(source: Path, tmp_path: Path) -> None:
    command = panda_pilots.isolated(panda_pilots.command(source, SPEC, tmp_path / "storage"))
    assert command[0] == "unshare" and {"--pid", "--fork", "--kill-child", "--mount-proc"} <= set(command)
    server, port = command[command.index("--url") + 1], command[command.index("-p") + 1]
    assert (server, port) == ("http://127.0.0.1", "8000")
    address = command[command.index("--queuedata-url") + 1].format(pandaqueue="Q")
    assert address == "http://127.0.0.1:8000/cache/schedconfig/Q.all.json?timefloor=60"
    env = panda_pilots.environment({"PATH": "/bin"}, source, tmp_path, SPEC.server)
    assert env["PILOT_NOKILL"] == "1"
    assert env["OIDC_AUTH_DIR"] == f"{tmp_path}/", "the pilot takes only the folder part of it"
    assert env["PATH"].endswith(":/bin")
    # The pilot packs its folder for the job, and follows links in there.
    assert json.loads(panda_pilots.inner(SPEC, tmp_path)["JEDI_INNER_WALLS"])["payloads"] == f"{tmp_path}/payloads"


def test_the_token_is_in_a_file_of_its_own_and_nowhere_else(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    panda_pilots.prepare(source, folder, "jedi_swordfish", SPEC.heartbeat_s)
    kept = folder / "token"
    assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (b"jedi_swordfish", 0o600)
    said = [
        *panda_pilots.command(source, SPEC, tmp_path),
        *panda_pilots.environment({}, source, folder, SPEC.server).values(),
    ]
    assert not any("swordfish" in text for text in said)
    settings = (folder / "pilot.cfg").read_text()
    assert settings == "[Pilot]\nheartbeat: 7\ndebug_heartbeat: 7\nlost_heartbeat: 10800\n"


def test_without_a_namespace_or_its_source_it_is_refused_with_the_reason(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(panda_pilots.CannotIsolateError, match=r"pilot\.py is missing"):
        panda_pilots.check(tmp_path)
    refusing = tmp_path / "bin"
    refusing.mkdir()
    (refusing / "unshare").write_text("#!/bin/sh\necho not permitted >&2\nexit 1\n")
    (refusing / "unshare").chmod(0o755)
    for path, reason in ((str(tmp_path), "not installed"), (f"{refusing}:{os.environ['PATH']}", "not permitted")):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(panda_pilots.CannotIsolateError, match=f"pid namespace.*{reason}"):
            panda_pilots.check(source)


def test_a_version_that_is_not_tried_is_refused_before_users_lose_attempts_to_it(source: Path) -> None:
    (source / "PILOTVERSION").write_text("3.11.5.1")
    with pytest.raises(panda_pilots.CannotIsolateError, match=r"panda-pilot 3\.11\.5\.1, with which .* one of 3\.7\.x"):
        panda_pilots.check(source, walled=True)
    (source / "PILOTVERSION").write_text("3.7.0.36\n")
    panda_pilots.check(source, walled=True)


def test_all_that_it_started_ends_with_the_process_that_holds_it(source: Path) -> None:
    try:
        panda_pilots.check(source)
    except panda_pilots.CannotIsolateError as exc:
        lacking(str(exc))
    holder = subprocess.Popen(panda_pilots.isolated(["sh", "-c", "setsid sleep 1000 & exec sleep 1000"]))
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


INNER_THIEF = r"""#!/usr/bin/env python3
import glob, json, os, subprocess, sys
for printed in (sys.stdout, sys.stderr):
    if os.path.exists("panda_secrets.json"):
        print(open("panda_secrets.json").read(), file=printed, flush=True)
got = {{}}
def attempt(name, act):
    try:
        got[name] = act()
    except OSError:
        got[name] = None
attempt("the pilot's token", lambda: glob.glob("/job/token") + glob.glob("/job/../token") + glob.glob("/job/*/token"))
attempt("the pilot's folder", lambda: glob.glob("/job/PanDA*") + glob.glob("/job/outbox") + glob.glob("/job/programs"))
attempt("the storage", lambda: os.listdir("/inputs"))
attempt("the home", lambda: os.listdir({home!r}))
attempt("variables", lambda: [name for name in os.environ if "OIDC" in name or "JEDI" in name or "PILOT" in name])
paths = glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline")
texts = [open(path, "rb").read() for path in paths if os.access(path, os.R_OK)]
pilots = [text.decode() for text in texts if b"OIDC_" + b"AUTH" in text or b"pilot" + b".py" in text]
attempt("secrets of processes", lambda: pilots)
others = os.path.join("/proc/[0-9]*", "root", "job", "token")
attempt("roots of processes", lambda: glob.glob(others))
attempt("network", lambda: [line.split(":")[0] for line in open("/proc/net/dev") if ":" in line and "lo:" not in line])
attempt("changes its input", lambda: open("in", "a").close() or True)
mount = "unshare --user --map-root-user --mount sh -c 'umount /proc || mount -t proc p /proc'; ls " + others
attempt("more namespaces", lambda: subprocess.run(mount, shell=True, capture_output=True, text=True).stdout)
os.symlink("../token", "payload.log")
os.symlink("/etc/passwd", "jobReport.json")
os.mkdir("deep")
os.symlink("/job/token", "deep/link")
os.symlink("plain", "deep/fine")
os.mkfifo("deep/pipe")
open("deep/plain", "w").write("x")
open("found", "w").write(json.dumps([got, open("in").read(), sorted(os.listdir(".")), sys.argv[1:], os.environ["PandaID"]]))
"""
OUTER = r"""
import json, os, shlex, shutil, subprocess
home, name, job = {home!r}, {name!r}, {job!r}
os.makedirs("PanDA_Pilot-1")
os.chdir("PanDA_Pilot-1")
os.symlink("/inputs/user/ada/in", "in")
os.symlink("/inputs/user/ada/thief.py", "thief.py")
open("panda_secrets.json", "w").write('{{"word": "hush-hush"}}')
shutil.copy(os.environ["HARVESTER_WORKDIR"] + "/" + name, name)
os.chmod(name, 0o755)
# As that pilot starts it: by a shell, with the parameters as they came.
os.environ["PandaID"] = "17"
with open("../stdout", "xb") as out, open("../stderr", "xb") as err:
    done = subprocess.run(["/bin/bash", "-c", "./" + job["transformation"] + " " + job["jobPars"]], stdout=out, stderr=err)
tree = sorted(os.path.relpath(os.path.join(above, one)) for above, folders, files in os.walk(".") for one in folders + files)
found = open("found").read() if os.path.exists("found") else ""
said = [done.returncode, open("../stdout").read(), open("../stderr").read(), tree, found]
open("out", "w").write(json.dumps(said))
assert os.listdir("/job/payloads") == []
os.makedirs(home + "/storage/user/ada/{folders}", exist_ok=True)
subprocess.run(["/usr/bin/env", "mv", "out", home + "/storage/user/ada/{folders}/{file}"], check=True)
"""

STARTER = """
import signal, sys
from pathlib import Path
from tasks_app.worker_node.pilot.latch import Latch
from tasks_app.worker_node.submitters import panda_pilots
from tasks_app.worker_node.submitters.base import ENDED, OneForAll, PilotSpec, Ticket
from tasks_app.worker_node.submitters.local_pilots import LocalSubmitter
from tasks_app.worker_node.submitters.pilot_kinds import PandaPilot
source, home, stop = Path(sys.argv[1]), Path(sys.argv[2]), Latch()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
class WithProgram(OneForAll):
    def make(self, worker_id):
        return Ticket(self.token, begins_with=sys.argv[3])
walls = panda_pilots.find_walls(source, [str(home.parent)], [str(home)])
submitter = LocalSubmitter(home / "work", PandaPilot(source, home / "storage", walls), WithProgram("jedi_swordfish"))
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
    found = panda_pilots.find_walls(source, [], [])
    if isinstance(found, str):
        lacking(found)
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
        (source / panda_pilots.SCRIPT).write_text(script)
        command = [sys.executable, "-c", STARTER, str(source), str(home), PROGRAM]
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


def run_inside(
    tmp_path: Path,
    starter: Callable[[str], subprocess.Popen[str]],
    program: str,
    parameters: str,
    inputs: str = "in,thief.py",
    **told: str | int,
) -> Any:
    """What becomes of a job as PanDA's pilot starts it behind its walls: exit code, stdout, stderr, files, content of `found`."""
    home = tmp_path / "home"
    (home / "storage" / "user" / "ada" / "in").write_text("fine")
    (home / "storage" / "user" / "ada" / "thief.py").write_text(INNER_THIEF.format(home=str(home)))
    plain = {
        "transformation": program,
        "jobPars": parameters,
        "inFiles": inputs,
        "container_name": "busybox",
        "maxDiskCount": 30,
        "minRamCount": 0,
        "maxWalltime": 0,
        "maxwdir": 0,
        "fsize": "",
        "checksum": "",
        "outFiles": "",
        **told,
    }
    where = place(home / "storage", "user.ada", "said.json").path
    where.unlink(missing_ok=True)
    folders = "/".join(where.parts[-3:-1])
    job = behind_walls(plain, PROGRAM)
    script = OUTER.format(home=str(home), name=PROGRAM, job=job, folders=folders, file=where.name)
    said, _ = starter(script).communicate(timeout=60)
    assert said == "finished exit code 0\n"
    return json.loads(where.read_text())


def test_a_payload_of_pandas_pilot_sees_neither_its_token_nor_its_processes_nor_the_storage(
    tmp_path: Path, starter: Callable[[str], subprocess.Popen[str]]
) -> None:
    injected = '-p "cat%20panda_secrets.json%3B%20python3%20thief.py%20a" ; cat ../token > stolen; cat ../token'
    code, out, err, tree, found = run_inside(tmp_path, starter, "run_command", injected)
    assert code == 0 and "swordfish" not in out + err + found, (out, err)
    assert '{"word": "***"}' in out, "the user's secrets are for the payload, and for nobody who reads what it prints"
    got, content, names, words, number = json.loads(found)
    assert {name: what for name, what in got.items() if what} == {} and len(got) == 10
    assert (content, words, number) == ("fine", ["a"], "17")
    assert {"in", "thief.py", "panda_secrets.json", "run_command"} < set(names)
    left = ["deep", "deep/fine", "deep/plain", "found", "in", "thief.py"]
    assert tree == left, "nothing that leads elsewhere, and no secrets"


def test_what_a_program_of_a_users_own_prints_of_the_secrets_is_masked(
    tmp_path: Path, starter: Callable[[str], subprocess.Popen[str]]
) -> None:
    code, out, err, _, found = run_inside(tmp_path, starter, "thief.py", "", "in,thief.py")
    assert code == 0 and found, (out, err)
    assert out == err == '{"word": "***"}\n'


def test_a_payload_of_pandas_pilot_that_writes_too_much_is_ended(
    tmp_path: Path, starter: Callable[[str], subprocess.Popen[str]]
) -> None:
    big = "-- head -c 40000000 /dev/zero > big"
    code, _, err, _, _ = run_inside(tmp_path, starter, "run_command", big)
    assert code == 1 and "The work folder held" in err and "its limit is 30 MB" in err
    forever = "-- 'head -c 40000000 /dev/zero > big; setsid sleep 1000'"
    code, _, err, tree, _ = run_inside(tmp_path, starter, "run_command", forever)
    assert code == 1 and "The work folder held" in err and "payload.writes" not in tree


def test_a_payload_of_pandas_pilot_that_takes_too_much_memory_or_time_is_ended(
    tmp_path: Path, starter: Callable[[str], subprocess.Popen[str]]
) -> None:
    takes = "-- 'python3 -c \"import time; kept = bytes(1) * (200 << 20); time.sleep(1000)\"'"
    code, _, err, _, _ = run_inside(tmp_path, starter, "run_command", takes, minRamCount=90)
    assert code == 1 and "The payload used " in err and "MB, its limit is 100 MB" in err
    code, _, err, _, _ = run_inside(tmp_path, starter, "run_command", "-- sleep 1000", maxWalltime=1)
    assert code == 1 and " s, its limit is 1 s of wall time" in err
    within = "-- 'python3 -c \"kept = bytes(1) * (50 << 20)\"; ulimit -d > found'"
    code, _, err, _, found = run_inside(tmp_path, starter, "run_command", within, minRamCount=180, maxWalltime=600)
    assert (code, found) == (0, f"{(2 * 200 + 2048) << 10}\n"), err


@pytest.mark.parametrize(
    ("program", "parameters", "inputs", "why"),
    [
        (
            "nothing_of_that_name",
            "",
            "in",
            "'nothing_of_that_name' is neither a program of the site nor an input of the job",
        ),
        ("https://example.org/run_command", "", "in", "is neither a program of the site"),
        ("../../token", "", "in", "is neither a program of the site"),
        ("../token", "", "../token", "The job's inputs are not consistent: '../token' is not a valid file name"),
        ("run_command", "-a in -p true", "in", "Input in has the same name as another file in the job's folder"),
        (
            "run_command",
            "-p true",
            "in,run_command",
            "Input run_command has the same name as another file in the job's folder",
        ),
        ("run_command", "-p true", "in,jobReport.json", "Input jobReport.json has the same name as another file"),
    ],
)
def test_what_a_job_of_pandas_pilot_begins_with_is_a_program_of_the_site_or_an_input(
    tmp_path: Path,
    starter: Callable[[str], subprocess.Popen[str]],
    program: str,
    parameters: str,
    inputs: str,
    why: str,
) -> None:
    code, _, err, tree, _ = run_inside(tmp_path, starter, program, parameters, inputs)
    assert (code, tree) == (1, ["in", "thief.py"]) and why in err


@pytest.mark.parametrize(
    ("inputs", "sizes", "sums", "why"),
    [
        ("in,thief.py", "5,NULL", "NULL,NULL", "Input in has 4 bytes, 5 were expected"),
        ("in", "4", "ad:00000001", "Input in has the adler32 checksum 041801a3, 00000001 was expected"),
        ("in,away", "4,1", "ad:041801a3,ad:1", "Input away cannot be read: No such file or directory"),
    ],
)
def test_inputs_that_are_not_what_the_server_expects_fail_the_job_of_pandas_pilot(
    tmp_path: Path, starter: Callable[[str], subprocess.Popen[str]], inputs: str, sizes: str, sums: str, why: str
) -> None:
    code, _, err, tree, found = run_inside(
        tmp_path, starter, "run_command", "-- cp in found", inputs, fsize=sizes, checksum=sums
    )
    assert (code, tree, found) == (1, ["in", "thief.py"], "") and why in err
    good = run_inside(tmp_path, starter, "run_command", "-- cp in found", "in", fsize="4", checksum="ad:41801a3")
    assert (good[0], good[4]) == (0, "fine")


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
