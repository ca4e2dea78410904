"""The doors for the states of input files, asked for files in every state: what they move is in the table of moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tasks_app.domain.states import FILE_MOVES, FileStatus
from tasks_app.inputs import changes
from tasks_app.inputs.file_rows import FeedTarget
from tasks_app.lifecycle import file_moves
from tasks_app.models import Dataset, File, Task

F = FileStatus
Door = Callable[[Task, Dataset], object]


def target(task: Task, dataset: Dataset) -> FeedTarget:
    return FeedTarget(task.id, dataset.id, "input", 3, None, keep_track=True, fence=task.fence)


DOORS: dict[str, tuple[Door, dict[F, F]]] = {
    "staged": (lambda t, d: file_moves.note_staged(t.id, [d.id], None), {F.STAGING: F.PENDING}),
    "released": (lambda t, d: file_moves.release_staging(t.id), {F.STAGING: F.PENDING}),
    "no longer waited for": (lambda t, d: file_moves.stop_waiting(t.id), {F.STAGING: F.READY, F.PENDING: F.READY}),
    "given up": (lambda t, d: file_moves.give_up(t.id), {F.STAGING: F.READY, F.PENDING: F.READY}),
    "there again": (
        lambda t, d: changes.find_again(target(t, d), [*F], status="pending"),
        {F.LOST: F.PENDING, F.MISSING: F.PENDING},
    ),
    "ready again": (
        lambda t, d: changes.find_again(target(t, d), [*F], status="ready"),
        {F.LOST: F.READY, F.MISSING: F.READY},
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize("name", DOORS)
def test_files_move_as_the_table_allows(
    make_task: Callable[..., Task], make_dataset: Callable[..., Dataset], name: str
) -> None:
    door, moves = DOORS[name]
    assert all(new in FILE_MOVES["input"][old] for old, new in moves.items())
    task = make_task()
    dataset = make_dataset(task, files=len(F), files_missing=len(F))
    for status in F:
        File.objects.create(
            task_id=task.id,
            dataset_id=dataset.id,
            type="input",
            lfn=status,
            status=status,
            keep_track=1,
            max_attempt=3,
            attempt=1,
        )
    door(task, dataset)
    assert dict(File.objects.values_list("lfn", "status")) == {old: moves.get(old, old) for old in F}
