"""What a transform leaves when it has ended, however it ended: no process, no secret, nothing that it unpacked."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from shlex import quote as quoted
from urllib.parse import quote

import psutil
import pytest

from tasks_app.worker_node.pilot.processes import Family
from tasks_app.worker_node.pilot.removing import remove_folder
from tests.tasks_app.running_transforms import TRANSFORMS, Run

SECRETS = "panda_secrets.json"
LINE = "such line"
LIMIT_S = 20.0
DEAF = "trap '' TERM; echo $$ > {}; sleep 600; sleep 600"
STUBBORN = f"setsid sh -c {quoted(DEAF.format('hidden'))} & {DEAF.format('shown')}"
"""A command that does not end when it is asked to, with a process in a session of its own that does not either."""


def started_by(command: str) -> dict[str, tuple[str, ...]]:
    return {
        "run_command": ("-p", quote(command)),
        "athena_command": ("--trf", "-j", quote(command)),
        "preprocess_command": ("-p", quote(command)),
        "build_command": ("-i", "s.tar.gz", "-o", "lib.tgz", "--bexec", quote(command)),
        "merge_command": ("-j", quote(command), "a:b"),
    }


def sandbox(folder: Path) -> None:
    """An archive with a file, a folder, and names as prun's have them."""
    with tarfile.open(folder / "s.tar.gz", "w:gz") as tar:
        for name in ("./one.py", "./deep/er/two.py", "deep/three.py"):
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())


def wait_until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.parametrize("name", started_by(""))
def test_nothing_is_left_of_a_command_that_ignores_sigterm(tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    program.write_text((TRANSFORMS / name).read_text().replace("GRACE_S = 2.0", "GRACE_S = 0.2"))
    program.chmod(0o755)
    sandbox(tmp_path)
    (tmp_path / SECRETS).write_text("{}")
    transform = subprocess.Popen([str(program), *started_by(STUBBORN)[name]], cwd=tmp_path)

    def pids() -> set[int]:
        """What the two have written of themselves, in whatever folder the command runs."""
        told = [path.read_text() for name in ("shown", "hidden") for path in tmp_path.rglob(name)]
        return {int(text) for text in told if text.endswith("\n")}

    wait_until(lambda: len(pids()) == 2, "the command has begun")
    below = psutil.Process(transform.pid).children(recursive=True)
    assert {child.pid for child in below} > pids()
    transform.send_signal(signal.SIGTERM)
    assert transform.wait(LIMIT_S) == 128 + signal.SIGTERM
    _, alive = psutil.wait_procs(below, LIMIT_S)
    for process in alive:
        process.kill()
    assert not alive
    assert not (tmp_path / SECRETS).exists()
    assert not (tmp_path / "build").exists()


PANDA_PILOT_WAITS_S = 3
"""Between SIGTERM and SIGKILL, when PanDA's pilot ends the transform of a job that is to be killed."""


@pytest.mark.parametrize("name", ["run_command", "merge_command"])
def test_the_secrets_are_gone_before_a_stubborn_command_is_and_that_is_in_time(tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    text = (TRANSFORMS / name).read_text()
    grace = re.search(r"^GRACE_S = (.+)$", text, re.MULTILINE)
    assert grace and float(grace[1]) < PANDA_PILOT_WAITS_S
    program.write_text(text.replace(grace[0], "GRACE_S = 600.0"))
    program.chmod(0o755)
    sandbox(tmp_path)
    (tmp_path / SECRETS).write_text("{}")
    transform = subprocess.Popen([str(program), *started_by(STUBBORN)[name]], cwd=tmp_path)
    wait_until(lambda: len(list(tmp_path.rglob("hidden"))) == 1, "the command has begun")
    below = psutil.Process(transform.pid).children(recursive=True)
    transform.send_signal(signal.SIGTERM)
    try:
        wait_until(lambda: not (tmp_path / SECRETS).exists(), "the secrets are gone")
        assert transform.poll() is None
    finally:
        for process in (transform, *below):
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                process.kill()
        transform.wait(LIMIT_S)


SAVES = "trap 'echo asked >> told; sleep 0.3 && echo saved >> told; exit 3' TERM; echo $$ > shown; while :; do sleep 0.01; done"
"""A command that saves its work when it is asked to end, with a program that it starts for that."""


@pytest.mark.parametrize("way", ["the pilot ends all", "its transform is asked"])
@pytest.mark.parametrize("name", ["run_command", "merge_command"])
def test_a_command_is_asked_once_to_end_and_may_save_its_work(tmp_path: Path, name: str, way: str) -> None:
    family = Family()
    argv = [str(TRANSFORMS / name), *started_by(SAVES)[name]]
    transform = subprocess.Popen(argv, cwd=tmp_path, start_new_session=True)
    wait_until(lambda: (tmp_path / "shown").exists(), "the command has begun")
    if way == "the pilot ends all":
        family.end(transform.pid, grace_s=LIMIT_S, asks_its_own=True)
    else:
        transform.send_signal(signal.SIGTERM)
    assert transform.wait(LIMIT_S) == 128 + signal.SIGTERM
    assert (tmp_path / "told").read_text() == "asked\nsaved\n"


def test_what_a_command_leaves_in_the_background_ends_with_it(run: Run, tmp_path: Path) -> None:
    run("run_command", "-p", quote("setsid sleep 600 > /dev/null 2>&1 & echo $! > pid"))
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("-p", quote(f"cat {SECRETS} > read")), 0),
        (("-p", quote("exit 3")), 3),
        (("-p", quote("kill -9 $$")), 137),
        (("-a", "jobO.1.tar.gz", "-p", "true"), 71),
        (("-p", "true", "--rootVer", "6.30"), 73),
        ((), 2),
    ],
)
def test_the_users_secrets_are_gone_however_the_command_ended(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    (tmp_path / SECRETS).write_text("s3cret")
    run("run_command", *arguments, code=code)
    assert not (tmp_path / SECRETS).exists()
    assert "read" not in str(arguments) or (tmp_path / "read").read_text() == "s3cret"


@pytest.mark.parametrize("name", sorted(path.name for path in TRANSFORMS.iterdir()))
def test_no_transform_leaves_the_users_secrets(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / SECRETS).write_text("s3cret")
    run(name, "--no-such-option", code={"athena_command": 73, "merge_events": 65}.get(name, 2))
    assert not (tmp_path / SECRETS).exists()


@pytest.mark.parametrize("ends", ["true", "false"])
def test_what_was_unpacked_is_gone_and_what_was_made_or_brought_is_there(run: Run, tmp_path: Path, ends: str) -> None:
    sandbox(tmp_path)
    (tmp_path / "one.py").write_text("an input of that name")
    kept = tmp_path / "elsewhere"
    kept.mkdir()
    (tmp_path / "s.tar.gz").rename(kept / "jobO.1.tar.gz")
    command = quote(f"touch deep/er/made here && echo out > deep/out && {ends}")
    run(
        "run_command",
        "-a",
        "jobO.1.tar.gz",
        "--sourceURL",
        f"file://{kept}",
        "-o",
        "{'deep/out': 'lfn.1'}",
        "-p",
        command,
        code=int(ends == "false"),
    )
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "here", "jobReport.json", "lfn.1", "one.py"]


@pytest.mark.parametrize("name", ["run_command", "merge_command"])
def test_folders_too_deep_to_be_removed_do_not_keep_what_else_must_go(tmp_path: Path, name: str) -> None:
    dig = f"import os\nfor _ in range(2000): os.mkdir('{SECRETS}'); os.chdir('{SECRETS}')"
    ended = subprocess.run(
        [TRANSFORMS / name, *started_by(f'touch b; python3 -c "{dig}"')[name]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    remove_folder(tmp_path / SECRETS)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_build_leaves_the_library_alone(run: Run, tmp_path: Path) -> None:
    sandbox(tmp_path)
    run("build_command", "-i", "s.tar.gz", "-o", "lib.tgz")
    assert sorted(os.listdir(tmp_path)) == ["jobReport.json", "lib.tgz", "s.tar.gz"]


def test_a_merge_leaves_what_it_made(run: Run, tmp_path: Path) -> None:
    sandbox(tmp_path)
    (tmp_path / "lib.tgz").write_bytes((tmp_path / "s.tar.gz").read_bytes())
    (tmp_path / "s.tar.gz").unlink()
    (tmp_path / "a").write_text("a")
    run("merge_command", "-l", "lib.tgz", "-j", quote("cat %IN > %OUT; test -e one.py"), "a:b")
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "jobReport.json", "lib.tgz"]


SAYS = f"""cat {SECRETS} {SECRETS}; sed 's/.*: "//; s/".*//' {SECRETS} >&2; cp {SECRETS} jobReport.json; rm {SECRETS}"""
"""A command that prints a secret in both ways, and takes the file away."""


@pytest.mark.parametrize("ends", ["well", "failing", "killed"])
@pytest.mark.parametrize("name", started_by(""))
def test_what_pilots_read_of_the_output_holds_no_secrets(tmp_path: Path, name: str, ends: str) -> None:
    """Also with a pilot that does nothing about them."""
    sandbox(tmp_path)
    (tmp_path / SECRETS).write_text('{"word": "hunter2-hunter2"}')
    more = {"well": "echo '{}' > results.json", "failing": "exit 3", "killed": "touch begun; sleep 600"}[ends]
    command = f"cd {quoted(str(tmp_path))}; {SAYS}; {more}"
    out, err = tmp_path / "payload.stdout", tmp_path / "payload.stderr"
    with out.open("xb") as stdout, err.open("xb") as stderr:
        transform = subprocess.Popen(
            [str(TRANSFORMS / name), *started_by(command)[name]], cwd=tmp_path, stdout=stdout, stderr=stderr
        )
        if ends == "killed":
            wait_until((tmp_path / "begun").exists, "the command has begun")
            transform.send_signal(signal.SIGTERM)
        transform.wait(LIMIT_S)
        os.write(stdout.fileno(), b"said afterwards")
    assert '{"word": "***"}{"word": "***"}' in out.read_text() and out.read_text().endswith("said afterwards")
    assert err.read_text().startswith("***") and "\0" not in out.read_text()
    assert "hunter2" not in out.read_text() + err.read_text() + (tmp_path / "jobReport.json").read_text()


def test_transforms_that_run_commands_share_their_lines() -> None:
    shared = {(TRANSFORMS / name).read_text().split(LINE)[1] for name in ("run_command", "merge_command")}
    assert len(shared) == 1 and "def end_all" in shared.pop()


def test_merged_logs_hold_no_secrets_of_older_ones(run: Run, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.log.tgz", "w:gz") as tar:
        for name in ("tarball/panda_secrets.json", "tarball/payload.stdout"):
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    run("merge_command", "a.log.tgz:all.log.tgz")
    with tarfile.open(tmp_path / "all.log.tgz") as tar:
        assert tar.getnames() == ["a.log/tarball/payload.stdout"]


@pytest.mark.parametrize(
    ("command", "last"),
    [
        ("echo why >&2; exit 3", "why"),
        ("exit 3", "The command ended with 3."),
        ("echo first; echo no beam.; echo; exit 4", "The command ended with 4; it said last: no beam."),
        ("seq 2000 | tr '\\n' ' '; exit 4", "The command ended with 4."),
        ("echo why >&2; kill -9 $$", "The command was ended by signal 9 (Killed)."),
    ],
)
def test_the_last_line_of_stderr_is_the_commands_own_when_it_says_why(tmp_path: Path, command: str, last: str) -> None:
    with (tmp_path / "payload.stderr").open("wb") as err, (tmp_path / "payload.stdout").open("wb") as out:
        subprocess.run([TRANSFORMS / "run_command", "--", command], cwd=tmp_path, stdout=out, stderr=err, check=False)
    assert (tmp_path / "payload.stderr").read_text().splitlines()[-1] == last
    assert "The command " in (tmp_path / "payload.stderr").read_text() + (tmp_path / "payload.stdout").read_text()
