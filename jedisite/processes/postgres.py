"""The embedded PostgreSQL: one server for one JEDI_HOME, started by whoever needs it first. Imports no Django.

The server is a child in the foreground of the process that started it and is shut down when that process ends,
even when it is killed. Other processes of the same home join it; when the one who started it has gone, `start`
takes over and keeps the address if it can. What is needed for that stands in `<home>/postgres/`:

    state.json   where the data is, password, port and pid; readable by its owner only
    start.lock   held by one process while it decides who starts the server
    alive.lock   held by the server's processes as long as one of them lives
    server.log   what the server says
    data/        the database; in /var/lib/jedisite when root starts the server and its user cannot enter the home
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import math
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import psycopg

from jedisite.processes.children import die_with_parent, open_log
from jedisite.processes.postgres_binaries import (
    CACHE,
    Account,
    PostgresError,
    binaries_for,
    find_binaries,
    server_account,
)
from jedisite.processes.postgres_data import (
    DATA_ELSEWHERE,
    LOG_TAIL_LINES,
    USER,
    check_version,
    clean_env,
    make_data,
    place_of_data,
)
from jedisite.processes.postgres_roles import ROLE, make_database, make_role, take_over
from jedisite.processes.postgres_state import POLL_S, Patient, State, StateFolder

__all__ = ["EmbeddedServer", "PostgresError", "current", "ensure", "find_binaries"]

HOST = "127.0.0.1"
DATABASE = "jedisite"
START_LIMIT_S = 300.0  # repairing after a crash reads up to max_wal_size
STOP_LIMIT_S = 30.0
PATIENCE_S = 5.0
PORT_TRIES = 5

SETTINGS: dict[str, str] = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    # Parallel queries would else take it from /dev/shm, which has only 64 MB in many containers.
    "min_dynamic_shared_memory": "64MB",
    # Nobody copies from an embedded server, and COPY into a new table then writes no log.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    # After a crash the site waits until the log since the last checkpoint is read again: 2.3 GB took 120 s on a busy machine.
    # Of 1 GB, the next checkpoint begins after half and ends before the other half is written.
    "max_wal_size": "1GB",
    "checkpoint_timeout": "5min",
    "checkpoint_completion_target": "0.9",
    "fsync": "on",
    "synchronous_commit": "on",
    "jit": "off",
    "random_page_cost": "1.1",
    "idle_in_transaction_session_timeout": "60s",
    # The tables of files and jobs change all the time: clean them early, a little at a time.
    "autovacuum_naptime": "15s",
    "autovacuum_vacuum_scale_factor": "0.05",
    "autovacuum_analyze_scale_factor": "0.02",
    "autovacuum_vacuum_cost_limit": "2000",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] %a ",
    "cluster_name": DATABASE,
}


def _say(text: str) -> None:
    sys.stderr.write(f"postgres: {text}\n")


class EmbeddedServer:
    """The PostgreSQL server of one home.

    `settings` go over our own (see SETTINGS), `binaries` over `find_binaries()`. `say` gets sentences for people.
    `data_elsewhere` and `cache` are the folders for data and programs that the server's user could not reach
    otherwise; only root ever uses them.
    """

    def __init__(
        self,
        home: Path,
        *,
        settings: Mapping[str, str] | None = None,
        binaries: Path | None = None,
        data_elsewhere: Path = DATA_ELSEWHERE,
        cache: Path = CACHE,
        say: Callable[[str], None] = _say,
    ) -> None:
        self.folder = StateFolder(home)
        self._settings = {**SETTINGS, **(settings or {})}
        self._binaries = binaries
        self._data_elsewhere = data_elsewhere
        self._cache = cache
        self._say = say
        self._state: State | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._starter = 0

    @property
    def url(self) -> str:
        """The address for DATABASE_URL; it holds the password. Raises PostgresError before `start`."""
        return self._url(DATABASE)

    @property
    def is_owner(self) -> bool:
        """Whether this process started the server, so that it ends with this process."""
        return self._process is not None and self._starter == os.getpid()

    def start(self, patient: Patient | None = None, *, same_port: bool = False) -> None:
        """Start the server, or join the one that runs; on return it takes connections at `url`.

        `patient` is asked again and again whether to wait on; without it the limit is five minutes. With `same_port`
        the server gets the port that it had before or is not started.
        Call it from the main thread: the server ends with the thread that started it (RuntimeError elsewhere).
        Raises PostgresError, with the end of the server's log where that helps.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("start the embedded PostgreSQL from the main thread: it ends with the thread that did")
        patient = patient or _patient_until(time.monotonic() + START_LIMIT_S)
        try:
            account = server_account()
            self.folder.make(account)
            with self.folder.one_at_a_time(patient):
                self._state = self.folder.load()
                alive = self._join_or_take_over(patient)
                if alive is not None:
                    with alive:
                        self._start(account, alive, patient, same_port)
        except OSError as exc:
            raise PostgresError(f"The embedded PostgreSQL in {self.folder.path} cannot be started: {exc}") from exc

    def stop(self, limit_s: float = STOP_LIMIT_S) -> None:
        """Shut the server down if this process started it; otherwise do nothing."""
        process = self._process
        if process is None or not self.is_owner:
            return
        self._process = None
        for how, wait_s in ((signal.SIGINT, limit_s), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
            process.send_signal(how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(wait_s)
                return

    def is_alive(self) -> bool:
        """Whether the server runs, whoever started it."""
        if self._process is not None and self._process.poll() is not None:
            self._process = None
        lock = self.folder.take_alive_lock()
        if lock is None:
            return True
        lock.close()
        return False

    def _url(self, database: str, *, superuser: bool = False) -> str:
        if self._state is None or not self._state.port:
            raise PostgresError("The embedded PostgreSQL has no address before it was started.")
        user, password = ROLE, self._state.site_password
        if (
            superuser or not password
        ):  # the role is made when a server is started; ours may run since before there was one
            user, password = USER, self._state.password
        return f"postgresql://{user}:{password}@{HOST}:{self._state.port}/{database}"

    def _keep(self, state: State) -> State:
        self.folder.save(state)
        self._state = state
        return state

    def _join_or_take_over(self, patient: Patient) -> BinaryIO | None:
        """None when a server runs and answers; else, once no process of one is left, the lock of a living server."""
        patience_ends = time.monotonic() + PATIENCE_S
        while (alive := self.folder.take_alive_lock()) is None:
            if self._state and self._state.port and self._answers():
                return None
            if not patient():
                pid = self._state.pid if self._state else "unknown"
                raise PostgresError(
                    f"A server of {self.folder.path} (pid {pid}) neither answers nor stops.\n{self._log_tail(0)}"
                )
            if time.monotonic() > patience_ends:
                patience_ends = math.inf
                self._say(f"a server of {self.folder.path} neither answers nor stops yet; see {self.folder.log}")
            time.sleep(POLL_S)
        return alive

    def _start(self, account: Account, alive: BinaryIO, patient: Patient, same_port: bool) -> None:
        found = self._binaries or find_binaries()
        binaries = binaries_for(found, account, self._cache)
        state = self._state or self._new_state(account)
        data = Path(state.data)
        if not data.exists():
            make_data(state, self.folder, binaries, account, sync=self._settings["fsync"] != "off")
        check_version(data, binaries)
        # No process of a server is left (we hold its lock), so this names a pid that may be anybody's by now.
        (data / "postmaster.pid").unlink(missing_ok=True)
        if self._process is not None:
            self._process.wait()  # it lets go of its lock a moment before it has ended
            self._process = None
        if same_port and state.port and not _is_free(state.port):
            raise PostgresError(f"Port {state.port}, the database server's, is in use by another program.")
        self._launch(state, binaries, account, alive, patient)
        try:
            self._make_database()
        except psycopg.Error as exc:
            self.stop()
            raise PostgresError(f"The database {DATABASE} cannot be created: {exc}") from exc

    def _new_state(self, account: Account) -> State:
        data = place_of_data(self.folder, account, self._data_elsewhere, self._say)
        return self._keep(State(data=str(data), password=secrets.token_urlsafe(24)))

    def _launch(self, state: State, binaries: Path, account: Account, alive: BinaryIO, patient: Patient) -> None:
        for _ in range(PORT_TRIES):
            port = state.port if state.port and _is_free(state.port) else _free_port()
            with open_log(self.folder.log) as log:
                start_of_log = log.tell()
                command = [str(binaries / "postgres"), "-D", state.data, "-p", str(port)]
                command += [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
                process = subprocess.Popen(
                    command,
                    cwd="/",
                    env=clean_env(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(alive.fileno(),),
                    # Its own session: Ctrl-C in a terminal is for us, and the server must outlive our clean-up.
                    start_new_session=True,
                    preexec_fn=die_with_parent(signal.SIGINT),
                    user=account.uid,
                    group=account.gid,
                    extra_groups=account.extra_groups,
                )
            self._process, self._starter = process, os.getpid()
            state = self._keep(dataclasses.replace(state, port=port, pid=process.pid))
            if self._wait_until_ready(process, patient):
                return
            self.stop()
            if _is_free(port):  # otherwise somebody else took it in between: try another
                break
        raise PostgresError(f"PostgreSQL did not start; {self.folder.log} ends with:\n{self._log_tail(start_of_log)}")

    def _wait_until_ready(self, process: subprocess.Popen[bytes], patient: Patient) -> bool:
        """True when the server takes connections, False when it ended or nobody waits any more."""
        patience_ends = time.monotonic() + PATIENCE_S
        while process.poll() is None and patient():
            if self._says_ready() and self._answers():
                return True
            if time.monotonic() > patience_ends:
                patience_ends = math.inf
                self._say(f"the server is still starting, perhaps repairing after a crash; see {self.folder.log}")
            time.sleep(POLL_S)
        return False

    def _says_ready(self) -> bool:
        """Whether the server's own pid file says so; connecting earlier would fill its log with refusals."""
        assert self._state
        try:
            lines = Path(self._state.data, "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready"

    def _answers(self) -> bool:
        """Whether a server takes our password at the address; only ours knows it, so it is ours."""
        try:
            psycopg.connect(self._url("postgres", superuser=True), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _make_database(self) -> None:
        assert self._state
        password = self._state.site_password or secrets.token_urlsafe(24)
        with psycopg.connect(self._url("postgres", superuser=True), autocommit=True) as server:
            make_role(server, password)
            older = make_database(server, DATABASE)
        if older:
            with psycopg.connect(self._url(DATABASE, superuser=True), autocommit=True) as database:
                take_over(database, DATABASE)
        if not self._state.site_password:
            self._keep(dataclasses.replace(self._state, site_password=password))

    def _log_tail(self, start: int) -> str:
        with contextlib.suppress(FileNotFoundError), self.folder.log.open("rb") as log:
            log.seek(start)
            return "\n".join(log.read().decode(errors="replace").splitlines()[-LOG_TAIL_LINES:])
        return "(no log)"


_current: EmbeddedServer | None = None


def current() -> EmbeddedServer | None:
    """The embedded server that `ensure` started or joined in this process."""
    return _current


def ensure(home: Path, *, settings: Mapping[str, str] | None = None) -> EmbeddedServer | None:
    """Make sure that a database server runs for this home: join it or start it, stop a started one at exit.

    Returns None and does nothing when DATABASE_URL names a server already. Raises PostgresError.
    """
    global _current
    if os.environ.get("DATABASE_URL") or os.environ.get("DATABASE_URL_FILE"):
        return None
    server = EmbeddedServer(home, settings=settings)
    server.start()
    atexit.register(server.stop)
    _current = server
    return server


def _patient_until(deadline: float) -> Patient:
    return lambda: time.monotonic() < deadline


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
