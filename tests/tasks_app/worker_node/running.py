"""Real pilots as processes, and what the tests' payloads have in common."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from tests.tasks_app.worker_node.site import LIMIT_S, TOKEN, Site

CHECKOUT = Path(__file__).resolve().parents[3]

# A payload's way to say how far it has come: the tests wait for the call instead of sleeping.
TELL = """#!/usr/bin/env python3
import http.client, os, signal, subprocess, sys
def tell(what):
    connection = http.client.HTTPConnection(sys.argv[1])
    connection.request("GET", f"/told/{what}")
    connection.getresponse().read()
"""


# A payload that never ends, with a child in a session of its own.
ENDLESS = (
    TELL
    + """
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
tell(f"pid/{os.getpid()}/{child.pid}")
signal.pause()
"""
)


def address(site: Site) -> str:
    return site.url.removeprefix("http://")


def environment(site: Site) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("JEDI_", "DATABASE_URL"))}
    return env | {"JEDI_PILOT_TOKEN": TOKEN, "JEDI_SERVER_URL": site.url, "PYTHONPATH": str(CHECKOUT)}


class Output:
    """Lines that a process writes, kept as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._thread.start()

    def wait_for(self, word: str) -> str:
        with self._changed:
            assert self._changed.wait_for(lambda: any(word in line for line in self.lines), LIMIT_S), self.lines
            return next(line for line in self.lines if word in line)

    def join(self) -> None:
        """Wait for the end of it, and show it if the test fails."""
        self._thread.join(LIMIT_S)
        sys.stderr.writelines(self.lines)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr
        with process.stderr:
            for line in process.stderr:
                with self._changed:
                    self.lines.append(line)
                    self._changed.notify_all()


class Pilots:
    def __init__(self, site: Site, work: Path, isolation: str = "none") -> None:
        """Without walls the payloads of the tests can call the test's site."""
        self.site, self.work, self.isolation = site, work, isolation
        self._started: list[tuple[subprocess.Popen[str], Output]] = []

    def start(self, *options: str, heartbeat_s: float = 0.2) -> subprocess.Popen[str]:
        """One pilot. It takes one job and ends, unless told otherwise."""
        command = [sys.executable, "-m", "tasks_app.worker_node.pilot", "--queue", "Q", "--work", str(self.work)]
        command += ["--isolation", self.isolation, "--heartbeat", str(heartbeat_s), *(options or ("--max-jobs", "1"))]
        process = subprocess.Popen(command, env=environment(self.site), cwd=CHECKOUT, stderr=subprocess.PIPE, text=True)
        self._started.append((process, Output(process)))
        return process

    def output(self, process: subprocess.Popen[str]) -> Output:
        return next(output for known, output in self._started if known is process)

    def run(self, *options: str) -> int:
        """Start one and wait for its end. Returns the exit code."""
        return self.start(*options).wait(LIMIT_S)

    def leftovers(self) -> list[str]:
        """What is left in the work folder, apart from the pilots' lock."""
        return sorted(path.name for path in self.work.iterdir() if path.name != ".lock")

    def end(self) -> None:
        for process, output in self._started:
            below = []
            if process.poll() is None:
                below = psutil.Process(process.pid).children(recursive=True)
                process.kill()
                process.wait(LIMIT_S)
            for child in below:
                if child.is_running():
                    child.kill()
            output.join()


def wait_gone(pid: int, limit_s: float = LIMIT_S) -> None:
    """Wait until a process, of whatever parent, is no more (or is a zombie that nobody reaps in this container)."""
    try:
        process = psutil.Process(pid)
        while process.status() != psutil.STATUS_ZOMBIE:
            try:
                process.wait(0.05)
            except psutil.TimeoutExpired:
                limit_s -= 0.05
                assert limit_s > 0, f"process {pid} is still there: {process}"
    except psutil.NoSuchProcess:
        return
