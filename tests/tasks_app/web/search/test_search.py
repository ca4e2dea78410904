"""The search: a number or full name opens its page, words list what has them, and nothing that people type breaks it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokerage_app.models import GlobalShare, WorkQueue
from tasks_app.domain import search_words
from tasks_app.failures.booking import book_ends
from tasks_app.models import CatalogueDataset, CatalogueFile, Dataset, File, Job, JobArchive, JobEndDue, Task
from tasks_app.web.search.finding import find
from tests.tasks_app.web.workflows.some_workflows import in_part
from tests.thorough import cases

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12


def found(text: str, most: int = 5) -> dict[str, list[str]]:
    return {group.kind: [one.name for one in group.found] for group in find(text, most)}


def opened(reader: Client, text: str) -> str:
    answer = reader.get("/search/", {"q": text})
    assert answer.status_code == 302, text
    return str(answer["Location"])


@pytest.fixture
def failures(make_task: Callable[..., Task], make_job: Callable[..., Job], sites: None) -> list[Job]:
    """Three jobs that failed in the same way on a node of SITE_A, with numbers of their own in the message."""
    now, task = timezone.now(), make_task()
    jobs = [
        make_job(
            task_id=task.id,
            status="failed",
            site="SITE_A",
            worker_node=f"slot{n}@wn-17.lab.example",
            pilot_error_code=1099,
            pilot_error_diag=f"Failed to stage in file {n}: no space left on device",
            state_change_time=now - timedelta(days=2),
            start_time=now - timedelta(days=2, hours=1),
        )
        for n in range(1, 4)
    ]
    JobEndDue.objects.bulk_create(JobEndDue(id=job.id) for job in jobs)
    book_ends(1000)
    return jobs


def test_a_number_opens_its_page(reader: Client, busy_task: Task, failed_job: Job) -> None:
    assert opened(reader, str(busy_task.id)) == f"/tasks/{busy_task.id}/"
    assert opened(reader, str(failed_job.id)) == f"/jobs/{failed_job.id}/"


def test_a_job_of_the_archive_is_opened(reader: Client, failed_job: Job) -> None:
    row = {f.attname: getattr(failed_job, f.attname) for f in JobArchive._meta.concrete_fields}
    JobArchive.objects.create(**row | {"id": failed_job.id + 1000})
    assert opened(reader, str(failed_job.id + 1000)) == f"/jobs/{failed_job.id + 1000}/"


def test_a_full_name_opens_its_page(
    reader: Client, sites: None, make_task: Callable[..., Task], make_dataset: Callable[..., Dataset], ada: User
) -> None:
    User.objects.filter(pk=ada.pk).update(first_name="Ada", last_name="Lovelace")
    task = make_task(name="user.ada.one")
    bystander = make_task(name="user.ada.one.more", user="gone")
    make_dataset(task, name="mc.input")
    use = make_dataset(bystander, name="mc.input")
    kept = CatalogueDataset.objects.create(name="user.ada.kept", scope="user.ada", owner="ada")
    CatalogueFile.objects.create(
        dataset=kept,
        lfn="EVNT.0017.root",
        scope="user.ada",
        guid="g",
        size=1,
        adler32="0badcafe",
        endpoint="E",
        url="file:///x",
    )
    File.objects.create(task_id=task.id, dataset_id=use.id, lfn="AOD.0018.root", type="input", status="ready")
    queue = WorkQueue.objects.create(name="urgent_prod", type="managed", vo="lab", order=1)
    GlobalShare.objects.create(name="Upgrade", value=10)
    for text, path in (
        ("user.ada.one", f"/tasks/{task.id}/"),
        ("SITE_B", "/sites/SITE_B/"),
        ("site_b", "/sites/SITE_B/"),
        ("ada", "/users/ada/"),
        ("Ada", "/users/ada/"),
        ("ada lovelace", "/users/ada/"),
        ("gone", "/users/gone/"),
        ("mc.input", f"/data/{use.id}/"),
        ("EVNT.0017.root", f"/data/catalogue/{kept.id}/"),
        ("AOD.0018.root", f"/data/{use.id}/"),
        ("urgent_prod", f"/queues/{queue.id}/"),
        ("upgrade", "/shares/Upgrade/"),
        ("low_memory", "/help/codes/low_memory/"),
    ):
        assert opened(reader, text) == path, text


def test_words_list_what_has_them_by_kind(
    reader: Client,
    sites: None,
    make_task: Callable[..., Task],
    make_dataset: Callable[..., Dataset],
    django_assert_max_num_queries: Any,
) -> None:
    tasks = [make_task(name=f"mc23_13p6TeV.ttbarDilep_{n}.evgen") for n in range(7)]
    make_dataset(tasks[0], name="mc23_13p6TeV.ttbarDilep.AOD")
    for text in ("ttbar", "TTBAR dilep", "mc23 ttbarDil", "Dilep 13", "TeV.ttbar"):
        names = found(text)
        assert names["task"] == [task.name for task in reversed(tasks[2:])], text
        assert names["dataset"] == ["mc23_13p6TeV.ttbarDilep.AOD"], text
    assert found("bar") == found("ttbar nothing") == {}
    with django_assert_max_num_queries(MOST_QUERIES):
        text = reader.get("/search/", {"q": "ttbar"}).content.decode()
    assert 'Tasks <span class="count">7</span>' in text and 'Datasets <span class="count">1</span>' in text
    more = reader.get("/search/?q=ttbar&kind=task").content.decode()
    assert all(f"/tasks/{task.id}/" in more for task in tasks) and "/data/" not in more.partition("<h1")[2]


def test_what_shares_a_name_is_listed(
    reader: Client, make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]
) -> None:
    first, second = make_task(name="user.ada.<b>x"), make_task(name="user.ada.<b>x")
    use = make_dataset(second, name="user.ada.<b>x")
    text = reader.get("/search/", {"q": "user.ada.<b>x"}).content.decode()
    for path in (f"/tasks/{first.id}/", f"/tasks/{second.id}/", f"/data/{use.id}/"):
        assert f'href="{path}"' in text
    assert "<b>x" not in text


def test_a_workflow_is_found_by_its_name_and_number(reader: Client) -> None:
    workflow = in_part()
    assert opened(reader, "pair") == f"/workflows/{workflow.pk}/"
    assert opened(reader, str(workflow.pk)) == f"/workflows/{workflow.pk}/"


def test_the_message_of_a_job_opens_its_error_whatever_numbers_are_in_it(reader: Client, failures: list[Job]) -> None:
    for text in ("Failed to stage in file 3: no space left on device", "pilot:1099"):
        assert opened(reader, text).startswith("/errors/"), text
    page = reader.get("/search/", {"q": "space on device left"}).content.decode()
    assert "3 failed jobs" in page and "/errors/jobs/?fingerprint=" in page
    listed = reader.get(
        page.partition('href="/errors/jobs/')[2].partition('"')[0].replace("&amp;", "&").join(["/errors/jobs/", ""])
    )
    assert all(f"/jobs/{job.id}/" in listed.content.decode() for job in failures)
    assert list(found("Error: failed to stage in file 99999")) == []
    assert list(found("stage in file 99999")) == ["error"], "by what is left of it without the number"


def test_worker_nodes_are_found_by_any_part_of_their_name(reader: Client, failures: list[Job]) -> None:
    assert found("wn-17")["node"] == found("lab.example 17")["node"] == ["wn-17.lab.example"]
    assert opened(reader, "wn-17.lab.example") == "/sites/SITE_A/nodes/"


def test_users_of_tasks_without_an_account_are_found_by_the_start_of_their_name(make_task: Callable[..., Task]) -> None:
    for name in ("grace", "grandma", "zoe", "gra"):
        make_task(user=name)
    assert found("gra")["user"] == ["gra", "grace", "grandma"]


def test_files_are_found_by_the_start_of_their_name(make_task: Callable[..., Task]) -> None:
    task = make_task()
    for name in ("AOD.1.root", "AOD.2.root", "DAOD.1.root"):
        File.objects.create(task_id=task.id, dataset_id=1, lfn=name, type="input", status="ready")
    assert found("AOD.")["file"] == ["AOD.1.root", "AOD.2.root"]
    assert "file" not in found("AO")


@pytest.mark.parametrize(
    "text",
    [
        "'; DROP TABLE jobs; --",
        "a & | ! ( ) <-> :*",
        "%_\\",
        "\x00\x01",
        "\u202egnirts",
        "مهمة",
        "x" * 10_000,
        "!!!",
        "a' b\"",
        "9" * 40,
    ],
)
def test_whatever_people_type_is_answered_in_words(reader: Client, busy_task: Task, text: str) -> None:
    for path in ("/search/", "/search/suggestions/"):
        answer = reader.get(path, {"q": text})
        assert answer.status_code == 200, text
        assert "\u202e" not in answer.content.decode().rpartition("<h1")[2]
    page = reader.get("/search/", {"q": text}).content.decode()
    said = ("Nothing found.", "no letter or digit", "Enter a number", "results", "too long")
    assert any(sentence in page for sentence in said) or "<section" in page
    assert ("only its first 1\u202f000 characters" in page or "only its first 1000 characters" in page) == (
        len(text) > 1000
    )


def test_suggestions_are_options_that_lead_to_pages(reader: Client, make_task: Callable[..., Task], ada: User) -> None:
    task = make_task(name="user.ada.one", user="ada")
    text = reader.get("/search/suggestions/", {"q": "ad"}).content.decode()
    assert f'data-url="/tasks/{task.id}/"' in text and 'data-url="/users/ada/"' in text and "<html" not in text
    assert reader.get("/search/suggestions/", {"q": ""}).content.decode().strip() == ""


def test_the_newest_are_shown_where_very_many_have_the_words(make_task: Callable[..., Task]) -> None:
    first = make_task(name="user.many.first")
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO jedi_tasks (jeditaskid, taskname, status, username)
               SELECT %s + n, 'user.many.' || n, 'done', 'ada' FROM generate_series(1, 1200) n""",
            [first.id],
        )
    group, *_ = find("many", 3)
    assert group.counted == "1000+" and [one.name for one in group.found] == [
        "user.many.1200",
        "user.many.1199",
        "user.many.1198",
    ]


@settings(max_examples=cases(80, 600), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=80))
def test_every_text_has_its_own_words(db: None, text: str) -> None:
    """Each text has all of its own words, cut in the database as here."""
    text = search_words.clean(text)
    with connection.cursor() as cursor:
        cursor.execute("SELECT search_words(%s) @@ %s::tsquery", [text, search_words.query_of(text)])
        assert cursor.fetchone()[0] == bool(search_words.words_of(text))
