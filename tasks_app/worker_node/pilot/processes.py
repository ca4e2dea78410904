"""The processes of a payload: they cannot outlive the pilot, are found even when they hide, and all end. Linux."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import time
from collections.abc import Callable

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_LIMIT_S = 10.0
MOST_LOOKS = 10
"""At those that never stop forking; `Family.end` comes back to them."""

_prctl = ctypes.CDLL(None, use_errno=True).prctl


def adopt_orphans() -> None:
    """Make this process the new parent of descendants whose own parent has ended.

    So a payload's process that put itself in the background is still seen, counted and killed.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def tie_to_pilot(prepare: Callable[[], None] = lambda: None) -> Callable[[], None]:
    """Make a `preexec_fn`: the child is killed when the pilot dies, however it dies, and leaves no core file.

    The kernel watches the thread that forks: call `Popen` in the main thread.
    """
    pilot = os.getpid()

    def arm() -> None:
        _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        prepare()
        if os.getppid() != pilot:
            os._exit(1)

    return arm


class Family:
    """All processes that came to be below this one since the family was made: a payload, its children, its orphans."""

    def __init__(self) -> None:
        self._self = psutil.Process()
        self._strangers = set(self._self.children())
        self.peak_kb = 0
        """The largest resident memory of those that were collected, by the kernel."""

    def members(self) -> list[psutil.Process]:
        """The living ones, zombies included.

        Whoever loses its parent while we look is found neither below the one nor, if that was read before, below the other:
        so we look again until nobody new is there. Without it a payload seemed dead, and was killed in its time of grace.
        """
        found: dict[psutil.Process, None] = {}
        for _ in range(MOST_LOOKS):
            known = len(found)
            for child in self._direct():
                with contextlib.suppress(psutil.Error):
                    found.update(dict.fromkeys((child, *_below(child))))
            if len(found) == known:
                break
        return list(found)

    def end(self, leader: int, *, grace_s: float, asks_its_own: bool, spare_leader: bool = False) -> None:
        """End all members: one SIGTERM to each that is there and `grace_s` seconds to obey it, then SIGKILL to all.

        With `asks_its_own`, members outside of the leader's group get no SIGTERM: our transforms, which put users' commands
        there, ask them to end, and two signals would cut off a handler that saves. Nobody asks what other programs put
        there. With `spare_leader` it gets none: it holds walls round the others, and ends when they have.

        The leader is left as a zombie for the caller to reap; so its number still names its group.
        """
        if grace_s > 0:
            for process in self.members():
                if not (spare_leader and process.pid == leader):
                    with contextlib.suppress(psutil.Error, ProcessLookupError):
                        if not asks_its_own or os.getpgid(process.pid) == leader:
                            process.terminate()
            _wait_until(self._all_dead, grace_s)
        _wait_until(lambda: self._kill_once(leader), KILL_LIMIT_S)

    def reap_orphans(self, leader: int) -> None:
        """Collect ended orphans, so that no zombies pile up."""
        for child in self._direct():
            if child.pid != leader and _is_zombie(child):
                with contextlib.suppress(ChildProcessError):
                    _, _, usage = os.wait4(child.pid, os.WNOHANG)
                    self.peak_kb = max(self.peak_kb, usage.ru_maxrss)

    def _direct(self) -> list[psutil.Process]:
        return [child for child in _children(self._self) if child not in self._strangers]

    def _all_dead(self) -> bool:
        return all(_is_zombie(process) for process in self.members())

    def _kill_once(self, leader: int) -> bool:
        """One round over everyone; true when nobody was left to kill. Several rounds defeat those that keep forking."""
        _signal_group(leader, signal.SIGKILL)
        alive = [process for process in self.members() if not _is_zombie(process)]
        for process in alive:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.reap_orphans(leader)
        return not alive


def _children(process: psutil.Process) -> list[psutil.Process]:
    """Direct children. The kernel's list is asked for first: psutil looks at every process of the machine."""
    try:
        pids: list[int] = []
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            with open(f"/proc/{process.pid}/task/{thread}/children") as list_:
                pids += [int(pid) for pid in list_.read().split()]
    except FileNotFoundError:  # it has just ended, or this kernel has no such list
        return list(process.children()) if process.is_running() else []
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            found.append(psutil.Process(pid))
    return found


def _below(process: psutil.Process) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    todo = [process]
    while todo:
        with contextlib.suppress(psutil.Error):
            children = _children(todo.pop())
            found += children
            todo += children
    return found


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _wait_until(done: Callable[[], bool], limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while not done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True
