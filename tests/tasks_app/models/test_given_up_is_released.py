"""Inputs of tasks that were finished while they scouted, before what is given up counted as released."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from django.db import connection

from tasks_app.models import Dataset
from tests.locks import waits


def correct() -> None:
    with connection.cursor() as cursor:
        cursor.execute(import_module("tasks_app.migrations.0032_given_up_is_released").GIVEN_UP)


@pytest.mark.django_db
def test_what_older_tasks_gave_up_counts_as_released(
    make_task: Callable[..., Any], make_dataset: Callable[..., Any]
) -> None:
    task = make_task(status="finished", split_rule="NF=1,US=2")
    counts = ((15, 10, 15), (15, 10, 7), (15, 15, 15))
    inputs = [make_dataset(task, files=n, files_to_be_used=share, files_used=used) for n, share, used in counts]
    second = make_dataset(task, files=3, files_to_be_used=1, files_used=2, master_id=inputs[0].id)
    made = make_dataset(task, type="output", files=3, files_to_be_used=1, files_used=2)
    correct()
    kept = dict(Dataset.objects.values_list("id", "files_to_be_used"))
    assert [kept[row.id] for row in inputs] == [15, 10, 15]
    assert kept[second.id] == kept[made.id] == 1


@pytest.mark.usefixtures("tables")
def test_datasets_are_locked_in_the_order_in_which_agents_lock_them(
    make_task: Callable[..., Any], make_dataset: Callable[..., Any]
) -> None:
    task = make_task(status="finished", split_rule="NF=1,US=2")
    first, last = (make_dataset(task, files=15, files_to_be_used=10, files_used=15).id for _ in range(2))
    waits(("jedi_datasets", "datasetid", first), correct, free=("jedi_datasets", "datasetid", last))
    assert set(Dataset.objects.values_list("files_to_be_used", flat=True)) == {15}
