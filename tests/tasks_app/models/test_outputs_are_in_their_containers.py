"""Outputs of tasks that ran again when a retry did not yet put them back where they belong."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from django.db import connection

from tasks_app.models import CatalogueDataset

pytestmark = pytest.mark.django_db


def test_outputs_of_older_tasks_are_put_back_into_their_containers(
    make_task: Callable[..., Any], make_dataset: Callable[..., Any]
) -> None:
    task, box = make_task(), CatalogueDataset.objects.create(name="user.ada.out/", scope="user.ada", owner="ada")
    cases = {"user.ada.out.1": ("ada", task.id), "user.ada.out.2": ("ada", 7), "user.ada.out.3": ("bob", task.id)}
    for name, (owner, maker) in cases.items():
        CatalogueDataset.objects.create(name=name, scope="user.ada", owner=owner, made_by_task=maker)
        make_dataset(task, type="output", name=name, container_name=box.name)
    make_dataset(task, type="output", name="user.ada.out.4", container_name=box.name)
    with connection.cursor() as cursor:
        for _ in range(2):
            cursor.execute(
                import_module("tasks_app.migrations.0028_outputs_are_in_their_containers").IN_THEIR_CONTAINERS
            )
    assert [member.name for member in box.members.all()] == ["user.ada.out.1"]
