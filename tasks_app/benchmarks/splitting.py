"""bench split: the pure splitter cuts one chunk into jobs. The time of a file must not grow with the chunk."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasks_app.benchmarks.measuring import Target
from tasks_app.splitting.chunk import Chunk, InputFile
from tasks_app.splitting.limits import SplitLimits
from tasks_app.splitting.splitter import split

MOST_SECONDS = 20
"""For the smaller chunk."""
LARGE_ROUNDS = 2
MOST_MB = 8192
AIM_MB = 4096
GROWTH = 1.25
"""What a file of the larger chunk may cost, in times of one of the smaller; machines are not steadier than that."""
FILE_BYTES = 1_500_000_000
EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class Timing:
    """The fastest of several runs over one chunk, in one call each. `cpu_s` is processor time."""

    files: int
    jobs: int
    seconds: float
    cpu_s: float
    runs: int

    @property
    def ns_a_file(self) -> float:
        """Processor time, which other programs on the machine disturb least."""
        return self.cpu_s / self.files * 1e9


@dataclass(frozen=True, slots=True)
class SplitResult:
    """What the command prints."""

    small: Timing
    large: Timing
    files_per_job: int
    highest_mb: int
    targets: Sequence[Target]

    def lines(self) -> list[str]:
        rows = [
            f"{t.files:>12,} files  {t.jobs:>10,} jobs  {t.seconds:7.2f} s  {t.ns_a_file:6.0f} ns of processor time a file"
            for t in (self.small, self.large)
        ]
        return [*rows, f"highest memory {self.highest_mb:,} MB", *(target.sentence() for target in self.targets)]

    def as_json(self) -> Mapping[str, Any]:
        return {
            "benchmark": "split", "seconds": round(self.small.seconds, 4), "files": self.small.files, "jobs": self.small.jobs,
            "files_per_job": self.files_per_job, "files_per_second": round(self.small.files / self.small.seconds),
            "ns_per_file": round(self.small.ns_a_file, 1), "large_seconds": round(self.large.seconds, 4),
            "large_files": self.large.files, "large_jobs": self.large.jobs, "large_ns_per_file": round(self.large.ns_a_file, 1),
            "highest_mb": self.highest_mb, "rounds": self.small.runs,
            "targets": [
                {"name": t.name, "value": round(t.value, 4), "need": t.need, "aim": t.aim, "met": t.is_met}
                for t in self.targets
            ],
        }  # fmt: skip


def run(sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> SplitResult:
    """Cut a chunk of the first size and one of the second, in turn. Raises RuntimeError when files are lost."""
    small_size, large_size, per_job = [*sizes, *(1_000_000, 10_000_000, 10)[len(sizes) :]][:3]
    chunks = [Chunk(1, [_file(number) for number in range(size)]) for size in (small_size, large_size)]
    # The collector shall look at what the splitter makes, not at the input again and again.
    gc.collect()
    gc.freeze()
    found: list[list[Timing]] = [[], []]
    for number in range(rounds):
        for runs, chunk in zip(found, chunks, strict=True):
            if runs is found[1] and number >= LARGE_ROUNDS:
                continue
            runs.append(_cut(chunk, per_job))
            say(f"round {number + 1}: {len(chunk.files):,} files in {runs[-1].seconds:.2f} s")
    gc.unfreeze()
    small, large = map(_fastest, found)
    highest_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    targets = [
        Target(f"seconds for {small.files:,} files", small.seconds, MOST_SECONDS, 2.0, at_most=True),
        Target("time of a file, large chunk / small", large.ns_a_file / small.ns_a_file, GROWTH, 1.0, at_most=True),
        Target("MB of this process", highest_mb, MOST_MB, AIM_MB, at_most=True),
    ]
    return SplitResult(small, large, per_job, highest_mb, targets)


def _cut(chunk: Chunk, per_job: int) -> Timing:
    """One call for the whole chunk."""
    gc.collect()
    began, began_cpu = time.perf_counter(), time.process_time()
    groups = split(chunk, SplitLimits(files_per_job=per_job)).groups
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    files = len(chunk.files)
    if len(groups) != -(-files // per_job) or sum(len(group.files) for group in groups) != files:
        raise RuntimeError(f"{files} files became {len(groups)} jobs of {per_job} files")
    return Timing(files, len(groups), seconds, cpu_s, 1)


def _fastest(runs: Sequence[Timing]) -> Timing:
    seconds, cpu_s = min(run.seconds for run in runs), min(run.cpu_s for run in runs)
    return replace(runs[0], seconds=seconds, cpu_s=cpu_s, runs=len(runs))


def _file(number: int) -> InputFile:
    return InputFile(number, f"DAOD_BENCH.12345678._{number:08d}.pool.root.1", FILE_BYTES, EVENTS)
