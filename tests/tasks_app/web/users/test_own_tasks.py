"""My tasks: each task stands where it belongs, those of others nowhere, and what was seen is gone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.models import VerdictRecord
from tasks_app.models import Job, Task, TasksSeen
from tests.tasks_app.web.test_pages import MOST_QUERIES

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def part(text: str, name: str) -> str:
    """The section of that name."""
    return text.partition(f'aria-labelledby="h-{name}"')[2].partition("</section>")[0]


def test_each_task_stands_in_its_table(
    reader: Client, make_task: Callable[..., Task], make_job: Callable[..., Job], sites: None
) -> None:
    now = timezone.now()
    exhausted = make_task(status="exhausted", error_dialog="only <b>1</b> of 40 jobs succeeded.")
    pending = make_task(status="pending")
    VerdictRecord.objects.create(task_id=pending.id, chosen=[], skipped=[], sentence="All 3 sites were skipped.")
    registered, running = make_task(status="registered"), make_task(status="running")
    make_job(task_id=running.id, status="running")
    done = make_task(status="done", state_change_time=now - HOUR)
    old = make_task(status="failed", state_change_time=now - timedelta(days=8))
    other = make_task(status="exhausted", user="bob")
    text = reader.get("/my-tasks/").content.decode()
    assert f"/tasks/{exhausted.id}/" in part(text, "needs")
    assert "only &lt;b&gt;1&lt;/b&gt; of 40 jobs succeeded." in part(text, "needs")
    waits = part(text, "waits")
    assert f"/tasks/{pending.id}/" in waits and "All 3 sites were skipped." in waits
    assert f"/tasks/{registered.id}/" in waits and "it waits for the refiner" in waits.lower()
    assert f"/tasks/{running.id}/" in part(text, "runs") and f"/tasks/{running.id}/" not in waits
    assert f"/tasks/{done.id}/" in part(text, "ended")
    assert f"/tasks/{old.id}/" not in text and f"/tasks/{other.id}/" not in text


def test_what_was_seen_is_not_shown_again(reader: Client, make_task: Callable[..., Task]) -> None:
    now = timezone.now()
    seen = make_task(status="done", state_change_time=now - HOUR)
    later = make_task(status="done", state_change_time=now - timedelta(minutes=1))
    until = (now - timedelta(minutes=30)).isoformat()
    text = reader.post("/my-tasks/seen/", {"until": until}, follow=True).content.decode()
    assert f"/tasks/{seen.id}/" not in text and f"/tasks/{later.id}/" in text
    assert TasksSeen.objects.get().user == "ada"


@pytest.mark.parametrize("until", ["", "yesterday", "2026-01-01T00:00", "9999-12-31T23:59:59+00:00", "\0"])
def test_a_time_that_makes_no_sense_is_now(reader: Client, until: str) -> None:
    reader.post("/my-tasks/seen/", {"until": until})
    assert abs(timezone.now() - TasksSeen.objects.get().at) < HOUR


def test_without_tasks_each_table_says_so(reader: Client) -> None:
    text = reader.get("/my-tasks/").content.decode()
    for words in ("No task needs your decision.", "No task waits.", "No task runs.", "No task of yours has ended"):
        assert words in text


def test_the_page_costs_the_same_for_any_number(
    reader: Client, make_task: Callable[..., Task], make_job: Callable[..., Job], django_assert_max_num_queries: Any
) -> None:
    for n in range(120):
        status = ("running", "exhausted", "done")[n % 3]
        task = make_task(status=status, state_change_time=timezone.now() - HOUR)
        make_job(task_id=task.id, status="activated")
    with django_assert_max_num_queries(MOST_QUERIES):
        text = reader.get("/my-tasks/").content.decode()
    assert "queued job waits for a pilot" in text or "pilot" in text
