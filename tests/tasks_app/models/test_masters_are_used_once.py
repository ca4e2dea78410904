"""Datasets of tasks that were refined before the files of a master were used once whatever its attributes said."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from django.db import connection

from tasks_app.models import Dataset
from tasks_app.params.dataset_attributes import is_tracked

pytestmark = pytest.mark.django_db


def test_masters_of_older_tasks_are_used_once_too(
    make_task: Callable[..., Any], make_dataset: Callable[..., Any]
) -> None:
    task = make_task()
    given = ("nosplit", "repeat,manytime, nosplit,ratio=2", "ru,ic", "manytime,run", None)
    masters = [make_dataset(task, attributes=words) for words in given]
    second = make_dataset(task, attributes="repeat,nosplit", master_id=masters[0].id)
    made = make_dataset(task, type="output", attributes="nosplit")
    with connection.cursor() as cursor:
        cursor.execute(import_module("tasks_app.migrations.0027_masters_are_used_once").USED_ONCE)
    kept = dict(Dataset.objects.values_list("id", "attributes"))
    assert [kept[master.id] for master in masters] == ["", "manytime,ratio=2", "ic", "manytime,run", None]
    assert all(is_tracked(kept[master.id] or "") for master in masters)
    assert (kept[second.id], kept[made.id]) == ("repeat,nosplit", "nosplit")
