"""The kinds of pilots that a machine can start, ours and PanDA's: how each is started, and asked to end. No Django."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from jedisite.processes.children import die_with_parent, open_private
from tasks_app.worker_node.pilot.job_report import HURRY
from tasks_app.worker_node.pilot.settings import SERVER_VARIABLE, TOKEN_VARIABLE
from tasks_app.worker_node.pilot.walls import JOB, Walls, limit, obey
from tasks_app.worker_node.submitters import panda_pilots, pilot_outbox
from tasks_app.worker_node.submitters.base import PilotSpec, Ticket

log = logging.getLogger(__name__)

CHECKOUT = Path(__file__).resolve().parents[3]
LOOK_EVERY_S = 4.0
COLLECT_EVERY_S = 0.5
"""Files must be in the storage before somebody who heard of them looks: a pilot reports some seconds after it wrote them."""
TOKEN = "token"
"""File in the folder of a pilot."""
PRIVATE_PREFIXES = ("JEDI_", "DJANGO_", "DATABASE_URL", "PGPASS")


@dataclass(frozen=True, slots=True)
class Launch:
    """How one pilot is started: `dies_of` is the signal that it gets when this process dies, `limits` those of the kernel."""

    command: list[str]
    environment: dict[str, str]
    folder: Path
    dies_of: signal.Signals = signal.SIGTERM
    quiet: bool = False
    limits: Mapping[int, int] = field(default_factory=dict)

    def before(self) -> Callable[[], None]:
        """What the child does before it becomes the pilot."""
        armed = die_with_parent(self.dies_of)

        def begin() -> None:
            armed()
            if self.limits:
                obey(self.limits)

        return begin


class OwnPilot:
    """Our own small pilot."""

    look_every_s = LOOK_EVERY_S

    def launch(self, spec: PilotSpec, worker_id: int, folder: Path, ticket: Ticket) -> Launch:
        path = ticket.file or folder / TOKEN
        if ticket.file is None:
            with open_private(path) as file:
                file.write(ticket.token.encode())
        return Launch(
            pilot_command(spec, worker_id, folder), pilot_environment(os.environ, path, spec.server), CHECKOUT
        )

    def ask_to_end(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()

    def collect(self, folder: Path) -> None:
        """It brings its outputs to the storage itself."""

    def jobs(self, folder: Path) -> list[int]:
        """What it works on: each job has a folder that begins with its number."""
        numbers = [path.name.partition("-")[0] for path in folder.glob("[0-9]*-*")]
        return [int(number) for number in numbers if number.isdecimal()]

    def hurry(self, folder: Path) -> None:
        """Make it ask the site now what it is to do."""
        (folder / HURRY).touch()


class PandaPilot:
    """PanDA's own. `source` is its unpacked source, `walls` what stands round it, or why there are none."""

    look_every_s = COLLECT_EVERY_S

    def __init__(self, source: Path, storage: Path, walls: Walls | str) -> None:
        """Raises CannotIsolateError."""
        panda_pilots.check(source, walled=isinstance(walls, Walls))
        self._source, self._storage = source, storage
        self._walls = None if isinstance(walls, str) else walls
        if isinstance(walls, str):
            log.warning("payloads.unwalled jobs=administrators reason=%s", walls)

    @property
    def walled(self) -> bool:
        return self._walls is not None

    def launch(self, spec: PilotSpec, worker_id: int, folder: Path, ticket: Ticket) -> Launch:
        panda_pilots.prepare(self._source, folder, ticket.token, spec.heartbeat_s, ticket.begins_with)
        if self._walls is None:
            outer = {key: value for key, value in os.environ.items() if not key.startswith(PRIVATE_PREFIXES)}
            command = panda_pilots.isolated(panda_pilots.command(self._source, spec, self._storage))
            environment = panda_pilots.environment(outer, self._source, folder, spec.server)
        else:
            walls = panda_pilots.walls_of(self._walls, worker_id, folder, self._storage)
            walls.hand_over(folder)
            command = walls.around(panda_pilots.command(self._source, spec, panda_pilots.INPUTS), folder)
            environment = panda_pilots.environment(walls.environment(os.environ), self._source, Path(JOB), spec.server)
            environment |= panda_pilots.inner(spec, Path(JOB))
        # What holds it passes no signals on, and kills what it holds when it is killed.
        fuses = limit(spec.memory_mb, 0, folder) if self._walls else {}
        return Launch(command, environment, folder, dies_of=signal.SIGKILL, quiet=True, limits=fuses)

    def ask_to_end(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(psutil.Error):
            held = psutil.Process(process.pid).children()
            if self._walls:  # the first process in there is still bubblewrap
                held = [pilot for first in held for pilot in first.children()]
            for pilot in held:
                pilot.terminate()

    def collect(self, folder: Path) -> None:
        """Bring to the storage what a pilot behind walls has written for it."""
        if self._walls:
            pilot_outbox.take(folder / panda_pilots.OUTBOX, self._storage)

    def jobs(self, folder: Path) -> list[int]:
        """It hears of its job by its heartbeat alone."""
        return []

    def hurry(self, folder: Path) -> None:
        """Nothing makes it ask before its time."""


def pilot_command(spec: PilotSpec, worker_id: int, folder: Path) -> list[str]:
    """How a pilot is started: without `manage.py`, whose start-up would cost each slot a second of CPU."""
    command = [sys.executable, "-m", "tasks_app.worker_node.pilot", "--queue", spec.queue, "--work", str(folder)]
    command += ["--heartbeat", f"{spec.heartbeat_s:g}", "--worker-id", str(worker_id)]
    if spec.label:
        command += ["--label", spec.label]
    if spec.memory_mb:
        command += ["--memory", str(spec.memory_mb)]
    command += ["--isolation", spec.isolation]
    command += [word for path in spec.readable for word in ("--readable", path)]
    command += [word for path in spec.hidden for word in ("--hidden", path)]
    command += ["--network"] if spec.network else []
    return [*command, "--keep"] if spec.keep else command


def pilot_environment(outer: Mapping[str, str], token: Path, server: str) -> dict[str, str]:
    """Ours without what only the site's own processes need to know; the pilot's token stands in a file."""
    env = {key: value for key, value in outer.items() if not key.startswith(PRIVATE_PREFIXES)}
    return env | {f"{TOKEN_VARIABLE}_FILE": str(token), SERVER_VARIABLE: server}
