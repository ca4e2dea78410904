"""The processes of one installation on one machine: which they are, and how they run until Ctrl-C.

Imports no Django.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import errno
import http.client
import os
import select
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jedisite.processes import one_site, postgres
from jedisite.processes.supervisor import GRACE_S, Event, Process, Supervisor, next_delay

BASE_DIR = Path(__file__).resolve().parents[2]
PILOT_TOKEN = "JEDI_PILOT_TOKEN"
SECRETS = {"DATABASE_URL", "JEDI_SECRET_KEY", "JEDI_OLD_SECRET_KEYS", "JEDI_EMAIL_URL", PILOT_TOKEN}
"""Variables that processes get by files: `<name>_FILE` says which. That of pilots none gets: each pilot has its own."""
WEB_WORKER = "jedisite.server.web_worker.Worker"
FIRST_PORT, LAST_PORT, LARGEST_PORT = 8000, 8099, 65535
MOST_WAITING = 2048
"""Connections that may wait for the web server to take them, as many as gunicorn allows."""
ALIVE_PATH = "/api/v1/system/is_alive"
ALIVE_LIMIT_S = 60.0
ALIVE_POLL_S = 0.2
LOG_TAIL_LINES = 15


class LaunchError(Exception):
    """The installation cannot be brought up, or be kept up; the text says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What to run. `listener` holds the port (see `take_port`); `slots` None leaves the number to the local workers."""

    home: Path
    port: int
    listener: socket.socket
    bind: str = "127.0.0.1"
    workers: bool = True
    slots: int | None = None

    @property
    def url(self) -> str:
        """The address of the site as seen from this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.bind, self.bind)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def take_port(bind: str, port: int | None) -> socket.socket:
    """A socket that listens on the port asked for, or on the first free one from 8000; nobody else gets the port meanwhile.

    Connections wait in it while there is no web server yet, or none for a moment.
    Raises LaunchError when the port, or all of them, are taken.
    """
    if port is not None and not 1 <= port <= LARGEST_PORT:
        raise LaunchError(f"{port} is not a port: ports go from 1 to {LARGEST_PORT}.")
    v6 = ":" in bind
    how: dict[str, Any] = {"family": socket.AF_INET6, "dualstack_ipv6": socket.has_dualstack_ipv6()} if v6 else {}
    for candidate in [port] if port else range(FIRST_PORT, LAST_PORT + 1):
        try:
            return socket.create_server((bind, candidate), backlog=MOST_WAITING, **how)
        except OSError as exc:
            if exc.errno != errno.EADDRINUSE:
                raise LaunchError(f"Cannot listen on {bind} port {candidate}: {exc.strerror}.") from exc
    wanted = f"Port {port} is" if port else f"All ports from {FIRST_PORT} to {LAST_PORT} are"
    raise LaunchError(f"{wanted} in use on {bind}; choose another with --port.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that brings up the site."""
    parser.add_argument("--bind", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, help="port of the web server (the first free one from 8000)")
    parser.add_argument("--slots", type=int, help="pilots that run at the same time on this machine")
    parser.add_argument("--no-workers", action="store_true", help="run no pilots on this machine")


def take_checked_port(bind: str, port: int | None, slots: int | None) -> socket.socket:
    """As `take_port`. Raises LaunchError when the port or the slots are no good."""
    if slots is not None and slots < 1:
        raise LaunchError(f"At least one slot is needed, not {slots}; --no-workers runs no pilots.")
    return take_port(bind, port)


def check_arguments(words: list[str]) -> None:
    """Raises LaunchError when the options of a command that brings up the site cannot be fulfilled.

    What cannot be read is left to the command itself to refuse.
    """
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add_arguments(parser)
    try:
        given, _ = parser.parse_known_args(words)
    except argparse.ArgumentError:
        return
    take_checked_port(given.bind, given.port, given.slots).close()


def processes(options: Options) -> list[Process]:
    """The children in the order of their start; the first is the web server, which the others may call."""
    env = {name: value for name, value in os.environ.items() if name.removesuffix("_FILE") not in SECRETS}
    env |= {"JEDI_HOME": str(options.home), "JEDI_SERVER_URL": options.url} | _secrets_in_files(options.home)

    def child(name: str, *argv: str, pass_fds: tuple[int, ...] = ()) -> Process:
        log = options.home / "log" / f"{name}.log"
        return Process(name, (sys.executable, *argv), env, log, BASE_DIR, pass_fds=pass_fds)

    manage = str(BASE_DIR / "manage.py")
    children = [
        child("web", "-m", "gunicorn", *_gunicorn_arguments(options), pass_fds=(options.listener.fileno(),)),
        child("qcluster", manage, "cluster"),
        child("ticker", manage, "ticker"),
    ]
    if options.workers:
        slots = [] if options.slots is None else ["--slots", str(options.slots)]
        children.append(child("local_workers", manage, "local_workers", *slots))
    return children


def keep_secret(home: Path, name: str, value: str) -> dict[str, str]:
    """Write a secret to a file that only its owner can read; returns the variable that names it.

    The environment of a process can be read, as long as it lives, by all that its user runs.
    """
    path = home / "run" / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(value)
    fresh.replace(path)
    return {f"{name}_FILE": str(path)}


def _secrets_in_files(home: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in sorted(SECRETS - {PILOT_TOKEN}):
        if path := os.environ.get(f"{name}_FILE"):
            found[f"{name}_FILE"] = path
        elif value := os.environ.get(name):
            found |= keep_secret(home, name, value)
    return found


def _gunicorn_arguments(options: Options) -> list[str]:
    arguments = ["--bind", f"fd://{options.listener.fileno()}", "--worker-class", WEB_WORKER]
    arguments += ["--workers", "2", "--threads", "4", "--graceful-timeout", "10", "--no-control-socket"]
    arguments.append("--preload")  # the site is loaded once; a worker that takes the place of another answers at once
    return [*arguments, "jedisite.wsgi:application"]


def run(
    options: Options,
    *,
    say: Callable[[Event], None],
    ready: Callable[[], None] = lambda: None,
    each_second: Callable[[], None] = lambda: None,
) -> None:
    """Run all processes until SIGINT or SIGTERM, then end them all.

    `ready` is called once the web server answers and all have been started, `each_second` about every second after while
    there is a database.
    Raises LaunchError, with everything ended, when the web server does not come up or the database gets another address.
    """
    web, *others = processes(options)

    def look() -> None:
        if keeper.look():
            each_second()

    # At the end the port is let go first, so that callers are refused as soon as the web server takes no more of them.
    with Supervisor(say) as supervisor, options.listener:
        keeper = DatabaseKeeper(supervisor, say)
        supervisor.start(web)
        wait_until_alive(options.url, web, supervisor)
        if not supervisor.stop_requested:
            for process in others:
                supervisor.start(process)
            one_site.note(url=options.url)
            ready()
            supervisor.run(look)
        one_site.note(ends=True)
        say(Event("ending", "site", f"this takes up to {GRACE_S:.0f} s; Ctrl-C again ends it at once"))


def wait_until_alive(url: str, web: Process, supervisor: Supervisor) -> None:
    """Return when the site answers, or a stop was asked for. Raises LaunchError with the end of the log."""
    deadline = time.monotonic() + ALIVE_LIMIT_S
    while not supervisor.stop_requested:
        answer = _ask(url, supervisor, deadline)
        if answer == "200":
            return
        if time.monotonic() > deadline:
            tail = "\n".join(web.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]) if web.log else ""
            raise LaunchError(f"{url}{ALIVE_PATH} answered {answer} instead of 200. {web.log} ends with:\n{tail}")
        supervisor.step(ALIVE_POLL_S)


def _ask(url: str, supervisor: Supervisor, deadline: float) -> str:
    """The status of the answer, or why there is none. The children are looked after while it is waited for.

    Asked before the web server runs, the question waits in our socket, also for one that is started again.
    """
    address = urlsplit(url)
    with contextlib.closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=5)) as connection:
        try:
            connection.request("GET", ALIVE_PATH)
            while not select.select([connection.sock], [], [], 0)[0]:
                if supervisor.stop_requested or time.monotonic() > deadline:
                    return "nothing"
                supervisor.step(ALIVE_POLL_S)
            return str(connection.getresponse().status)
        except (OSError, http.client.HTTPException) as exc:
            return str(exc)


class DatabaseKeeper:
    """Starts the embedded server again whenever it is gone: killed, or ended with another command that had started it.

    A start that fails is tried again after a growing pause, for as long as the supervisor runs. Meanwhile the other
    children are looked after.
    """

    def __init__(self, supervisor: Supervisor, say: Callable[[Event], None]) -> None:
        self._supervisor = supervisor
        self._say = say
        self._delay_s = 0.0
        self._due = 0.0
        self._started = time.monotonic()

    def look(self) -> bool:
        """Whether the server runs; to be called about once a second. Raises LaunchError when its address has changed."""
        server = postgres.current()
        if server is None:
            return True
        if time.monotonic() < self._due:
            return False
        try:
            if server.is_alive():
                return True
            address = server.url
            self._delay_s = next_delay(self._delay_s, time.monotonic() - self._started)
            server.start(self._wait_on, same_port=True)
        except (postgres.PostgresError, OSError) as exc:
            if not self._supervisor.stop_requested:
                self._due = time.monotonic() + self._delay_s
                self._say(Event("failed", "database", f"{exc}\ntried again in {self._delay_s:g} s"))
            return False
        self._started = time.monotonic()
        if server.url != address:
            # Another command has started it, and could not have the old port; our children have the old address.
            raise LaunchError("The database server had to move to another port; start again.")
        self._say(Event("started", "database", "again, after it had stopped"))
        return True

    def _wait_on(self) -> bool:
        self._supervisor.step(0)
        return not self._supervisor.stop_requested
