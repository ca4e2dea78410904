"""bench split: the pure splitter cuts chunks into jobs. The time of a file must not grow with the task.

The small task is one chunk, cut in one call. The large one is gone through as the job generator does it: chunk after
chunk, what is left of one before the next; its chunks are as large as the small task, so that memory stays bounded.
Making the files is not measured.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tasks_app.labs.bench.measuring import Target
from tasks_app.splitting.chunk import Chunk, InputFile
from tasks_app.splitting.limits import SplitLimits
from tasks_app.splitting.splitter import split

MOST_SECONDS = 20
"""For the small task."""
MOST_MB = 8192
AIM_MB = 1024
GROWTH = 1.25
"""What a file of the large task may cost, in times of one of the small; machines are not steadier than that."""
FILE_BYTES = 1_500_000_000
EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the splitter. `cpu_s` is processor time, which other programs on the machine disturb least."""

    files: int
    jobs: int
    seconds: float
    cpu_s: float
    rest: Sequence[InputFile]

    @property
    def ns_a_file(self) -> float:
        return self.cpu_s / self.files * 1e9


@dataclass(frozen=True, slots=True)
class SplitResult:
    """What the command prints. `small` are the calls for the small task, one of them in turn with each of `large`."""

    small: Sequence[Call]
    large: Sequence[Call]
    files: int
    large_files: int
    files_per_job: int
    highest_mb: int

    @property
    def seconds(self) -> float:
        return median(call.seconds for call in self.small)

    @property
    def growth(self) -> float:
        """Time of a file of the large task over one of the small: the median of calls that ran one after the other."""
        return median(big.ns_a_file / small.ns_a_file for small, big in zip(self.small, self.large, strict=True))

    @property
    def targets(self) -> list[Target]:
        return [
            Target(f"seconds for {self.files:,} files", self.seconds, MOST_SECONDS, 2.0, at_most=True),
            Target("time of a file, large task / small", self.growth, GROWTH, 1.0, at_most=True),
            Target("MB of this process", self.highest_mb, MOST_MB, AIM_MB, at_most=True),
        ]

    def lines(self) -> list[str]:
        rows = (
            (self.files, 1, self.seconds, self.small),
            (self.large_files, len(self.large), _seconds(self.large), self.large),
        )
        found = [
            f"{files:>12,} files, {calls:>3} calls  {seconds:7.2f} s  {_cost(of):6.0f} ns of processor time a file"
            for files, calls, seconds, of in rows
        ]
        return [*found, f"highest memory {self.highest_mb:,} MB", *(target.sentence() for target in self.targets)]

    def as_json(self) -> Mapping[str, Any]:
        return {
            "benchmark": "split",
            "seconds": round(self.seconds, 4),
            "files": self.files,
            "jobs": self.small[0].jobs,
            "files_per_job": self.files_per_job,
            "files_per_second": round(self.files / self.seconds),
            "ns_per_file": round(_cost(self.small), 1),
            "rounds": len(self.small),
            "large_seconds": round(_seconds(self.large), 4),
            "large_files": self.large_files,
            "large_jobs": sum(call.jobs for call in self.large),
            "large_calls": len(self.large),
            "large_ns_per_file": round(_cost(self.large), 1),
            "growth": round(self.growth, 4),
            "highest_mb": self.highest_mb,
            "targets": [
                {"name": t.name, "value": round(t.value, 4), "need": t.need, "aim": t.aim, "met": t.is_met}
                for t in self.targets
            ],
        }


def _cost(calls: Sequence[Call]) -> float:
    return median(call.ns_a_file for call in calls)


def _seconds(calls: Sequence[Call]) -> float:
    return sum(call.seconds for call in calls)


def run(sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> SplitResult:
    """Cut a small task, in turn with each chunk of a large one. Raises RuntimeError when files are lost.

    The number of rounds is that of the chunks.
    """
    files, large_files, per_job = [*sizes, *(1_000_000, 10_000_000, 10)[len(sizes) :]][:3]
    task = _files(0, files)
    small: list[Call] = []
    large: list[Call] = []
    rest: Sequence[InputFile] = ()
    for first in range(0, large_files, files):
        end = min(first + files, large_files)
        small.append(_cut(task, per_job, more_to_come=False))
        large.append(_cut([*rest, *_files(first, end)], per_job, more_to_come=end < large_files))
        rest = large[-1].rest
        say(f"{files:,} files: {small[-1].seconds:.2f} s; up to {end:,} of {large_files:,}: {large[-1].seconds:.2f} s")
    if small[0].jobs != -(-files // per_job) or sum(call.jobs for call in large) != -(-large_files // per_job):
        raise RuntimeError(f"{files} files became {small[0].jobs} jobs of {per_job} files")
    highest_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return SplitResult(small, large, files, large_files, per_job, highest_mb)


def _cut(files: Sequence[InputFile], per_job: int, *, more_to_come: bool) -> Call:
    """One call. Raises RuntimeError when it loses files."""
    chunk, limits = Chunk(1, files), SplitLimits(files_per_job=per_job)
    # The garbage of the call before is not this call's.
    gc.collect()
    began, began_cpu = time.perf_counter(), time.process_time()
    result = split(chunk, limits, more_to_come=more_to_come)
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    used = sum(len(group.files) for group in result.groups)
    if used + len(result.rest) != len(files):
        raise RuntimeError(f"of {len(files)} files {used} went into jobs and {len(result.rest)} were left")
    return Call(len(files), len(result.groups), seconds, cpu_s, result.rest)


def _files(first: int, end: int) -> list[InputFile]:
    return [_file(number) for number in range(first, end)]


def _file(number: int) -> InputFile:
    return InputFile(number, f"DAOD_BENCH.12345678._{number:08d}.pool.root.1", FILE_BYTES, EVENTS)
