"""The pages answer, escape, keep to their number of queries, and say so when there is nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tasks_app.models import Dataset, File, Job, JobArchive, Task

MOST_QUERIES = 14
pytestmark = pytest.mark.django_db

PATHS = ["/", "/tasks/", "/jobs/", "/sites/", "/agents/", "/timeouts/", "/search/?q=x"]


@pytest.mark.parametrize("path", [*PATHS, "/tasks/1/", "/jobs/1/", "/jobs/1/log/", "/tasks/1/histograms/"])
def test_nobody_reads_without_logging_in(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/?next=")


def test_the_login_page_answers(client: Client) -> None:
    assert client.get("/login/").status_code == 200


@pytest.mark.parametrize("path", ["/", "/tasks/", "/jobs/", "/sites/"])
def test_empty_pages_say_so(reader: Client, path: str) -> None:
    text = reader.get(path).content.decode()
    assert 'class="empty"' in text


@pytest.mark.parametrize("path", ["/tasks/?status=exhausted", "/jobs/?status=failed&site=NOWHERE"])
def test_no_match_offers_to_clear_the_filters(reader: Client, path: str) -> None:
    text = reader.get(path).content.decode()
    assert "Clear all filters" in text or "Clear the filters" in text


@pytest.mark.parametrize("path", ["/tasks/1/", "/jobs/1/", "/jobs/1/log/", "/tasks/1/histograms/", f"/tasks/{10**30}/"])
def test_what_is_not_there_is_not_found(reader: Client, path: str) -> None:
    assert reader.get(path).status_code == 404


def test_lists_cost_the_same_for_any_number(
    reader: Client,
    make_task: Callable[..., Task],
    make_job: Callable[..., Job],
    sites: None,
    django_assert_max_num_queries: Any,
) -> None:
    for _ in range(60):
        task = make_task()
        make_job(task_id=task.id)
    for path in ("/", "/tasks/", "/jobs/", "/sites/", "/agents/"):
        with django_assert_max_num_queries(MOST_QUERIES):
            assert reader.get(path).status_code == 200


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/tasks/99/", "There is no task 99."),
        ("/tasks/99/why/", "There is no task 99."),
        ("/jobs/98/", "There is no job 98."),
        ("/sites/%3Cb%3E/", "There is no site &lt;b&gt;."),
        ("/data/catalogue/97/", "There is no dataset 97."),
        ("/queues/96/", "There is no work queue 96."),
        ("/nowhere/", "There is no page at this address."),
    ],
)
def test_a_page_of_what_is_not_there_says_what_it_is(reader: Client, path: str, said: str) -> None:
    answer = reader.get(path)
    assert answer.status_code == 404 and f"<p>{said}</p>" in answer.content.decode()


def test_browsers_and_programs_find_the_icon_where_they_look_for_it(client: Client) -> None:
    answer = client.get("/favicon.ico")
    assert (answer.status_code, answer["Location"]) == (301, "/static/icon.svg")
    icon = client.get(answer["Location"])
    assert (icon.status_code, icon["Content-Type"]) == (200, "image/svg+xml")
    icon.close()


def test_a_busy_task_costs_few_queries(reader: Client, busy_task: Task, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(
        MOST_QUERIES + 4
    ):  # with what retry rules did, where time goes, and what a command would find to do
        answer = reader.get(f"/tasks/{busy_task.id}/")
    text = answer.content.decode()
    assert "trans:1" in text and "SITE_C" in text and "needs 4000 MB" in text
    assert f"/jobs/?task={busy_task.id}&amp;site=SITE_A&amp;status=failed" in text
    assert "80 of 200 files finished, 10 failed, 30 in jobs" in text
    assert "9 of 10 input files of scouts succeeded" in text
    for declared, measured in (
        ("– (1 000 MB by default)", "1 650 MB"),
        ("–", "162 HS06 s an event"),
        ("0 kB", "1 024 kB"),
        ("–", "83.5 %"),
    ):
        assert f'class="num">{declared}</td><td data-label="Measured" class="num">{measured}</td>' in text.replace(
            "\u202f", " "
        )


def test_files_that_were_given_up_before_any_job_failed_are_not_said_to_have_failed(
    reader: Client, busy_task: Task
) -> None:
    Job.objects.filter(task_id=busy_task.id, status="failed").update(status="cancelled")
    text = reader.get(f"/tasks/{busy_task.id}/").content.decode()
    assert "80 of 200 files finished, 10 not processed, 30 in jobs" in text and "10 failed" not in text
    JobArchive.objects.create(id=1, task_id=busy_task.id, status="failed")
    text = reader.get(f"/tasks/{busy_task.id}/").content.decode()
    assert "80 of 200 files finished, 10 failed, 30 in jobs" in text, "its failed jobs are in the archive"


def test_files_that_nobody_processes_are_left_and_not_to_do(reader: Client, busy_task: Task) -> None:
    for status, word in (("running", "to do"), ("broken", "left"), ("aborted", "left")):
        Task.objects.filter(pk=busy_task.id).update(status=status)
        assert f"80 {word}</li>" in reader.get(f"/tasks/{busy_task.id}/").content.decode()


def test_a_job_costs_few_queries(reader: Client, failed_job: Job, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(MOST_QUERIES):
        text = reader.get(f"/jobs/{failed_job.id}/").content.decode()
    assert "trans:3" in text and "exit code 3" in text and "(50 %)" in text
    assert str(failed_job.id + 1) in text  # the next attempt
    assert "its inputs get 3000 MB" in text and "logged only: the rule is not active" in text


def test_texts_of_users_and_jobs_are_escaped(reader: Client, busy_task: Task, failed_job: Job) -> None:
    Task.objects.filter(pk=busy_task.id).update(name="<img src=x onerror=alert(1)>", error_dialog="<svg onload=x>")
    for path in (
        "/",
        "/tasks/",
        f"/tasks/{busy_task.id}/",
        f"/jobs/{failed_job.id}/",
        "/tasks/?name=%3Cb%3E&user=%22%3E%3Ci%3E",
    ):
        text = reader.get(path).content.decode()
        for raw in ("<img src=x", "<svg onload", "<script>alert", "<b>bold", '"><i>', "<b>"):
            assert raw not in text, (path, raw)


def test_no_page_has_inline_style_or_script(reader: Client, busy_task: Task, failed_job: Job) -> None:
    for path in (*PATHS[:5], f"/tasks/{busy_task.id}/", f"/jobs/{failed_job.id}/", "/login/"):
        text = reader.get(path, follow=True).content.decode()
        assert " style=" not in text and "<style" not in text and "onclick" not in text
        assert text.count("<script") == text.count("<script src=")


@pytest.mark.parametrize(
    "query",
    [
        "before=x",
        "cursor=x",
        "cursor=%00",
        f"page_size={10**30}",
        "task=x",
        "status=nonsense",
        "columns=x",
        "ordering=x",
    ],
)
def test_nonsense_in_the_address_breaks_nothing(reader: Client, query: str) -> None:
    assert reader.get(f"/jobs/?{query}").status_code == 200
    assert reader.get(f"/tasks/?{query}").status_code == 200


def test_jobs_are_filtered_by_error(reader: Client, busy_task: Task) -> None:
    for error, many in (
        ("trans:1", True),
        ("trans:9", False),
        ("pilot:1305", False),
        ("pilot:x", False),
        ("x", False),
    ):
        assert bool(reader.get(f"/jobs/?error={error}").context["table"]) is many, error


def test_counts_of_errors_lead_to_as_many_jobs(reader: Client, busy_task: Task) -> None:
    groups = reader.get(f"/tasks/{busy_task.id}/").context["errors"]
    assert groups
    for group in groups:
        found = reader.get(f"/jobs/?task={busy_task.id}&status=failed&error={group.error.key}").context["counted"]
        assert found.total == group.jobs


def test_no_cache_on_the_way_keeps_what_is_made_for_a_person(reader: Client, busy_task: Task) -> None:
    for path in ("/", f"/tasks/{busy_task.id}/", "/nowhere/", "/api/v2/tasks/", "/api/v2/nothing/"):
        assert reader.get(path)["Cache-Control"] == "private, no-cache", path
    assert "no-store" in reader.get("/tokens/")["Cache-Control"], "what a view asks for stays"


def test_addresses_without_their_slash_lead_on(client: Client, reader: Client) -> None:
    assert reader.get("/tasks?status=done")["Location"] == "/tasks/?status=done"
    assert reader.get("/nowhere").status_code == 404


def test_actions_are_posted(operator: Client) -> None:
    assert operator.get(reverse("dashboard:agent-action", args=[1])).status_code == 405


def test_the_page_of_a_task_by_events_says_how_many_files_the_ranges_are(
    reader: Client, make_task: Callable[..., Task]
) -> None:
    task = make_task(split_rule="NE=10,EI=20")
    dataset = Dataset.objects.create(
        task=task, name="lab.in", type="input", status="ready", files=6, files_to_be_used=6
    )
    for number in range(6):
        status = "finished" if number < 3 else "ready"
        File.objects.create(
            task_id=task.id,
            dataset_id=dataset.id,
            lfn=f"lab.in.{number // 2}",
            type="input",
            status=status,
            start_event=number % 2 * 10,
            end_event=number % 2 * 10 + 9,
        )
    text = reader.get(f"/tasks/{task.id}/").content.decode()
    assert "ranges of 3 files, 1 done" in text
