"""A whole installation with real processes, for tests that look at it from outside."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from jedisite.processes.postgres_binaries import server_account
from jedisite.processes.postgres_data import DATA_ELSEWHERE, place_of_data
from jedisite.processes.postgres_state import StateFolder
from tasks_app.worker_node.pilot import walls
from tests.database import MIGRATED_HOME
from tests.lacking import lacking

ROOT = Path(__file__).resolve().parent.parent


def _give_database(home: Path) -> None:
    """Put a copy of a migrated database into a home that has none: made once in a test run, by whoever needs it first."""
    migrated = StateFolder(Path(os.environ[MIGRATED_HOME]))
    migrated.home.mkdir(exist_ok=True)
    done = migrated.home / "done"
    with (migrated.home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            environment = {**os.environ, "DATABASE_URL": "", "JEDI_HOME": str(migrated.home)}
            subprocess.run(
                [sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, env=environment, check=True
            )
            done.touch()
    copy_server(migrated, home)


def copy_server(source: StateFolder, home: Path, elsewhere: Path = DATA_ELSEWHERE) -> None:
    """Put the data of an embedded server that does not run into a home that has none."""
    state = source.load()
    assert state is not None
    folder, account = StateFolder(home), server_account()
    folder.make(account)
    data = place_of_data(folder, account, elsewhere, print)
    subprocess.run(["cp", "--archive", "--reflink=auto", state.data, str(data)], check=True)
    folder.save(dataclasses.replace(state, data=str(data), port=0, pid=0))


def remove_data_of(homes: Path, elsewhere: Path = DATA_ELSEWHERE) -> None:
    """Remove the databases that embedded servers of homes below a folder keep elsewhere, since root started them.

    Each home's `state.json` says which is its own; those of other homes stay.
    """
    # `find`, since tests leave folders whose paths are too long for Python's own walk.
    found = subprocess.run(
        ["find", homes, "-path", "*/postgres/state.json", "-print0"], capture_output=True, check=False
    )
    for state in map(Path, filter(None, os.fsdecode(found.stdout).split("\0"))):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # some tests damage the file
            data = Path(json.loads(state.read_text())["data"])
            for own in (data, *elsewhere.glob(f"{data.name}.*")):
                if own.parent == elsewhere:
                    shutil.rmtree(own, ignore_errors=True)


class Site:
    """An installation of its own: `manage.py up` in a folder that is empty but for a database with empty tables."""

    def __init__(self, home: Path, *options: str, **settings: str) -> None:
        """`options` of `manage.py up`; `settings` are further environment variables."""
        self.home = home
        self.environment = {
            k: v for k, v in os.environ.items() if not k.startswith("JEDI_") and k != "DATABASE_URL"
        } | {
            "JEDI_HOME": str(home),
            **settings,
        }
        _give_database(home)
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self.log = (home / "up.log").open("w")
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", *options],
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
        """Address of the embedded server, as the site's own processes read it. It stays the same."""
        return (self.home / "run" / "DATABASE_URL").read_text()

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

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Asked ten times a second while a test waits: the connection is kept, since a new one costs far more than the answer."""
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.database, autocommit=True)
        return self._connection.execute(sql, values or None).fetchall()  # type: ignore[arg-type]

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
        if self._connection is not None:
            self._connection.close()
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


@contextlib.contextmanager
def walled_site(folders: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of one slot whose payloads run behind walls, once it has started."""
    if isinstance(found := walls.find(), str):
        lacking(found)
    home = folders.mktemp("site")
    home.parent.chmod(0o755)
    home.chmod(0o755)
    site = Site(home, "--slots", "1")
    try:
        wait_for(lambda: site.url, "the site's start")
        yield site
    finally:
        site.stop()
