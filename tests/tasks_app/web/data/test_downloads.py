"""Pages link to the files that may be fetched, and to no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tasks_app.models import CatalogueDataset, Dataset, File, Job, JobFile, Task

pytestmark = pytest.mark.django_db


def test_owners_and_operators_find_links_to_what_was_made(
    client: Client,
    ada: User,
    make_task: Callable[..., Task],
    make_job: Callable[..., Job],
    make_dataset: Callable[..., Dataset],
) -> None:
    task = make_task(user="ada", working_group="phys-higgs")
    dataset = make_dataset(task, type="output", name="user.ada.out")
    job = make_job(task_id=task.id, status="finished", user="ada", working_group="phys-higgs")
    fetched, others = [], []
    for lfn, type, surl in (
        ("a.root", "output", "file://localhost/x"),
        ("x.log.tgz", "log", "file://localhost/y"),
        ("later.root", "output", None),
        ("in.root", "input", "file://localhost/z"),
    ):
        values: dict[str, Any] = {"lfn": lfn, "type": type, "surl": surl, "status": "finished", "task_id": task.id}
        file = File.objects.create(dataset_id=dataset.id, **values)
        JobFile.objects.create(job_id=job.id, file_id=file.id, dataset_id=dataset.id, **values)
        (fetched if lfn in ("a.root", "x.log.tgz") else others).append(f'href="/api/v2/files/{file.id}/content"')
    pages = [f"/tasks/{task.id}/inputs/?view=all", f"/data/{dataset.id}/?view=all", f"/jobs/{job.id}/"]

    catalogued = CatalogueDataset.objects.create(name=dataset.name, scope="user.ada", owner="ada")
    client.force_login(ada)
    assert (
        f'href="/data/catalogue/{catalogued.id}/">in the local catalogue</a>' in client.get(pages[0]).content.decode()
    )

    def links(path: str) -> list[bool]:
        text = client.get(path).content.decode()
        assert not any(link in text for link in others)
        return [link in text for link in fetched]

    client.force_login(ada)
    assert [links(path) for path in pages] == [[True, True]] * 3
    assert fetched[1] in client.get(f"/jobs/{job.id}/log/").content.decode()
    client.force_login(User.objects.create_superuser("grace"))
    assert [links(path) for path in pages] == [[True, True]] * 3
    client.force_login(User.objects.create_user("eve"))
    assert [links(path) for path in pages] == [[False, False]] * 3
    assert fetched[1] not in client.get(f"/jobs/{job.id}/log/").content.decode()
