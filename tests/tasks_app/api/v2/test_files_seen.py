"""Inputs that have failed for good are shown and found as failed, although the agents have them as ready."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tasks_app.models import File, Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def task(make_task: Callable[..., Task], make_dataset: Callable[..., Any]) -> Task:
    made = make_task(status="finished")
    read, written = make_dataset(made, type="input", name="lab.in"), make_dataset(made, type="output", name="lab.out")
    for lfn, dataset, values in (
        ("done", read, {"status": "finished", "attempt": 4, "max_attempt": 4}),
        ("tried", read, {"status": "ready", "attempt": 1, "max_attempt": 4, "failed_attempt": 1, "max_failure": 2}),
        ("used up", read, {"status": "ready", "attempt": 4, "max_attempt": 4, "failed_attempt": 4}),
        ("failed", read, {"status": "ready", "attempt": 2, "max_attempt": 4, "failed_attempt": 2, "max_failure": 2}),
        ("unlimited", read, {"status": "ready", "attempt": 9}),
        ("of a job", written, {"status": "failed", "attempt": 0}),
        ("to be merged", written, {"status": "ready", "attempt": 1, "max_attempt": 1}),
    ):
        File.objects.create(task_id=made.id, dataset_id=dataset.id, lfn=lfn, type=dataset.type, **values)
    return made


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=failed", {"used up", "failed", "of a job"}),
        ("status=failed&type=input", {"used up", "failed"}),
        ("status=ready", {"tried", "unlimited", "to be merged"}),
        ("status=ready,failed&type=input", {"tried", "used up", "failed", "unlimited"}),
        ("unfinished=true&status=failed", {"used up", "failed", "of a job"}),
    ],
)
def test_files_are_found_in_the_state_in_which_they_are_shown(
    api: Callable[..., Client], task: Task, query: str, found: set[str]
) -> None:
    answer = api().get(f"/api/v2/tasks/{task.id}/files/?{query}").json()
    assert {row["lfn"] for row in answer["results"]} == found
    assert {row["status"] for row in answer["results"]} <= set(query.split("status=")[1].split("&")[0].split(","))


def test_the_other_lists_and_the_page_say_the_same(api: Callable[..., Client], task: Task) -> None:
    read = task.datasets.get(type="input")
    reader = api()
    for path in (f"/api/v2/datasets/{read.id}/files/?", "/api/v2/files/?lfn=used%20up&"):
        rows = {row["lfn"]: row["status"] for row in reader.get(f"{path}status=failed").json()["results"]}
        assert rows and set(rows) <= {"used up", "failed"} and set(rows.values()) == {"failed"}, path
    export: Any = reader.get(f"/api/v2/tasks/{task.id}/files/?format=csv&columns=lfn,status")
    lines = export.getvalue().decode().splitlines()
    assert "used up,failed" in lines and "tried,ready" in lines
