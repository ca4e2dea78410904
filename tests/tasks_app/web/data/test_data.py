"""The pages on data."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.models import DatasetReplica, ReplicaLookup
from tasks_app.models import CatalogueDataset, CatalogueFile, Dataset, File, Task
from tests.tasks_app.web.lists.test_listing import Table
from tests.tasks_app.web.test_pages import MOST_QUERIES

pytestmark = pytest.mark.django_db
TITLES = ("in use", "not all ready", "stuck", "missing", "known", "whole")


@pytest.fixture
def inputs(make_task: Callable[..., Task]) -> dict[str, Dataset]:
    """Inputs of an open task: whole, in part, nowhere and missing, numbers; one of a task that has ended, and an output."""
    made = {}
    reading, ended = make_task(), make_task(status="done")
    make_task(status="staging", name="waits.for.tape")
    old = timezone.now() - timedelta(days=2)
    for name, task, values in (
        ("whole", reading, {"files_to_be_used": 10, "files_finished": 4, "files_used": 6, "files_failed": 1}),
        ("part", reading, {"files_to_be_used": 4, "modification_time": old}),
        ("nowhere", reading, {"files_to_be_used": 8, "files_missing": 2, "type": "input"}),
        ("seq_number", reading, {"files_to_be_used": 10, "type": "pseudo_input"}),
        ("over", ended, {"files_to_be_used": 10}),
        ("out", reading, {"files_to_be_used": 0, "type": "output"}),
        ("whole", make_task(), {"files_to_be_used": 10}),
    ):
        made.setdefault(
            name,
            Dataset.objects.create(task=task, name=name, **{"type": "input", "status": "ready", "files": 10, **values}),
        )
    for name, endpoint, whole in (("whole", "SE_1", True), ("whole", "SE_2", False), ("part", "SE_2", False)):
        DatasetReplica.objects.create(
            dataset=name, endpoint=endpoint, files=10 if whole else 3, bytes=10**9, complete=whole
        )
        ReplicaLookup.objects.get_or_create(dataset=name)
    return made


def test_inputs_in_use_are_counted_listed_and_exported(
    reader: Client, inputs: dict[str, Dataset], django_assert_max_num_queries: Any
) -> None:
    reader.get("/data/?in_use=true")
    with django_assert_max_num_queries(MOST_QUERIES):
        page = reader.get("/data/?in_use=true")
    found = dict(zip(TITLES, page.context["tiles"], strict=True))
    numbers = {title: (tile.figure.value, tile.figure.more) for title, tile in found.items()}
    assert numbers == {
        "in use": ("4", ""),
        "not all ready": ("2", "8 files"),
        "stuck": ("1", ""),
        "missing": ("1", "2 files"),
        "known": ("1", ""),
        "whole": ("1", ""),
    }
    for title, tile in found.items():
        linked = reader.get(tile.url)
        assert not linked.context["faults"] and str(linked.context["counted"].total) == numbers[title][0], title
        answer: Any = reader.get(dict(linked.context["export_forms"])["CSV"])
        exported = list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode(), newline="")))
        assert exported[1:] == Table(linked.content.decode()).rows, title
    text = page.content.decode()
    assert "waits.for.tape" in text.replace("<wbr>", "") and "oldest answer" in text
    shown = reader.get(
        "/data/?in_use=true&name=whole&columns=name,replicas,partial_replicas,readers,not_ready,files_finished"
    )
    assert {tuple(row) for row in Table(shown.content.decode()).rows} == {
        ("whole", "1", "1", "2", "0", "4"),
        ("whole", "1", "1", "2", "0", "0"),
    }
    assert 'href="/data/?in_use=true&amp;name=whole">2</a>' in shown.content.decode()
    Task.objects.update(status="done")
    assert "No dataset matches <em>Input of an open task = true" in reader.get("/data/?in_use=true").content.decode()


def test_numbers_are_nobody_elses_data(
    reader: Client, inputs: dict[str, Dataset], make_task: Callable[..., Task]
) -> None:
    another = Dataset.objects.create(task=make_task(), name="seq_number", type="pseudo_input", status="ready", files=10)
    page = reader.get(f"/data/{another.id}/")
    assert not page.context["others"] and "No other task reads or writes this dataset." in page.content.decode()
    assert reader.get(f"/data/{inputs['whole'].id}/").context["others"]


FILTERS = (
    "contains=ove",
    "name=over",
    "in_use=false",
    "task_status=done",
    "type=output",
    "task={ended}",
    "status=done",
    "view=all",
    "user=scientist&name=over",
)


@pytest.mark.parametrize("query", FILTERS)
def test_a_filter_of_data_finds_what_the_api_finds(reader: Client, inputs: dict[str, Dataset], query: str) -> None:
    Dataset.objects.filter(name="over").update(status="done")
    Task.objects.filter(pk=inputs["over"].task_id).update(user="scientist")
    query = query.format(ended=inputs["over"].task_id)
    api = reader.get(f"/api/v2/datasets/?{query.replace('view=all', '')}").json()["results"]
    page = reader.get(f"/data/?{query}&columns=id")
    assert api and [row[0] for row in Table(page.content.decode()).rows] == [str(row["id"]) for row in api]
    answer: Any = reader.get(dict(page.context["export_forms"])["CSV"])
    assert len(b"".join(answer.streaming_content).splitlines()) == len(api) + 1


def test_data_begins_with_the_inputs_of_open_tasks_and_says_so(reader: Client, inputs: dict[str, Dataset]) -> None:
    assert reader.get("/data/")["Location"] == "/data/?in_use=true"
    assert reader.get("/data/?vo=lab")["Location"] == "/data/?vo=lab&in_use=true"
    page = reader.get("/data/?vo=lab&in_use=true")
    (chip,) = page.context["chips"]
    assert (chip.title, chip.value, chip.off_url) == ("Input of an open task", "true", "/data/?vo=lab&view=all")
    assert page.context["counted"].total == 4
    assert reader.get(chip.off_url).context["counted"].total == len(inputs) + 1
    assert reader.get("/data/?vo=lab&in_use=&name=")["Location"] == chip.off_url
    form = {"page": "data", "name": "mine", "query": "type=output", "is_usual": "on"}
    reader.post("/views/save/", form)
    assert reader.get("/data/")["Location"] == "/data/?type=output"


def test_a_dataset_has_places_other_uses_and_its_files(
    reader: Client, inputs: dict[str, Dataset], django_assert_max_num_queries: Any
) -> None:
    dataset = inputs["whole"]
    for number in range(60):
        File.objects.create(
            task_id=dataset.task_id,
            dataset_id=dataset.id,
            lfn=f"f<{number}>",
            type="input",
            status="staging" if number % 2 else "finished",
        )
    with django_assert_max_num_queries(MOST_QUERIES):
        page = reader.get(f"/data/{dataset.id}/")
    text = page.content.decode()
    assert page.context["summary"] == "50 of 60 files" and "SE_2" in text and "4 of 10 files finished" in text
    assert "f&lt;0&gt;" in text and len(page.context["others"]) == 1 and "1.0 GB" in text
    staging = reader.get(f"/data/{dataset.id}/?status=staging")
    assert len(Table(staging.content.decode()).rows) == 30
    answer: Any = reader.get(dict(staging.context["export_forms"])["CSV"])
    assert len(b"".join(answer.streaming_content).splitlines()) == 31
    assert "Not queried" in reader.get(f"/data/{inputs['nowhere'].id}/").content.decode()
    assert "numbers instead of files" in reader.get(f"/data/{inputs['seq_number'].id}/").content.decode()
    for missing in (0, 10**30):
        assert reader.get(f"/data/{missing}/").status_code == 404


@pytest.mark.parametrize(
    ("use", "finished", "seen"),
    [
        ("log", 6, "finished"),
        ("output", 2, "finished"),
        ("output", 0, "failed"),
        ("lib", 0, "failed"),
        ("input", 6, "failed"),
    ],
)
def test_the_badge_of_what_a_failed_task_has_made_does_not_contradict_its_files(
    reader: Client, make_task: Callable[..., Task], use: str, finished: int, seen: str
) -> None:
    task = make_task(status="failed")
    dataset = Dataset.objects.create(
        task=task, name="made", type=use, status="failed", files=6, files_to_be_used=6, files_finished=finished
    )
    assert reader.get(f"/api/v2/datasets/{dataset.id}/").json()["status"] == "failed"
    listed = (
        reader.get(f"/data/?task={task.id}&columns=status")
        .content.decode()
        .partition("<tbody>")[2]
        .partition("</a>")[0]
    )
    head = reader.get(f"/data/{dataset.id}/").content.decode().partition("<h1>")[2].partition("</h1>")[0]
    row = reader.get(f"/tasks/{task.id}/").content.decode().partition(f"/data/{dataset.id}/")[2]
    badge = row.partition('data-label="Status">')[2].partition("</td>")[0]
    assert [text.strip().endswith(f"{seen}</span>") for text in (listed, head, badge)] == [True] * 3


@pytest.fixture
def catalogued() -> dict[str, CatalogueDataset]:
    """A dataset of 60 files that no task has used, one that a task has, an empty one, and a container of the first two."""
    made = {
        name: CatalogueDataset.objects.create(name=name, scope="user.ada", open=is_open, **more)
        for name, is_open, more in (
            ("user.ada.measured", False, {"owner": "ada", "made_by_task": 7}),
            ("user.ada.used", True, {}),
            ("user.ada.empty", True, {}),
            ("user.ada.box/", True, {"owner": "ada"}),
        )
    }
    CatalogueFile.objects.bulk_create(
        CatalogueFile(
            dataset=made[name],
            lfn=f"<{name}>.{number:03d}",
            scope="user.ada",
            guid=str(number),
            size=1_000_000,
            adler32="0badcafe",
            events=5,
            endpoint="LOCAL_SE",
            url=f"file://localhost/secret/{number}",
        )
        for name, count in (("user.ada.measured", 60), ("user.ada.used", 2))
        for number in range(count)
    )
    made["user.ada.box/"].members.add(made["user.ada.measured"], made["user.ada.used"])
    return made


def test_a_dataset_of_the_catalogue_that_no_task_has_used_is_found_and_has_a_page(
    reader: Client, catalogued: dict[str, CatalogueDataset], django_assert_max_num_queries: Any
) -> None:
    dataset = catalogued["user.ada.measured"]
    url = f"/data/catalogue/{dataset.id}/"
    assert reader.get("/search/", {"q": dataset.name})["Location"] == url
    with django_assert_max_num_queries(MOST_QUERIES):
        page = reader.get(url)
    text = page.content.decode().replace("\u202f", " ")
    for said in (
        "A dataset of the local catalogue: closed; 60 files, 60",
        "/users/ada/",
        "/tasks/7/",
        "user.ada.box/",
    ):
        assert said in text.replace("<wbr>", ""), said
    assert "No task reads or writes this dataset" in text and "secret" not in text and "<user" not in text
    assert page.context["page"].summary == "50 of 60" and "measured" in page.context["files"].rows[0].lfn
    behind = reader.get(page.context["page"].next_url)
    assert [file.lfn[-3:] for file in behind.context["files"].rows] == [str(n).zfill(3) for n in range(50, 60)]
    assert behind.context["page"].next_url == "" and behind.context["page"].first_url == url
    assert reader.get(f"{url}?after=%00zzzz").context["files"].rows == []
    assert reader.get("/data/catalogue/99/").status_code == reader.get(f"/data/catalogue/{2**63}/").status_code == 404


def test_containers_and_datasets_of_the_catalogue_lead_to_each_other_and_to_their_uses(
    reader: Client, catalogued: dict[str, CatalogueDataset], make_task: Callable[..., Task], make_dataset: Any
) -> None:
    box, used = catalogued["user.ada.box/"], catalogued["user.ada.used"]
    for text in ("user.ada.box", "user.ada.box/"):
        assert reader.get("/search/", {"q": text})["Location"] == f"/data/catalogue/{box.id}/"
    page = reader.get(f"/data/catalogue/{box.id}/")
    assert [member.name for member in page.context["members"].rows] == ["user.ada.measured", "user.ada.used"]
    assert "62 files" in page.content.decode()
    use = make_dataset(make_task(), name=used.name, files=2)
    assert reader.get("/search/", {"q": used.name})["Location"] == f"/data/catalogue/{used.id}/", (
        "not one that may have failed"
    )
    elsewhere = make_dataset(make_task(), name="mc.elsewhere", files=2)
    assert reader.get("/search/", {"q": "mc.elsewhere"})["Location"] == f"/data/{elsewhere.id}/"
    assert f"/data/catalogue/{used.id}/" in reader.get(f"/data/{use.id}/").content.decode()
    assert f"/data/{use.id}/" in reader.get(f"/data/catalogue/{used.id}/").content.decode()
    empty = reader.get(f"/data/catalogue/{catalogued['user.ada.empty'].id}/").content.decode()
    assert "0 files" in empty and "this site" in empty and "None yet." in empty
