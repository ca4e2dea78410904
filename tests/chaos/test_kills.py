"""Any process may be killed at any moment: the whole installation with real processes, kills in the middle, clean books after."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
JOBS = 60
KILLS = 20
TASK = {
    "taskName": "user.chaos.count", "prodSourceLabel": "user", "noInput": True, "nEvents": JOBS, "nEventsPerJob": 1,
    "maxAttempt": 20, "ramCount": 500, "ramUnit": "MB",
    "log": {"type": "template", "param_type": "log", "dataset": "user.chaos.log", "value": "chaos.${SN}.log.tgz"},
    "jobParameters": [
        {"type": "constant", "value": "-- 'echo ${FIRSTEVENT} > ${OUTPUT0}'"},
        {"type": "template", "param_type": "output", "dataset": "user.chaos.out", "value": "chaos.${SN}.txt", "hidden": True},
    ],
}  # fmt: skip


class Site:
    """An installation of its own: `manage.py up` in an empty folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("JEDI_") and k != "DATABASE_URL"} | {
            "JEDI_HOME": str(home), "JEDI_PILOT_HEARTBEAT_S": "1", "JEDI_HEARTBEAT_TIMEOUT_S": "6", "JEDI_SENT_TIMEOUT_S": "6",
        }  # fmt: skip
        self.log = (home / "up.log").open("w")
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--slots", "2"],
            cwd=ROOT,
            env=self.environment,
            stdout=self.log,
            stderr=self.log,
        )

    def said(self) -> str:
        return (self.home / "up.log").read_text()

    @property
    def url(self) -> str:
        return self.said().split("The site is at ")[1].split()[0].rstrip("/")

    @cached_property
    def database(self) -> str:
        """Address of the embedded server, from the environment of the site's own children. It stays the same."""
        for child, _ in self.processes():
            with contextlib.suppress(psutil.Error):
                if url := child.environ().get("DATABASE_URL"):
                    return url
        raise AssertionError("no child of the site knows the database")

    def manage(self, *arguments: str) -> str:
        environment = {**self.environment, "DATABASE_URL": self.database}
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database) as connection:
            return connection.execute(sql).fetchall()  # type: ignore[arg-type]

    def processes(self) -> list[tuple[psutil.Process, str]]:
        """All processes below the one that watches over them, with their names."""
        found = []
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    found.append((child, child.name()))
        return found

    def victims(self) -> list[psutil.Process]:
        """All of them but the database server's."""
        return [process for process, name in self.processes() if name != "postgres"]

    def server(self) -> psutil.Process | None:
        """The database server's main process."""
        return next((process for process, name in self.processes() if name == "postgres"), None)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.log.close()


def wait_for(condition: Callable[[], Any], what: str, limit_s: float = 120) -> Any:
    """What the condition returns once it is true. The database may be away for a moment meanwhile."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        with contextlib.suppress(psycopg.OperationalError, AssertionError, IndexError, OSError):
            if found := condition():
                return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not happen within {limit_s:g} s")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    tmp_path.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    site = Site(home)
    try:
        wait_for(lambda: site.url, "the site's start")
        yield site
    finally:
        site.stop()


def finished(site: Site) -> int:
    return int(site.query("SELECT count(*) FROM jobs WHERE jobstatus = 'finished'")[0][0])


def submit(site: Site) -> None:
    site.manage("shell", "-c", "from django.contrib.auth.models import User; User.objects.create_user('chaos')")
    token = site.manage("token", "chaos").split()[-1]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(
        urllib.request.Request(f"{site.url}/api/v2/tasks/", json.dumps(TASK).encode(), headers), timeout=30
    ).close()


def test_killed_processes_lose_nothing_and_do_nothing_twice(site: Site) -> None:
    submit(site)
    chance = random.Random(20)
    step = max(1, (JOBS - 10) // KILLS)
    for number in range(KILLS):
        goal = min(number * step, JOBS - 10)
        wait_for(lambda goal=goal: finished(site) >= goal, f"job {goal}")  # type: ignore[misc]
        victim = chance.choice(wait_for(site.victims, "a process to kill"))
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
        if number == KILLS // 2:
            kill_database(site)
    ended = "SELECT status FROM jedi_tasks WHERE status IN ('done', 'finished', 'failed')"
    status = wait_for(lambda: site.query(ended), "the end")
    assert status == [("done",)]
    assert_books_are_right(site)


def kill_database(site: Site) -> None:
    """The server dies without a word, as in a power cut; what was answered before is there after."""
    before = wait_for(lambda: finished(site) or None, "a finished job")
    wait_for(site.server, "a database server").kill()
    assert wait_for(lambda: finished(site) >= before, "the database's return") is True


def assert_books_are_right(site: Site) -> None:
    inputs = "FROM jedi_dataset_contents WHERE type = 'pseudo_input' GROUP BY 1 ORDER BY 1"
    events = site.query(f"SELECT firstevent, count(*) {inputs}")
    assert events == [(number, 1) for number in range(1, JOBS + 1)]
    assert site.query(f"SELECT status, count(*) {inputs}") == [("finished", JOBS)]
    outputs = site.query(
        "SELECT f.url FROM catalogue_files f JOIN catalogue_datasets d ON d.id = f.dataset_id WHERE d.name = 'user.chaos.out'"
    )
    contents = sorted(int(Path(url.removeprefix("file://localhost")).read_text()) for (url,) in outputs)
    assert contents == list(range(1, JOBS + 1))
    site.manage("audit")
