"""bench generate: files become stored jobs, against COPY of all rows that result and against a row-by-row version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from jedisite.database.sql import hot_cursor
from tasks_app.generation.job_rows import JOB_COLUMNS, LOG_COLUMNS, OUTPUT_CONTENT_COLUMNS, PARAM_COLUMNS
from tasks_app.generation.turn_steps import generate
from tasks_app.labs.bench import scene
from tasks_app.labs.bench.database import Place, empty, settle
from tasks_app.labs.bench.measuring import Clock, Result, Target, in_turn
from tasks_app.labs.bench.rowwise import generate_row_by_row
from tasks_app.models import Dataset, Task

CONTENTS = "jedi_dataset_contents"
JOB_FILE_COLUMNS = (
    "pandaid",
    "jeditaskid",
    "datasetid",
    "fileid",
    "type",
    "lfn",
    "scope",
    "dataset",
    "destinationdblock",
    "destinationse",
    "guid",
    "fsize",
    "checksum",
    "status",
    "attemptnr",
    "nevents",
    "startevent",
    "endevent",
    "surl",
)
MADE = {
    "jobs": JOB_COLUMNS,
    "job_params": PARAM_COLUMNS,
    CONTENTS: OUTPUT_CONTENT_COLUMNS,
    "job_files": JOB_FILE_COLUMNS,
    "jobs_statuslog": LOG_COLUMNS,
}
"""The tables that generation adds rows to, and the columns it fills."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A task with ready files and no jobs, set up again before each case."""

    task: Task
    dataset: Dataset
    files: int
    files_per_job: int

    @property
    def jobs(self) -> int:
        return -(-self.files // self.files_per_job)

    def fresh(self) -> None:
        empty(CONTENTS, *scene.JOB_TABLES)
        scene.fill(self.task, self.dataset, self.files)
        settle(CONTENTS)

    def generate(self) -> float:
        """Seconds that our own generation takes."""
        with Clock() as clock:
            turn = generate(self.task, self.task.fence, scene.generation_pass(), timezone.now(), max_jobs=self.jobs)
        if turn.jobs != self.jobs:
            raise RuntimeError(f"{turn.jobs} jobs were made, not {self.jobs}")
        return clock.seconds

    def copy(self, made: dict[str, bytes]) -> float:
        """Seconds that COPY takes for the rows that generation has made before."""
        with Clock() as clock, transaction.atomic(), hot_cursor() as cursor:
            for table, columns in MADE.items():
                with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as stream:
                    stream.write(made[table])
        return clock.seconds


def rows_made(task: Task, dataset: Dataset) -> dict[str, bytes]:
    """What generation has stored, as text for COPY, by table."""
    found = {}
    with hot_cursor() as cursor:
        for table, columns in MADE.items():
            where = f" WHERE jeditaskid = {task.id} AND datasetid <> {dataset.id}" if table == CONTENTS else ""
            query = f"COPY (SELECT {', '.join(columns)} FROM {table}{where}) TO STDOUT"  # noqa: S608 - names of ours
            with cursor.copy(query) as stream:
                found[table] = b"".join(bytes(block) for block in stream)
    return found


def run(place: Place, sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> Result:
    files, per_job, few = [*sizes, *(100_000, 10, 2000)[len(sizes) :]]
    stage = Stage(*scene.new_task(per_job), files, per_job)
    stage.fresh()
    stage.generate()  # for the rows that COPY then writes; also warms all caches
    made = rows_made(stage.task, stage.dataset)

    def ours() -> float:
        stage.fresh()
        return files / stage.generate()

    def raw() -> float:
        stage.fresh()
        return files / stage.copy(made)

    def by_row() -> float:
        stage.fresh()
        with Clock() as clock:
            used = generate_row_by_row(stage.task, stage.dataset, "BENCH_00", per_job, -(-min(few, files) // per_job))
        return used / clock.seconds

    names = ("COPY of the rows that result", "generate", "row by row, a commit a job")
    rates = in_turn(dict(zip(names, (raw, ours, by_row), strict=True)), rounds, say)
    sizes_said = {"files": files, "files_per_job": per_job, "files_row_by_row": few}
    result = Result("generate", "files/s", rates, "generate", names[0], sizes_said)
    result.targets += [
        Target("generate / COPY", rates.ratio("generate", names[0]), 0.2, 0.4),
        Target("generate / row by row", rates.ratio("generate", names[2]), 10),
    ]
    return result
