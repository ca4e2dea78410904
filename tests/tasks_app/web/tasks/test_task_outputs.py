"""The tab of a task with what it has made: for whom there is a download, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tasks_app.ddm import output_zips
from tasks_app.models import Dataset, File, Task
from tests.tasks_app.web.conftest import reader

pytestmark = pytest.mark.django_db
__all__ = ["reader"]


@pytest.fixture
def made(make_task: Callable[..., Task]) -> Task:
    """A task of ada with an output dataset of two files, a log, and an output without files."""
    task = make_task(user="ada")
    for number, (name, kind) in enumerate(
        (("user.ada.out", "output"), ("user.ada.log", "log"), ("user.ada.none", "output"))
    ):
        Dataset.objects.create(id=50 + number, task_id=task.id, name=name, type=kind, status="done", files=2)
    for dataset, lfn, size, events in (
        (50, "a.root", 1_000_000, 10),
        (50, "b.root", 2_500_000, 20),
        (51, "a.log.tgz", 500, None),
    ):
        File.objects.create(
            task_id=task.id,
            dataset_id=dataset,
            lfn=lfn,
            size=size,
            events=events,
            status="finished",
            surl="file:///x",
            type="log" if dataset == 51 else "output",
            scope="user.ada",
        )
    File.objects.create(task_id=task.id, dataset_id=9, lfn="in.root", type="input", status="finished")
    return task


def page(client: Client, task: Task, query: str = "") -> str:
    answer = client.get(f"/tasks/{task.id}/outputs/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_owner_sees_sizes_and_downloads_files_and_zips(reader: Client, made: Task) -> None:
    shown = page(reader, made)
    assert "Download all outputs (zip, 3.5 MB)" in shown and f"/api/v2/tasks/{made.id}/outputs.zip" in shown
    assert f"/api/v2/tasks/{made.id}/outputs.zip?dataset=user.ada.out" in shown
    assert "dataset=user.ada.none" not in shown and "dataset=user.ada.log" not in shown
    for file in File.objects.filter(type__in=("output", "log")):
        assert f"/api/v2/files/{file.id}/content" in shown
    assert "in.root" not in shown, "an input is no output"
    assert "a.log.tgz" not in page(reader, made, "?type=output")


def test_others_see_what_there_is_and_who_may_have_it(client: Client, make_user: Any, made: Task) -> None:
    client.force_login(make_user("bob"))
    shown = page(client, made)
    assert "a.root" in shown and "3.5 MB" in shown
    assert "outputs.zip" not in shown and "/content" not in shown
    assert "The files can be downloaded by ada, members of the task" in shown


def test_what_is_too_large_for_a_zip_says_how_to_have_it(reader: Client, made: Task) -> None:
    File.objects.filter(lfn="a.root").update(size=output_zips.MOST_BYTES)
    shown = page(reader, made)
    assert "outputs.zip" not in shown and "too large for a zip" in shown
    assert f"manage.py download {made.id}" in shown and "task.download(folder)" in shown


def test_a_task_without_outputs_says_so(reader: Client, make_task: Callable[..., Task]) -> None:
    assert "No output datasets yet" in page(reader, make_task(user="ada"))
