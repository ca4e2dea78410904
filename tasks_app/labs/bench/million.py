"""bench million: one large task is fed and cut into jobs. The rate must not fall, nor the memory grow with its size."""

from __future__ import annotations

import itertools
import resource
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import mean
from typing import Any

import psutil
from django.db import connection
from django.utils import timezone

from tasks_app.generation.turn_steps import generate
from tasks_app.inputs import file_rows
from tasks_app.labs.bench import scene
from tasks_app.labs.bench.database import Place
from tasks_app.labs.bench.feeding import target_of
from tasks_app.labs.bench.measuring import Clock, Rates, Result, Target
from tasks_app.models import Dataset

PARTS = 10
FILES_PER_JOB = 10
MOST_MB = 1024


class Memory:
    """The highest resident memory of this process and of the database server's processes, where they are on this machine."""

    def __init__(self) -> None:
        self.highest: dict[str, int] = {}
        self._server = _server_pid()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        # The kernel's own record for this process misses no peak.
        self._note("this process", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            self._look()

    def _look(self) -> None:
        if self._server is None:
            return
        try:
            for process in psutil.Process(self._server).children():
                title = " ".join(process.cmdline())[:60] or process.name()
                self._note("postgres" if "postgres" in title else title, process.memory_info().rss // 2**20)
        except psutil.Error:
            return  # one has ended meanwhile

    def _note(self, name: str, mb: int) -> None:
        self.highest[name] = max(mb, self.highest.get(name, 0))


def _server_pid() -> int | None:
    """The server's main process; None when it runs elsewhere or belongs to somebody else."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()
    try:
        own = psutil.Process(backend)
        return own.ppid() if "postgres" in own.name() else None
    except psutil.Error:
        return None


def run(place: Place, sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> Result:
    """Measure in one round, whose parts are compared with one another."""
    files = sizes[0] if sizes else 1_000_000
    task, dataset = scene.new_task(FILES_PER_JOB)
    part = max(1, files // PARTS)
    with Memory() as memory:
        fed = _feed(target_of(task, dataset), files, part)
        say("feed, files/s of each tenth: " + ", ".join(f"{rate:,.0f}" for rate in fed))
        Dataset.objects.filter(pk=dataset.id).update(status="ready")
        cut = _cut(task, files, part)
        say("generate, files/s of each tenth: " + ", ".join(f"{rate:,.0f}" for rate in cut))
    begin, end = mean(cut[:2]), mean(cut[-2:])
    rates = Rates(
        {
            "generate, last fifth": [end],
            "generate, first fifth": [begin],
            "feed, last fifth": [mean(fed[-2:])],
            "feed, first fifth": [mean(fed[:2])],
        }
    )
    result = Result("million", "files/s", rates, "generate, last fifth", "generate, first fifth", {"files": files})
    result.more = {
        "feed_by_tenth": [round(r) for r in fed],
        "generate_by_tenth": [round(r) for r in cut],
        "highest_mb": memory.highest,
    }
    result.targets += [
        Target("generate, last fifth / first fifth", end / begin, 0.8, 1.0),
        Target("feed, last fifth / first fifth", rates.ratio("feed, last fifth", "feed, first fifth"), 0.8, 1.0),
        Target("MB of the largest process", max(memory.highest.values()), MOST_MB, at_most=True),
    ]
    return result


def _feed(target: file_rows.FeedTarget, files: int, part: int) -> list[float]:
    """Feed all files; the rate of each part."""
    moments: list[float] = []

    def pages() -> Iterator[list[Any]]:
        made = 0
        for page in scene.pages(files, min(50_000, part)):
            if made % part == 0:
                moments.append(time.perf_counter())
            made += len(page)
            yield page

    fed = file_rows.feed(target, pages(), timezone.now())
    if fed.files != files:
        raise RuntimeError(f"{fed.files} files were fed, not {files}")
    moments.append(time.perf_counter())
    return [part / (after - before) for before, after in itertools.pairwise(moments)][:PARTS]


def _cut(task: Any, files: int, part: int) -> list[float]:
    """Cut all files into jobs, a part a turn as the agent does; the rate of each turn."""
    rates = []
    jobs, left = max(1, part // FILES_PER_JOB), -(-files // FILES_PER_JOB)
    while left > 0:
        with Clock() as clock:
            turn = generate(task, task.fence, scene.generation_pass(), timezone.now(), max_jobs=min(jobs, left))
        if not turn.jobs:
            raise RuntimeError(f"{left} jobs were not made")
        left -= turn.jobs
        rates.append(turn.jobs * FILES_PER_JOB / clock.seconds)
    return rates[:PARTS]
