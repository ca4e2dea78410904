"""The stored state of a home's embedded server, and the locks against two starts at once. Imports no Django."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from jedisite.processes.children import open_private
from jedisite.processes.postgres_binaries import Account, PostgresError, make_folder, reachable

POLL_S = 0.02
Patient = Callable[[], bool]
"""Whether to wait on; asked between two looks."""


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """The stored state of the server of a home; port 0: it has never run.

    `password` is that of the server's superuser; `site_password` that of the site's own role, "" before that was made.
    """

    data: str
    password: str
    port: int = 0
    pid: int = 0
    site_password: str = ""


class StateFolder:
    """The folder `<home>/postgres` and its files."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.path = self.home / "postgres"
        self.log = self.path / "server.log"
        self._file = self.path / "state.json"

    def make(self, account: Account) -> None:
        """Create what is missing. Raises PostgresError when the folder belongs to somebody else."""
        self.home.mkdir(parents=True, exist_ok=True)
        # The server's user passes through to data/ and can list nothing on the way.
        make_folder(self.path, 0o711 if account.is_other and reachable(self.home, account) else 0o700)
        owner = self.path.stat().st_uid
        if owner != os.geteuid():
            raise PostgresError(
                f"{self.path} belongs to the user with id {owner}, and this process runs as {os.geteuid()}. "
                "Start as that user, or set JEDI_HOME to a folder of your own."
            )

    def load(self) -> State | None:
        """The state last saved, or None. Raises PostgresError when the file is damaged."""
        try:
            return State(**json.loads(self._file.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as exc:
            raise PostgresError(f"{self._file} is damaged: {exc}") from exc

    def save(self, state: State) -> None:
        """Replace the state in one step; only its owner can read it, for it holds the password."""
        fresh = self._file.with_name("state.json.new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(dataclasses.asdict(state), file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._file)

    @contextlib.contextmanager
    def one_at_a_time(self, patient: Patient) -> Iterator[None]:
        """Hold the right to start the server. Raises PostgresError when another keeps it longer than we wait."""
        with open_private(self.path / "start.lock") as lock:
            while not _try_flock(lock):
                if not patient():
                    raise PostgresError(f"Another process holds {lock.name} and has not started the server.")
                time.sleep(POLL_S)
            yield

    def take_alive_lock(self) -> BinaryIO | None:
        """The lock that all processes of a server inherit, or None while one of them lives.

        It says more than a pid does: it cannot be mistaken after a restart of the machine, and it is still held
        while backends outlive a postmaster that was killed.
        """
        lock = open_private(self.path / "alive.lock")
        if _try_flock(lock):
            return lock
        lock.close()
        return None


def _try_flock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
