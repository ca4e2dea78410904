"""The outputs of a task in one zip: what is in it, for whom, up to which size, and how many at a time."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tasks_app.ddm import output_zips
from tasks_app.models import Dataset, File, Task
from tests.tasks_app.api.v2.test_content import CONTENT, Store, place_of, refusal, store

pytestmark = pytest.mark.django_db
__all__ = ["store"]


@pytest.fixture
def task(store: Store, settings: Any, tmp_path: Path) -> Task:
    settings.JEDI_HOME = tmp_path
    made = Task.objects.get()
    for number, name in ((1, "user.ada.out"), (2, "user.ada.more/"), (3, "user.ada.log")):
        kind = "log" if number == 3 else "output"
        Dataset.objects.create(
            id=number, task_id=made.id, name=name, type=kind, status="done", files=1, files_finished=1
        )
    return made


def address(task: Task, dataset: str = "") -> str:
    return f"/api/v2/tasks/{task.id}/outputs.zip" + (f"?dataset={dataset}" if dataset else "")


def unpacked(answer: Any) -> dict[str, bytes]:
    assert answer.status_code == 200, b"".join(answer.streaming_content)[:300]
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as packed:
        assert packed.testzip() is None
        found = {one.filename: packed.read(one) for one in packed.infolist()}
    answer.close()
    return found


def test_a_zip_has_the_outputs_and_no_log(api: Any, store: Store, task: Task) -> None:
    store()
    store(b"2", "second.txt", dataset_id=2)
    store(b"log", "a.log.tgz", dataset_id=3, type="log")
    store(b"not yet", "later.root", status="running")
    answer = api(name="ada").get(address(task))
    assert answer["Content-Type"] == "application/zip"
    assert answer["Content-Disposition"] == f'attachment; filename="task.{task.id}.outputs.zip"'
    assert (answer["Accept-Ranges"], answer["X-Content-Type-Options"]) == ("none", "nosniff")
    assert unpacked(answer) == {"user.ada.out/out.root": CONTENT, "user.ada.more/second.txt": b"2"}


def test_a_zip_of_one_dataset_has_no_folder(api: Any, store: Store, task: Task) -> None:
    store()
    store(b"2", "second.txt", dataset_id=2)
    answer = api(name="ada").get(address(task, "user.ada.more/"))
    assert answer["Content-Disposition"] == 'attachment; filename="user.ada.more.zip"'
    assert unpacked(answer) == {"second.txt": b"2"}


@pytest.mark.parametrize("lfn", ['we "ird\r\nX: y é.txt', "..hidden", "-rf", "a b", "C:evil"])
def test_no_name_leads_out_of_the_folder_into_which_a_zip_is_unpacked(
    api: Any, store: Store, task: Task, lfn: str
) -> None:
    store(b"x", lfn)
    (name,) = unpacked(api(name="ada").get(address(task)))
    assert "/" not in name and not name.startswith(".") and not set(name) & set(' :"\r\n\\') and name.isascii()


def test_two_files_of_one_name_are_both_there(api: Any, store: Store, task: Task) -> None:
    first = store(b"x", "a b")
    second = store(b"y", "a:b")
    assert unpacked(api(name="ada").get(address(task))) == {"a_b": b"x", f"{second.id}.a_b": b"y"}
    assert first.id != second.id


def test_only_those_who_may_have_the_files_get_them(api: Any, store: Store, task: Task) -> None:
    store()
    assert "belongs to ada" in refusal(api(name="bob").get(address(task)), 403)
    assert unpacked(api("shifter").get(address(task))) == {"out.root": CONTENT}
    assert Client().get(address(task)).status_code == 401


def test_what_is_missing_is_named_and_nothing_is_sent(api: Any, store: Store, task: Task) -> None:
    assert "has no finished outputs" in refusal(api(name="ada").get(address(task)), 404)
    store()
    gone = store(b"2", "second.txt")
    place_of(gone).unlink()
    assert "second.txt is no longer in this site's storage" in refusal(api(name="ada").get(address(task)), 404)
    File.objects.filter(pk=gone.id).update(surl="root://elsewhere.org//second.txt")
    assert "which is not in a storage that this site serves" in refusal(api(name="ada").get(address(task)), 409)
    said = api(name="ada").get(address(task, "user.ada.otu")).json()["errors"][0]
    assert said["field"] == "dataset" and "it has user.ada.out, user.ada.more/" in said["message"]
    assert "There is no such parameter. Did you mean dataset?" in str(
        api(name="ada").get(address(task) + "?datset=x").json()
    )


def test_outputs_that_are_too_large_are_refused_before_anything_is_read(api: Any, store: Store, task: Task) -> None:
    store(b"x", size=output_zips.MOST_BYTES + 1)
    said = refusal(api(name="ada").get(address(task)), 409).replace("\u202f", " ")
    assert said.startswith(
        f"Task {task.id} has made 1 output of 200 000 001 bytes in all; one zip holds at most 1000 files"
    )
    assert "task.download(folder)" in said
    File.objects.update(size=1)
    rows = [
        File(task_id=task.id, dataset_id=1, type="output", status="finished", lfn=f"f{n}", surl="x")
        for n in range(1000)
    ]
    File.objects.bulk_create(rows)
    assert "has made 1001 outputs" in refusal(api(name="ada").get(address(task)), 409)


def test_zips_that_are_still_being_sent_keep_their_places(api: Any, store: Store, task: Task, settings: Any) -> None:
    """As the web server sends them: from copies of the descriptor, after the answer itself is closed."""
    store()
    sent = []
    for _ in range(output_zips.OF_ONE):
        with output_zips.made(output_zips.outputs_of(task.id), "ada") as stream:
            sent.append(os.dup(stream.fileno()))
    refused = api(name="ada").get(address(task))
    assert "still being sent" in refusal(refused, 503) and refused["Retry-After"] == "10"
    os.close(sent.pop())
    assert unpacked(api(name="ada").get(address(task))) == {"out.root": CONTENT}
    os.close(sent.pop())
    assert len(list((settings.JEDI_HOME / "zips").iterdir())) == output_zips.OF_ONE
