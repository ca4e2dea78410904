"""Measures a payload: memory and CPU of its processes, size of its folder, time since the start."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import stat
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tasks_app.worker_node.pilot.job_folders import Size, size_of
from tasks_app.worker_node.pilot.job_limits import Measure
from tasks_app.worker_node.pilot.processes import Family

FIRST_LOOK_S = 0.05
"""After that time for the first time, and after twice as long each time: most of a short payload's memory would not be seen
otherwise."""
LOOK_EVERY_S = 0.5
# Looking through a folder of many files takes time; it is done for at most this part of the time, but after such a pause at
# the latest: much can be written meanwhile.
FOLDER_SHARE = 0.05
LONGEST_PAUSE_S = 10.0


class Gauge:
    """Takes measures of one payload, from its start on; the maximum and the mean of memory are kept."""

    def __init__(self, family: Family, folder: Path) -> None:
        self._family = family
        self._folder = folder
        self._started = time.monotonic()
        self._cpu_before_s = _reaped_cpu_s()
        self._disk_due = 0.0
        self._size = Size(0)
        self._held = Held()
        self._last = Measure()
        self._area_kb_s = 0.0
        self.max_rss_kb = 0

    @property
    def avg_rss_kb(self) -> int:
        """Mean over the time, not over the measures: those are denser at the start."""
        return round(self._area_kb_s / self._last.wall_s) if self._last.wall_s else self.max_rss_kb

    @property
    def last(self) -> Measure:
        return self._last

    def measure(self) -> Measure:
        """Look now. A payload that ends meanwhile counts for what could still be seen."""
        rss_bytes, shared_bytes, cpu_s = 0, 0, 0.0
        members = self._family.members()
        if time.monotonic() >= self._disk_due:
            self._held = held([process.pid for process in members])
        for process in members:
            try:
                with process.oneshot():
                    memory = process.memory_info()
                    rss_bytes += memory.rss
                    shared_bytes += memory.shared
                    times = process.cpu_times()
            except psutil.Error:
                continue
            cpu_s += times.user + times.system + times.children_user + times.children_system
        # What of the files in memory is mapped is in the resident memory already.
        unmapped_kb = max(0, self._held.memory_kb - shared_bytes // 1024)
        return self._book(rss_bytes // 1024 + unmapped_kb, cpu_s, whole_folder=False)

    def final(self, peak_kb: int) -> Measure:
        """The last measure, when all have ended; `peak_kb` is what the kernel saw the largest of them use."""
        self.max_rss_kb = max(self.max_rss_kb, peak_kb)
        self._held = Held()
        if not self._area_kb_s:  # it ended before it was ever seen at work
            self._area_kb_s = peak_kb * max(time.monotonic() - self._started, 1e-3)
        return self._book(0, 0.0, whole_folder=True)

    def _book(self, rss_kb: int, living_cpu_s: float, *, whole_folder: bool) -> Measure:
        now = time.monotonic()
        wall_s = now - self._started
        if whole_folder or now >= self._disk_due:
            self._size = size_of(self._folder)
            looked = time.monotonic()
            self._disk_due = looked + min((looked - now) / FOLDER_SHARE, LONGEST_PAUSE_S)
        cpu_s = _reaped_cpu_s() - self._cpu_before_s + living_cpu_s
        self.max_rss_kb = max(self.max_rss_kb, rss_kb)
        self._area_kb_s += rss_kb * (wall_s - self._last.wall_s)
        # Between a process's end and its being reaped its time is in neither sum: time does not run backwards.
        disk_kb = self._size.kb + self._held.disk_kb
        self._last = Measure(rss_kb, max(cpu_s, self._last.cpu_s), wall_s, disk_kb, unseen=self._size.unseen)
        return self._last


@dataclass(frozen=True, slots=True)
class Held:
    """What files that have no name any more, or never had one, take while processes hold them open, in kB."""

    memory_kb: int = 0
    disk_kb: int = 0


def held(pids: Sequence[int]) -> Held:
    """Files in memory (memfd) and deleted files that these processes have open; each counts once."""
    memory: dict[tuple[int, int], int] = {}
    disk: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found = entry.stat()
                    if found.st_nlink == 0 and stat.S_ISREG(found.st_mode):
                        kind = memory if os.readlink(entry.path).startswith("/memfd:") else disk
                        kind[found.st_dev, found.st_ino] = found.st_blocks // 2
    return Held(sum(memory.values()), sum(disk.values()))


def free_mb(folder: Path) -> int:
    """Space on the disk of a folder that anybody can have."""
    return shutil.disk_usage(folder).free // 1024**2


def holes_kb(paths: Iterable[Path]) -> int:
    """What files are longer than the space that they take on disk, in kB. Links are not followed, and files that have gone
    are left out."""
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode):
                total += max(0, found.st_size - found.st_blocks * 512)
    return total // 1024


def _reaped_cpu_s() -> float:
    """CPU time of all our children that have ended, with theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
