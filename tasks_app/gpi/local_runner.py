"""Runs subjobs on this machine, as a process of its own that outlives the script: `python local_runner.py ROUND`.

ROUND is a folder with `round.json`: {"workers": 4, "nice": 0, "folders": [...]}, a folder for each subjob, in order. In each
folder `call.json` says what to run; `state.json` then tells of it, and a file `kill` ends it. The call returns once the runner
lives; while it does, it holds the lock of `ROUND/alive`. One file, standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

LOOK_S = 0.1
GRACE_S = 3.0
"""Between SIGTERM and SIGKILL of what is killed."""


def write_state(folder: Path, **state: Any) -> None:
    part = folder / f".state.{os.getpid()}.{threading.get_ident()}"
    part.write_text(json.dumps(state))
    os.replace(part, folder / "state.json")


def run(folder: Path) -> None:
    """Run one subjob to its end, and write what came of it."""
    call = json.loads((folder / "call.json").read_text())
    if (folder / "kill").exists():
        write_state(folder, status="killed", attempt=call["attempt"])
        return
    work, output = folder / "work", folder / "output"
    with (output / "stdout").open("wb") as out, (output / "stderr").open("wb") as err:
        try:
            process = subprocess.Popen(
                call["words"],
                cwd=work,
                env={**os.environ, **call["env"]},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            said = f"{call['words'][0]} cannot be started: {error.strerror}"
            write_state(folder, status="failed", error=said, attempt=call["attempt"])
            return
        write_state(folder, status="running", attempt=call["attempt"], pid=process.pid)
        killed = watch(process, folder)
    end: dict[str, Any] = {"exit_code": process.returncode, "attempt": call["attempt"]}
    if killed:
        write_state(folder, status="killed", **end)
        return
    if process.returncode:
        write_state(folder, status="failed", error=f"the program ended with {process.returncode}", **end)
        return
    missing = gather(work, output, call["outputs"])
    if missing:
        write_state(folder, status="failed", error=f"the program did not write {missing}", **end)
        return
    write_state(folder, status="completed", **end)


def watch(process: subprocess.Popen[bytes], folder: Path) -> bool:
    """Wait for the end of a process. Returns whether it was killed on request."""
    asked = 0.0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_S)
            return asked > 0
        if asked or (folder / "kill").exists():
            asked = asked or time.monotonic()
            hard = time.monotonic() - asked > GRACE_S
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGTERM)


def gather(work: Path, output: Path, patterns: list[str]) -> str:
    """Move the outputs out of the work folder. Returns the first that is not there, "" when all are."""
    for pattern in patterns:
        if pattern in ("stdout", "stderr"):
            continue
        found = [path for path in sorted(work.glob(pattern)) if path.is_file() and not path.is_symlink()]
        if not found:
            return pattern
        for path in found:
            shutil.move(path, output / path.name)
    return ""


def main(round_folder: Path) -> int:
    """Start the runner, and return when it has its lock."""
    hears, tells = os.pipe()
    if os.fork():
        os.close(tells)
        return 0 if os.read(hears, 1) else 1
    os.setsid()
    with (round_folder / "alive").open("a") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        for number in (0, 1):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        os.dup2(os.open(round_folder / "errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        os.write(tells, b"+")
        os.close(tells)
        work(round_folder)
    return 0


def work(round_folder: Path) -> None:
    given = json.loads((round_folder / "round.json").read_text())
    os.nice(given["nice"])
    with ThreadPoolExecutor(given["workers"]) as pool:
        for done in [pool.submit(run, Path(folder)) for folder in given["folders"]]:
            with contextlib.suppress(Exception):  # the others go on; this one counts as lost
                done.result()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
