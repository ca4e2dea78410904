"""Lists that are filtered by a name: one that nothing has or had is refused, as an empty list would read like "none of these"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from brokerage_app.models import Queue, Site, WorkQueue
from tasks_app.models import Job, JobArchive, Task

pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
Make = Callable[..., Any]
LISTS = {
    "tasks": ("site", "user", "queue"),
    "jobs": ("site", "user", "queue"),
    "failures": ("site", "user"),
    "errors/pivot": ("site", "user"),
    "workers": ("site",),
    "datasets": ("user",),
    "queues": ("site",),
    "storage": ("site",),
}
CASES = [(path, name) for path, names in LISTS.items() for name in names]


@pytest.fixture
def names(db: None) -> None:
    Site.objects.create(name="CERN", role="nucleus")
    Queue.objects.create(name="CERN", site_name="CERN")
    User.objects.create(username="cernuser", is_active=True)
    WorkQueue.objects.create(name="cern", type="user", vo="local", share=1, order=1, status="active")


@pytest.mark.parametrize(("path", "name"), CASES)
def test_a_name_that_nothing_has_is_refused_with_one_that_is_near(api: Api, names: None, path: str, name: str) -> None:
    near = {"site": "CERN", "user": "cernuser", "queue": "cern"}[name]
    answer = api().get(f"/api/v2/{path}/?{name}={near[:-1]}_")
    assert answer.status_code == 422, answer.content
    (fault,) = answer.json()["errors"]
    assert fault["field"] == name and fault["message"].endswith(f"Did you mean {near}?"), fault
    assert api().get(f"/api/v2/{path}/?{name}={near}").status_code == 200


def test_names_of_the_past_stay_allowed(api: Api, make_task: Make, make_job: Make) -> None:
    task = make_task(user="gone")
    job = make_job(task_id=task.id, status="finished", site="OLD_Q", user="gone")
    columns = {f.attname: getattr(job, f.attname) for f in JobArchive._meta.concrete_fields if hasattr(job, f.attname)}
    JobArchive.objects.create(**{**columns, "id": job.id + 1, "site": "OLDER_Q", "modification_time": timezone.now()})
    for query, found in (
        ("jobs/?site=OLD_Q", 1),
        ("jobs/?site=OLDER_Q", 0),
        ("jobs/?site=OLDER_Q&archived=true", 1),
        ("jobs/?user=gone", 1),
        ("tasks/?site=OLD_Q", 0),
        ("tasks/?user=gone", 1),
        ("workers/?site=OLD_Q", 0),
        (f"tasks/{task.id}/jobs/?site=OLDER_Q", 0),
        ("failures/?user=gone&site=OLDER_Q", 0),
    ):
        answer = api().get(f"/api/v2/{query}")
        assert answer.status_code == 200 and len(answer.json()["results"]) == found, (query, answer.content)
    for query in ("tasks/?queue=78", "jobs/?site=OLDEST_Q", "jobs/?site=OLDEST_Q&archived=true"):
        assert api().get(f"/api/v2/{query}").status_code == 422, query


@pytest.mark.parametrize(
    "page", ["/jobs/?site=CERM", "/tasks/?site=CERM", "/errors/?site=CERM", "/errors/jobs/?site=CERM"]
)
def test_pages_say_that_there_is_no_such_queue(api: Api, names: None, page: str) -> None:
    client = Client()
    client.force_login(User.objects.get(username="cernuser"))
    assert "There is no queue &#x27;CERM&#x27;. Did you mean CERN?" in client.get(page).content.decode()


def test_an_act_on_all_that_match_names_what_matches_nothing(api: Api, names: None, make_task: Make) -> None:
    body = {"command": "pause", "reason": "x", "filter": {"site": "CERM"}}
    answer = api().post("/api/v2/tasks/bulk-commands/", body, "application/json")
    assert answer.status_code == 422 and "There is no queue 'CERM'. Did you mean CERN?" in str(answer.json())


def test_the_table_of_jobs_is_not_asked_for_a_queue_that_is_there(
    names: None, make_task: Make, django_assert_num_queries: Any
) -> None:
    from tasks_app.lists.filtersets import JobFilter

    with django_assert_num_queries(1):
        assert JobFilter({"site": "CERN"}, queryset=Job.objects.all()).is_valid()
    assert not Task.objects.exists()


def test_a_misspelt_parameter_is_told_the_one_that_was_meant(api: Callable[..., Client]) -> None:
    (fault,) = api().get("/api/v2/tasks/?statsu=running").json()["errors"]
    assert fault["message"] == "There is no such parameter. Did you mean status?"
