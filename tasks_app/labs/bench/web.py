"""The site's own web server and other processes, for as long as a benchmark needs them."""

from __future__ import annotations

import contextlib
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from jedisite.identity.callers import issue_token
from jedisite.processes import launch
from jedisite.processes.children import open_log
from jedisite.processes.supervisor import Process
from tasks_app.labs.bench.database import Place

STOP_LIMIT_S = 15.0


@dataclass(frozen=True, slots=True)
class Site:
    """The web server: its port on loopback, and the number of its first process."""

    port: int
    pid: int

    def cpu_s(self) -> float:
        """Seconds of processor that its processes have used. Says the same on a busy machine as on a quiet one."""
        return sum(_cpu_s(pid) for pid in (self.pid, *_children(self.pid)))


@contextlib.contextmanager
def running(place: Place, *names: str) -> Iterator[Site]:
    """Start processes of the site as `manage.py up` does, the web server always; end them all afterwards."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(launch.take_port("127.0.0.1", None))
        options = launch.Options(place.home, listener.getsockname()[1], listener, workers=False)
        wanted = [p for p in launch.processes(options) if p.name == "web" or p.name in names]
        pids = {process.name: stack.enter_context(_started(process)).pid for process in wanted}
        _wait(options.url + launch.ALIVE_PATH)
        yield Site(options.port, pids["web"])


@contextlib.contextmanager
def _started(process: Process) -> Iterator[subprocess.Popen[bytes]]:
    assert process.log
    process.log.parent.mkdir(parents=True, exist_ok=True)
    with open_log(process.log) as log:
        child = subprocess.Popen(
            process.argv,
            env=dict(process.env or {}),
            cwd=process.cwd,
            stdout=log,
            stderr=log,
            pass_fds=process.pass_fds,
        )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _cpu_s(pid: int) -> float:
    """What the kernel's scheduler has given to the threads of a process."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def _children(pid: int) -> list[int]:
    return [int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]


def _wait(url: str, limit_s: float = 60.0) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + limit_s
    while True:
        try:
            with opener.open(url, timeout=5):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def pilot_token() -> str:
    return issue_token("bench", "pilot", lifetime=timedelta(hours=1))
