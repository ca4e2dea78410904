"""Keeps a few named child processes running. Imports no Django.

Each child leads a process group of its own. A child that dies is started again; what it left in its group is killed
first, since django-q's workers, for one, go on working when their main process is gone. A child that does not end when it
is asked to is killed with all its descendants, in whatever groups. When the supervisor itself is killed, the kernel sends
SIGTERM to its children, or the signal that the child is said to die of.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Literal

import psutil

from jedisite.processes.children import die_with_parent, open_log

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
STEADY_S = 60.0
GRACE_S = 20.0
HEAD_START_S = 2.0
KILL_LIMIT_S = 10.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """One child: what to run and where its output goes (None: where ours goes). `env` is the whole environment.

    `dies_of` is the signal that it gets when its supervisor dies. It gets the open files `pass_fds`, under the same numbers,
    each time that it is started; no other child does.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] | None = None
    log: Path | None = None
    cwd: Path | None = None
    dies_of: signal.Signals = signal.SIGTERM
    pass_fds: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to a child, or to all of them, for people."""

    what: Literal["started", "ending", "died", "failed", "stopped", "killed"]
    name: str
    detail: str


def next_delay(last_s: float, ran_s: float) -> float:
    """Seconds to wait before a child is started again: doubling up to a limit, from the start after a steady run."""
    if ran_s >= STEADY_S or last_s == 0:
        return FIRST_DELAY_S
    return min(last_s * 2, LONGEST_DELAY_S)


class _Child:
    """A process, its present incarnation, and when the next one is due."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.popen: subprocess.Popen[bytes] | None = None
        self.delay_s = 0.0
        self.started = 0.0
        self.due: float | None = None

    def start(self) -> None:
        """Raises OSError when the program cannot be run or the log cannot be written."""
        self.started = time.monotonic()
        self.due = None
        log = self.process.log
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
        with open_log(log) if log is not None else contextlib.nullcontext() as output:
            self.popen = subprocess.Popen(
                self.process.argv,
                env=self.process.env,
                cwd=self.process.cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent(self.process.dies_of),
                pass_fds=self.process.pass_fds,
            )

    def put_off(self) -> float:
        """Choose when it is started again; returns the delay."""
        self.delay_s = next_delay(self.delay_s, time.monotonic() - self.started)
        self.due = time.monotonic() + self.delay_s
        return self.delay_s

    def has_ended(self) -> bool:
        """Whether the leader is dead; it is left unreaped, so that its pid still names the group."""
        assert self.popen
        if self.popen.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def signal(self, how: signal.Signals) -> None:
        if self.popen and not self.has_ended():
            self.popen.send_signal(how)

    def kill_all(self) -> int:
        """Kill the leader, its descendants and all that is left of its group, and reap the leader. Returns its exit code.

        A leader that has ended has no descendants that could be found: those in other groups see to themselves.
        """
        assert self.popen
        if self.popen.returncode is None:  # once reaped, the number may belong to somebody else
            below: list[psutil.Process] = []
            with contextlib.suppress(psutil.Error):
                below = psutil.Process(self.popen.pid).children(recursive=True)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.popen.pid, signal.SIGKILL)
            for process in below:
                with contextlib.suppress(psutil.Error):
                    process.kill()
        return self.popen.wait(KILL_LIMIT_S)


class Supervisor:
    """Starts, watches and stops child processes, all in the main thread (the kernel ties children to it).

    Use it as a context manager: inside, SIGINT, SIGTERM and SIGHUP ask for a stop, and leaving stops all children.
    `say` gets every event.
    """

    def __init__(self, say: Callable[[Event], None], *, grace_s: float = GRACE_S) -> None:
        self._say = say
        self._grace_s = grace_s
        self._children: list[_Child] = []
        self._stops = 0
        self._old_handlers: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}
        self._old_wakeup_fd = -1
        self._wake_read, self._wake_write = -1, -1

    def __enter__(self) -> Supervisor:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("a supervisor works in the main thread only")
        self._wake_read, self._wake_write = os.pipe()
        for end in (self._wake_read, self._wake_write):
            os.set_blocking(end, False)
        self._old_wakeup_fd = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._handle(signal.SIGCHLD, lambda *_: None)  # only so that it wakes `step`
        for number in STOP_SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
                self._handle(number, self._on_stop)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop_all(self._grace_s)
        finally:
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._old_wakeup_fd)
            os.close(self._wake_read)
            os.close(self._wake_write)

    @property
    def stop_requested(self) -> bool:
        return self._stops > 0

    def start(self, process: Process) -> None:
        """Start a child and keep it running from now on. Raises OSError when its program cannot be run."""
        child = _Child(process)
        child.start()
        self._children.append(child)
        self._tell_started(child)

    def pids(self) -> dict[str, int]:
        """The pids of the children that live now, by name."""
        return {c.process.name: c.popen.pid for c in self._children if c.popen and not c.has_ended()}

    def run(self, each_second: Callable[[], None] = lambda: None) -> None:
        """Keep the children running until a stop is asked for; `each_second` is called about as often."""
        while not self.stop_requested:
            self.step(1.0)
            each_second()

    def step(self, limit_s: float) -> None:
        """Wait for something to happen, at most so long; then start again what died."""
        self._look_after_children()
        if not self.stop_requested:
            due = [child.due - time.monotonic() for child in self._children if child.due is not None]
            self._wait(max(0.0, min([limit_s, *due])))
            self._look_after_children()

    def stop_all(self, grace_s: float) -> None:
        """End all children: SIGTERM, the last started first, and after `grace_s` seconds SIGKILL to
        them and all their descendants.

        Each gets a head start before the next is told, so that a child can still talk to those it was started after.
        A further SIGINT or SIGTERM meanwhile kills at once.
        """
        stops_before = self._stops
        deadline = time.monotonic() + grace_s
        children = [child for child in reversed(self._children) if child.popen]
        self._children = []
        for child in children:
            child.signal(signal.SIGTERM)
            self._wait_for([child], min(deadline, time.monotonic() + HEAD_START_S), stops_before)
        self._wait_for(children, deadline, stops_before)
        for child in children:
            ended = child.has_ended()
            code = child.kill_all()
            self._say(Event("stopped" if ended else "killed", child.process.name, _exit_text(code)))

    def _look_after_children(self) -> None:
        for child in self._children:
            if child.popen and child.has_ended():
                code = child.kill_all()
                child.popen = None
                delay = child.put_off()
                log = f"; see {child.process.log}" if child.process.log else ""
                self._say(Event("died", child.process.name, f"{_exit_text(code)}, starts again in {delay:g} s{log}"))
            if child.due is not None and child.due <= time.monotonic() and not self.stop_requested:
                self._start_again(child)

    def _start_again(self, child: _Child) -> None:
        try:
            child.start()
        except OSError as exc:
            delay = child.put_off()
            self._say(Event("failed", child.process.name, f"{exc}, tried again in {delay:g} s"))
        else:
            self._tell_started(child)

    def _tell_started(self, child: _Child) -> None:
        assert child.popen
        self._say(Event("started", child.process.name, f"pid {child.popen.pid}"))

    def _wait_for(self, children: list[_Child], deadline: float, stops_before: int) -> None:
        """Wait until all have ended, the deadline has passed, or one more stop was asked for."""
        while self._stops == stops_before and not all(child.has_ended() for child in children):
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._wait(left)

    def _wait(self, limit_s: float) -> None:
        """Sleep until a signal arrives, SIGCHLD among them, or the time is over."""
        ready, _, _ = select.select([self._wake_read], [], [], limit_s)
        if ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)

    def _handle(self, number: signal.Signals, handler: Callable[[int, FrameType | None], object]) -> None:
        self._old_handlers[number] = signal.signal(number, handler)

    def _on_stop(self, *_: object) -> None:
        self._stops += 1


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    return f"ended by {signal.Signals(-code).name}"
