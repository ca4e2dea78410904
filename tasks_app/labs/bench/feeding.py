"""bench feed: the files of a dataset become rows with counters, against COPY of the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.db import transaction
from django.utils import timezone

from jedisite.database.sql import hot_cursor
from tasks_app.ddm.base import FileInfo
from tasks_app.inputs import file_rows
from tasks_app.labs.bench import scene
from tasks_app.labs.bench.database import Place, empty
from tasks_app.labs.bench.measuring import Clock, Result, Target, in_turn
from tasks_app.models import Dataset, Task

TABLE = "jedi_dataset_contents"


def target_of(task: Task, dataset: Dataset) -> file_rows.FeedTarget:
    return file_rows.FeedTarget(task.id, dataset.id, "input", 3, None, True, task.fence)


def run(place: Place, sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> Result:
    files = sizes[0] if sizes else 100_000
    pages = list(scene.pages(files))
    target = target_of(*scene.new_task())

    def fresh() -> None:
        empty(TABLE)
        Dataset.objects.filter(pk=target.dataset_id).update(files=0, files_to_be_used=0, events=None)

    def feed() -> float:
        fresh()
        return files / _timed_feed(target, pages, files)

    def feed_again() -> float:
        fresh()
        _timed_feed(target, pages, files)
        return files / _timed_feed(target, pages, 0)

    text = "".join(
        line for page in pages for line in file_rows.lines(target, map(file_rows.Record, page), timezone.now())
    )

    def copy() -> float:
        fresh()
        with Clock() as clock, transaction.atomic(), hot_cursor() as cursor:
            columns = ", ".join(file_rows.COLUMNS)
            with cursor.copy(f"COPY {TABLE} ({columns}) FROM STDIN") as stream:
                stream.write(text)
        return files / clock.seconds

    rates = in_turn({"COPY of the same rows": copy, "feed": feed, "unchanged dataset again": feed_again}, rounds, say)
    result = Result("feed", "files/s", rates, "feed", "COPY of the same rows", {"files": files})
    result.targets.append(Target("feed / COPY", rates.ratio("feed", "COPY of the same rows"), 0.4, 0.6))
    return result


def _timed_feed(target: file_rows.FeedTarget, pages: list[list[FileInfo]], expected: int) -> float:
    """Seconds that a feed takes which must add that many rows."""
    with Clock() as clock:
        fed = file_rows.feed(target, pages, timezone.now())
    if fed.files != expected:
        raise RuntimeError(f"{fed.files} rows were added, not {expected}")
    return clock.seconds
