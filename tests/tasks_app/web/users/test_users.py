"""The pages on users."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from brokerage_app.models import AnalysisUser, UserCount
from jedisite import audit
from tasks_app.models import ErrorFingerprint, JobEnds, JobFailure, Notification, Sandbox, Task
from tests.tasks_app.web.test_pages import MOST_QUERIES

pytestmark = pytest.mark.django_db
BOB = "Bob O'Neil/prod"


@pytest.fixture
def work(make_task: Callable[..., Task], settings: Any) -> None:
    """Tasks, jobs, failures and limits of ada and of somebody without an account."""
    settings.JEDI_LIMITS = {"CAP_RUNNING_USER_JOBS": 10.0}
    now = timezone.now()
    for user in ("ada", BOB):
        for status in ("running", "exhausted", "done"):
            task = make_task(user=user, status=status)
        UserCount.objects.create(site="SITE_A", share="User", user=user, queued=4, running=9 if user == "ada" else 1)
        UserCount.objects.create(site="SITE_B", share="User", user=user, queued=1, running=0)
        JobEnds.objects.create(dimension="user", key=user, hour=now - timedelta(hours=1), finished=30, failed=10)
        Notification.objects.create(task_id=task.id, status="done", not_sent="no address is known", recipient="x@y.z")
    AnalysisUser.objects.create(user="ada", slots_hi=3, slots_mid=4, disk_gb=120.0, updated=now)
    Sandbox.objects.create(owner="ada", name="s", stored="s", size=2_500_000_000, crc=1, sha256="0")
    died = ErrorFingerprint.objects.create(
        component="pilot",
        code="1305",
        text="<b>no</b> space",
        example="x",
        category="disk",
        first_seen=now,
        last_seen=now,
    )
    for number in range(3):
        JobFailure.objects.create(
            id=number,
            ended=now - timedelta(hours=number),
            fingerprint=died,
            attempt=1,
            site="SITE_A",
            node="n",
            user="ada",
            activity="User",
            pilot_version="",
            walltime_s=3600,
            wasted_core_s=7200,
        )
    audit.record("ada", "kill", "task", task.id, reason="wrong <input>")


def test_little_that_was_wasted_is_not_told_as_nothing(reader: Client, work: None) -> None:
    JobFailure.objects.update(wasted_core_s=30)
    for page, said in (("/users/", "under 0.1 core h"), ("/users/ada/", "wasted under 0.1 core hours")):
        text = reader.get(page).content.decode()
        assert said in text and "0.0 core h" not in text


def test_users_are_listed_by_what_they_have_and_waste(
    reader: Client, work: None, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(MOST_QUERIES):
        page = reader.get("/users/")
    text = page.content.decode()
    assert [(r.name, r.tasks, r.held_up, r.running, r.queued, r.finished, r.failed) for r in page.context["rows"]] == [
        ("ada", 2, 1, 9, 5, 30, 10),
        (BOB, 2, 1, 1, 5, 30, 10),
    ]
    assert "6.0 core h" in text and "25.0 %" in text and "120 GB" in text
    assert (
        f'href="{escape(reverse("dashboard:user", args=[BOB]))}"' in text
        and "/tasks/?user=Bob%20O%27Neil/prod&amp;status=" in text
    )
    assert [r.name for r in reader.get("/users/?ordering=name").context["rows"]] == [BOB, "ada"]
    assert [r.name for r in reader.get("/users/?q=neil&ordering=tasks").context["rows"]] == [BOB]
    early = {"since": "2020-01-01T00:00", "until": "2020-01-02T00:00"}
    assert {r.failed for r in reader.get("/users/", early).context["rows"]} == {0}
    assert "No user of that name" in reader.get("/users/?q=nobody").content.decode()
    Task.objects.all().delete()
    UserCount.objects.all().delete()
    assert "Nobody has open work" in reader.get("/users/", early).content.decode()


def test_a_user_has_limits_and_waste_and_privacy(
    reader: Client, work: None, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(MOST_QUERIES):
        page = reader.get("/users/ada/")
    text = page.content.decode()
    assert {limit.title: (limit.used, limit.most, limit.tone) for limit in page.context["limits"]} == {
        "running jobs": ("9", "10", "warn"),
        "queued jobs": ("5", "20", "ok"),
        "cores for analysis": ("7", None, "wait"),
        "disk used by own datasets": ("120.0 GB", None, "wait"),
        "sandboxes (1)": ("2.5 GB", "10.0 GB", "ok"),
    }
    assert "/tasks/?user=ada&amp;status=exhausted" in text and "wasted 6.0 core hours" in text
    assert "&lt;b&gt;no&lt;/b&gt; space" in text and "wrong &lt;input&gt;" in text and "/audit/?actor=ada" in text
    assert "(you)" in text and "0 valid" in text and "no address is known" in text and "x@y.z" not in text
    assert "No job of this user failed" in reader.get("/users/ada/?since=2020-01-01&until=2020-01-02").content.decode()
    other = reader.get(f"/users/{BOB}/").content.decode()
    assert (
        "none at this site" in other and "no address is known" not in other and "Tokens" not in other.split("<main")[1]
    )
    for missing in ("nobody", "x" * 200):
        assert reader.get(f"/users/{missing}/").status_code == 404


def test_an_account_without_work_has_a_page(operator: Client) -> None:
    User.objects.create_user("eve", is_active=False)
    text = operator.get("/users/eve/").content.decode()
    assert "switched off" in text and "No job is open" in text and "No mail was due" in text
