"""Pilots as processes of this machine. No Django, no database; Linux.

Pilots end with this process, however it ends: the kernel sends them SIGTERM when it dies. What a killed pilot leaves
behind comes to this process as orphans and is killed here.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tasks_app.domain.retry_rules import ENDED_WITH_SERVICE
from tasks_app.worker_node.pilot.latch import Latch, wait_any
from tasks_app.worker_node.pilot.main import LOCK_NAME
from tasks_app.worker_node.pilot.payload import tail
from tasks_app.worker_node.pilot.processes import adopt_orphans
from tasks_app.worker_node.pilot.removing import remove_folder
from tasks_app.worker_node.submitters.base import (
    ENDED,
    RENEW_EVERY_S,
    NoTokenError,
    PilotSpec,
    PilotSubmitter,
    Ticket,
    Tickets,
    Worker,
    WorkerState,
    next_delay,
)
from tasks_app.worker_node.submitters.old_folders import FOLDER_PREFIX, SWEEP_LIMIT_S, sweep
from tasks_app.worker_node.submitters.pilot_kinds import LOOK_EVERY_S, TOKEN, OwnPilot, PandaPilot

log = logging.getLogger(__name__)

GRACE_S = 12.0
ASK_EVERY_S = 3.0
"""Which of the running jobs are to be killed is asked at most so often, once for all pilots: their heartbeats tell much later."""
SWEEP_EVERY_S = 15.0
LONGEST_TOKEN = 1000
LEFT = "Its pilot ended without a final report"
NO_TOKEN_DELAY_S = 5.0


@dataclass(slots=True)
class _Pilot:
    id: int
    process: subprocess.Popen[bytes]
    pidfd: int
    folder: Path
    keep: bool
    started: float
    token: str
    cancelled: bool = False

    def worker(self, state: WorkerState, detail: str = "") -> Worker:
        return Worker(self.id, str(self.process.pid), state, time.monotonic() - self.started, detail)


class LocalSubmitter(PilotSubmitter):
    """The local twin of a batch system. Use it in the main thread: the kernel ties pilots to the thread that forks.

    `work` holds one folder a pilot; those of pilots that are gone are removed at the start and as pilots end.
    """

    def __init__(self, work: Path, kind: OwnPilot | PandaPilot, tickets: Tickets) -> None:
        """Raises OSError when the folder cannot be made."""
        work.mkdir(parents=True, exist_ok=True)
        self._work = work
        self._kind = kind
        self._tickets = tickets
        self._ended: dict[str, str] = {}
        """Tokens of pilots that are gone, until they are worthless; and how these have ended."""
        self._renewed = time.monotonic()
        self._tokens_left = False
        self._pilots: dict[int, _Pilot] = {}
        self._last_id = 0
        adopt_orphans()
        self._others = set(work.glob(f"{FOLDER_PREFIX}*"))
        """Folders of pilots that a service before this one has started."""
        self._to_remove: list[Path] = []
        self._untidy = False
        self._ask_at = 0.0
        self._sweep()
        self._look_after_tokens()

    def submit(self, spec: PilotSpec, count: int) -> Sequence[Worker]:
        """Start pilots. Raises OSError when a process cannot be made, NoTokenError."""
        return [self._start(spec) for _ in range(count)]

    def poll(self) -> Sequence[Worker]:
        workers = [self._look(pilot) for pilot in list(self._pilots.values())]
        self._untidy |= any(worker.state in ENDED for worker in workers)
        self._kill_orphans()  # also of pilots that ended before: a namespace may outlive them for a moment
        if self._others and time.monotonic() >= self._sweep_again:
            self._sweep()
        self._look_after_tokens()
        self._look_after_kills()
        if self._untidy and not self._ended:  # else the next service must find the tokens in these folders
            # Those that could not be removed when their own pilots ended are tried again.
            self._untidy = False
            self._to_remove = [folder for folder in self._to_remove if not remove_folder(folder, SWEEP_LIMIT_S)]
        return workers

    def _sweep(self) -> None:
        """Bury pilots of a service before this one. Those that are still ending come later."""
        self._to_remove += sweep(self._others, self._bury)
        self._others = {folder for folder in self._others if folder.exists()} - set(self._to_remove)
        self._sweep_again = time.monotonic() + SWEEP_EVERY_S

    def _look_after_tokens(self) -> None:
        """Those of living pilots live on, those of ended ones open nothing. What fails is tried again at the next call."""
        now = time.monotonic()
        try:
            if self._ended:
                self._tickets.end(self._ended)
                self._ended.clear()
            if now - self._renewed >= RENEW_EVERY_S:
                self._tickets.renew([pilot.token for pilot in self._pilots.values()])
                self._renewed = now
            self._tokens_left = False
        except NoTokenError as exc:
            # Told once, not at each of the tries that follow while the database is away.
            if not self._tokens_left:
                log.warning("tokens.left ended=%d trouble=%s", len(self._ended), exc)
            self._tokens_left = True

    def _look_after_kills(self) -> None:
        """Pilots whose job is to be killed are made to ask for it now. What fails is left to their heartbeats."""
        if time.monotonic() < self._ask_at:
            return
        self._ask_at = time.monotonic() + ASK_EVERY_S
        at_work = {job: pilot.folder for pilot in self._pilots.values() for job in self._kind.jobs(pilot.folder)}
        with contextlib.suppress(NoTokenError, OSError):
            for job in self._tickets.killed(at_work) if at_work else ():
                self._kind.hurry(at_work[job])

    def _bury(self, folder: Path) -> None:
        """What is still to be had of a pilot that is gone, as was the service that started it."""
        if token := tail(folder / TOKEN, LONGEST_TOKEN).strip():
            self._ended[token] = ENDED_WITH_SERVICE
        self._kind.collect(folder)

    def cancel(self, worker_ids: Sequence[int]) -> None:
        for number in worker_ids:
            if pilot := self._pilots.get(number):
                pilot.cancelled = True
                self._kind.ask_to_end(pilot.process)

    def wait(self, stop: Latch, seconds: float) -> None:
        """Wait until a pilot ends, `stop` is set or the time is over."""
        wait_any((stop,), min(seconds, self._kind.look_every_s), *(pilot.pidfd for pilot in self._pilots.values()))

    def close(self, grace_s: float = GRACE_S) -> None:
        """End all pilots: SIGTERM, and after `grace_s` seconds SIGKILL."""
        self.cancel(list(self._pilots))
        deadline = time.monotonic() + grace_s
        for pilot in list(self._pilots.values()):
            with contextlib.suppress(subprocess.TimeoutExpired):
                pilot.process.wait(max(0.0, deadline - time.monotonic()))
            if pilot.process.poll() is None:
                log.warning("pilot.killed worker=%d pid=%d after_s=%g", pilot.id, pilot.process.pid, grace_s)
                pilot.process.kill()
                pilot.process.wait()
        self.poll()

    def _start(self, spec: PilotSpec) -> Worker:
        number = self._last_id = max(self._last_id + 1, time.time_ns() // 1000)
        ticket = self._tickets.make(number)
        try:
            return self._start_with(spec, number, ticket)
        except OSError:
            self._ended[ticket.token] = LEFT
            raise

    def _start_with(self, spec: PilotSpec, number: int, ticket: Ticket) -> Worker:
        folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=self._work))
        try:
            launch = self._kind.launch(spec, number, folder, ticket)
        except OSError:
            remove_folder(folder, SWEEP_LIMIT_S)
            raise
        # Whoever finds the lock free may remove the folder: it is held by the pilot and what it starts with it.
        with open(folder / LOCK_NAME, "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            process = subprocess.Popen(
                launch.command,
                env=launch.environment,
                cwd=launch.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if launch.quiet else None,
                stderr=subprocess.DEVNULL if launch.quiet else None,
                # A group of its own: who kills our group leaves pilots the time to report what they were doing.
                start_new_session=True,
                pass_fds=[lock.fileno()],
                preexec_fn=launch.before(),
            )
        pidfd = os.pidfd_open(process.pid)
        pilot = _Pilot(number, process, pidfd, folder, spec.keep, time.monotonic(), ticket.token)
        self._pilots[number] = pilot
        log.info("pilot.started worker=%d pid=%d", number, process.pid)
        return pilot.worker(WorkerState.RUNNING)

    def _look(self, pilot: _Pilot) -> Worker:
        code = pilot.process.poll()
        try:
            self._kind.collect(pilot.folder)
        except Exception:  # whatever a payload left there: the other pilots go on
            log.exception("outbox.not_collected worker=%d", pilot.id)
        if code is None:
            return pilot.worker(WorkerState.RUNNING)
        del self._pilots[pilot.id]
        self._ended[pilot.token] = ENDED_WITH_SERVICE if pilot.cancelled else LEFT
        os.close(pilot.pidfd)
        if not pilot.keep:
            self._to_remove.append(pilot.folder)
        detail = f"exit code {code}" if code >= 0 else f"ended by signal {-code}"
        if pilot.cancelled:
            return pilot.worker(WorkerState.CANCELLED, detail)
        return pilot.worker(WorkerState.FAILED if code else WorkerState.FINISHED, detail)

    def _kill_orphans(self) -> None:
        """Kill what ended pilots have left. All of it comes to us: each round kills parents of others."""
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            orphans = self._orphans()
            if not orphans:
                return
            alive = 0
            for orphan in orphans:
                with contextlib.suppress(psutil.Error):
                    if orphan.status() != psutil.STATUS_ZOMBIE:
                        orphan.kill()
                        alive += 1
                with contextlib.suppress(psutil.Error, psutil.TimeoutExpired):
                    orphan.wait(1.0)
            # Those that had ended by themselves, as what a pilot tries out at its start, were only reaped.
            if alive:
                log.info("orphans.killed count=%d", alive)

    def _orphans(self) -> list[psutil.Process]:
        """Our children that are no pilots, zombies included."""
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        found = []
        for pid in {int(child) for child in children} - {pilot.process.pid for pilot in self._pilots.values()}:
            with contextlib.suppress(psutil.Error):
                found.append(psutil.Process(pid))
        return found


def serve(work: Path, kind: OwnPilot | PandaPilot, tickets: Tickets, spec: PilotSpec, slots: int) -> None:
    """Keep the slots of this machine filled until SIGTERM or SIGINT, then end all pilots. Raises OSError."""
    stop = Latch()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    submitter = LocalSubmitter(work, kind, tickets)
    try:
        keep_filled(submitter, spec, slots, stop)
    finally:
        submitter.close()


def keep_filled(submitter: LocalSubmitter, spec: PilotSpec, slots: int, stop: Latch) -> None:
    """Keep so many pilots running until `stop` is set. Raises OSError when a process cannot be made."""
    delay_s, due, trouble = 0.0, 0.0, ""
    while not stop.is_set:
        running = 0
        for worker in submitter.poll():
            if worker.state not in ENDED:
                running += 1
                continue
            delay_s = next_delay(delay_s, worker)
            due = max(due, time.monotonic() + delay_s)
            log.info(
                "pilot.ended worker=%d state=%s ran_s=%.1f detail=%s next_in_s=%.1f",
                worker.id,
                worker.state,
                worker.ran_s,
                worker.detail,
                delay_s,
            )
        now = time.monotonic()
        if running < slots and now >= due:
            try:
                submitter.submit(spec, slots - running)
                running, trouble = slots, ""
            except NoTokenError as exc:
                due = now + NO_TOKEN_DELAY_S
                if trouble != str(exc):  # a queue may be closed for days
                    log.warning("pilot.not_started trouble=%s next_in_s=%.1f", exc, NO_TOKEN_DELAY_S)
                trouble = str(exc)
        submitter.wait(stop, LOOK_EVERY_S if running == slots else max(0.0, due - now))
