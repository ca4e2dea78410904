"""The door for the states of datasets, asked for every pair of states: what the table allows happens, and else a dataset
keeps its state, while what is counted with the move is counted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from jedisite.database.sql import hot_cursor
from tasks_app.domain.states import DATASET_MOVES, DatasetStatus
from tasks_app.lifecycle import dataset_moves, file_moves
from tasks_app.models import Dataset, Task

D = DatasetStatus
TYPES = {
    "input": ("input", "pseudo_input", "pp_input", "random_seed"),
    "output": ("output", "log", "lib", "trn_output"),
}
Make = Callable[..., Dataset]


def became(table: str, old: D, new: D) -> D:
    return new if new in DATASET_MOVES[table].get(old, ()) else old


def in_all_states(task: Task, make_dataset: Make, type: str, **columns: object) -> list[int]:
    return [make_dataset(task, name=old, type=type, status=old, **columns).id for old in D]


def states() -> dict[str, str]:
    return dict(Dataset.objects.values_list("name", "status"))


@pytest.mark.django_db
@pytest.mark.parametrize(("table", "type"), [(table, type) for table, types in TYPES.items() for type in types])
def test_datasets_move_as_their_table_allows(
    make_task: Callable[..., Task], make_dataset: Make, table: str, type: str
) -> None:
    task = make_task()
    for old, new in product(D, D):
        row = make_dataset(task, type=type, status=old)
        assert dataset_moves.move(Dataset.objects.filter(pk=row.id), new, site="S") == 1
        assert Dataset.objects.values_list("status", "site").get(pk=row.id) == (became(table, old, new), "S")


@pytest.mark.django_db
def test_a_dataset_without_a_state_is_taken_for_registered(make_task: Callable[..., Task], make_dataset: Make) -> None:
    for new, kept in ((D.READY, D.READY), (D.RUNNING, None)):
        row = make_dataset(make_task(), status=None)
        dataset_moves.move(Dataset.objects.filter(pk=row.id), new)
        assert Dataset.objects.values_list("status", flat=True).get(pk=row.id) == kept


@pytest.mark.django_db
def test_outputs_that_take_jobs_run_and_the_others_are_counted_only(
    make_task: Callable[..., Task], make_dataset: Make
) -> None:
    ids = in_all_states(make_task(), make_dataset, "output")
    with hot_cursor() as cursor:
        ones = [1] * len(ids)
        cursor.execute(dataset_moves.COUNT_STORED, [ids, ids, ones, ones, ones])
    assert states() == {old: became("output", old, D.RUNNING) for old in D}
    assert set(Dataset.objects.values_list("files", "files_used", flat=False)) == {(1, 1)}


@pytest.mark.django_db
@pytest.mark.parametrize("again", [0, 1])
def test_inputs_that_are_processed_again_are_in_use(
    make_task: Callable[..., Task], make_dataset: Make, again: int
) -> None:
    ids = in_all_states(make_task(), make_dataset, "input", files_finished=5, files_used=5)
    with hot_cursor() as cursor:
        many = [[n] * len(ids) for n in (again, 0, 1, 0)]
        cursor.execute(dataset_moves.COUNT_LOST, [ids, *many])
    assert states() == {old: became("input", old, D.READY) if again else old for old in D}
    assert set(Dataset.objects.values_list("files_finished", flat=True)) == {4 - again}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("finished", "lacks", "new"),
    [(2, False, D.DONE), (2, True, D.FINISHED), (1, False, D.FINISHED), (0, False, D.FAILED)],
)
def test_inputs_end_with_their_task_by_their_files(
    make_task: Callable[..., Task], make_dataset: Make, finished: int, lacks: bool, new: D
) -> None:
    task = make_task()
    ids = in_all_states(task, make_dataset, "input", files=2, files_finished=finished)
    dataset_moves.end_inputs(task.id, ids if lacks else ())
    assert states() == {old: became("input", old, new) for old in D}


@pytest.mark.django_db
def test_inputs_are_opened_as_the_table_allows(make_task: Callable[..., Task], make_dataset: Make) -> None:
    task = make_task()
    file_moves.open_again(task.id, in_all_states(task, make_dataset, "input"))
    assert states() == {old: became("input", old, D.TOUPDATE) for old in D}
