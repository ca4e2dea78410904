"""What is lost of the outputs of finished jobs: their rows, their files in the catalogue, and the counters of datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from tasks_app.ddm import data_management, maker_of
from tasks_app.lifecycle import dataset_moves, file_recovery
from tasks_app.models import Task


class LostOutput(NamedTuple):
    file_id: int
    dataset_id: int
    dataset: str
    lfn: str
    job_id: int


def lose_outputs(cursor: psycopg.Cursor[Any], task_id: int, outputs: Sequence[LostOutput]) -> None:
    """Outputs that finished jobs had made are lost: in the books and in the catalogue. In the caller's transaction."""
    if outputs:
        count_files(cursor, sorted(lose(cursor, task_id, outputs)))
        remove(task_id, outputs)


def lose(
    cursor: psycopg.Cursor[Any], task_id: int, outputs: Sequence[LostOutput]
) -> list[tuple[int, int, int, int, int]]:
    jobs = sorted({output.job_id for output in outputs})
    lost = file_recovery.lose(cursor, task_id, [output.file_id for output in outputs], jobs)
    return [(dataset, 0, 0, files, events) for dataset, files, events in lost]


def remove(task_id: int, outputs: Sequence[LostOutput]) -> None:
    maker = maker_of(Task.objects.only("user").get(pk=task_id))
    by_dataset: dict[str, list[str]] = {}
    for output in outputs:
        by_dataset.setdefault(output.dataset, []).append(output.lfn)
    for dataset, lfns in sorted(by_dataset.items()):
        data_management().remove(dataset, lfns, by=maker)


def count_files(cursor: psycopg.Cursor[Any], counts: Sequence[tuple[int, ...]]) -> None:
    """Rows of (dataset id, inputs again, events of them, outputs lost, events of them), by id."""
    ids = [row[0] for row in counts]
    cursor.execute("SELECT 1 FROM jedi_datasets WHERE datasetid = ANY(%s) ORDER BY datasetid FOR UPDATE", [ids])
    cursor.execute(
        dataset_moves.COUNT_LOST,
        [list(column) for column in zip(*counts, strict=True)],
    )
