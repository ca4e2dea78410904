"""The page of a shift shows its window, and only shifters write on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from brokerage_app.models import QueueStatusLog
from jedisite import audit
from tasks_app.failures.booking import book_ends
from tasks_app.models import AttentionItem, Handover, Job, JobEndDue, ShiftNote, Task, TaskStatusLog

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
MOST_QUERIES = 12


@pytest.fixture
def shifter(client: Client) -> Client:
    user = User.objects.create_user("bob", password="shift-of-1984")
    user.groups.add(Group.objects.get_or_create(name="shift")[0])
    client.force_login(user)
    return client


@pytest.fixture
def busy(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> None:
    """Failures, stopped tasks, acts, statuses and items of the last hours, and some of long ago."""
    now = timezone.now()
    jobs = [
        make_job(
            status="failed",
            site="SITE_A",
            pilot_error_code=1099,
            pilot_error_diag=f"no space left on device {n}",
            state_change_time=now - HOUR,
        )
        for n in range(30)
    ]
    JobEndDue.objects.bulk_create([JobEndDue(id=job.id) for job in jobs], ignore_conflicts=True)
    book_ends(1000)
    for n, hours in enumerate((1, 2, 30)):
        task = make_task(status="exhausted")
        reason = f"only {n} of 40 jobs succeeded"
        log = TaskStatusLog.objects.create(task_id=task.id, old_status="running", status="exhausted", by="adder")
        TaskStatusLog.objects.filter(pk=log.pk).update(at=now - hours * HOUR, reason=reason)
    make_task(status="pending", frozen_time=now - 3 * HOUR, error_dialog="All 3 sites were skipped.", user="eve")
    audit.record("ada", "kill", "task", 17, reason="wrong <i>input</i>")
    audit.record("eve", "submit", "task", 18)
    audit.record("bob", "agent.pause", "agent", "feeder", reason="database at work")
    audit.record("ada", "user.password", "user", 4, reason="forgotten by carol")
    QueueStatusLog.objects.create(
        queue="SITE_B",
        old="online",
        new="offline",
        by="ada",
        reason="cooling",
        at=now - HOUR,
        until=now + 5 * HOUR,
        after="online",
    )
    AttentionItem.objects.create(
        key="share:x", kind="share", tone="warn", sentence="Share x is low.", path="/shares/x/", since=now, rank=5
    )


def test_the_page_and_its_report_hold_what_the_window_holds(reader: Client, busy: None) -> None:
    page, text = reader.get("/shift/"), reader.get("/shift/report.txt")
    assert text["Content-Type"] == "text/plain; charset=utf-8"
    said = text.content.decode()
    assert "* New: pilot:1099 no space left on device <n>: 30 failed jobs [all at one site, SITE_A" in said
    assert "SITE_A: 100 % of 30 jobs failed; too few jobs the day before to compare" in said
    assert "2 tasks of 1 user exhausted: only 0 of 40 jobs succeeded" in said
    assert "ada: Kill (task 17) [wrong <i>input</i>]" in said
    assert said.index("bob: Pause an agent (agent feeder)") < said.index("ada: Kill") and "eve: Submit" not in said
    assert "SITE_B: online → offline until" in said and "SITE_B: offline ends at" in said
    assert "* Share x is low [open for" in said
    assert "of eve has been pending for 3 h: All 3 sites were skipped" in said
    shown = page.content.decode()
    assert "wrong &lt;i&gt;input&lt;/i&gt;" in shown and "<i>input" not in shown
    assert "carol" not in said + shown  # what concerns accounts is not shown


def test_another_window_holds_something_else(reader: Client, busy: None) -> None:
    now = timezone.now()
    then = f"since={now - 31 * HOUR:%Y-%m-%dT%H:%M}&until={now - 29 * HOUR:%Y-%m-%dT%H:%M}"
    said = reader.get(f"/shift/report.txt?{then}").content.decode()
    assert "exhausted: only 2 of 40 jobs succeeded" in said and "No job failed." in said
    assert "3 tasks of" in reader.get("/shift/report.txt?window=3d").content.decode()
    assert reader.get("/shift/report.txt?since=yesterday").status_code == 400
    assert reader.get("/shift/?sinse=1").status_code == 400


def test_an_empty_shift_says_so(reader: Client) -> None:
    text = reader.get("/shift/").content.decode()
    for words in ("Nothing is open.", "No job failed.", "No task stopped.", "No note was written", "handed over yet"):
        assert words in text
    assert "<textarea" not in text


def test_the_page_costs_the_same_for_any_number(
    shifter: Client, busy: None, make_task: Callable[..., Task], django_assert_max_num_queries: Any
) -> None:
    for n in range(40):
        TaskStatusLog.objects.create(
            task_id=make_task(status="broken").id, status="broken", by="refiner", reason=f"{n}"
        )
        ShiftNote.objects.create(by="bob", text=f"{n}")
    shifter.get("/shift/")
    for path in ("/shift/", "/shift/report.txt"):
        with django_assert_max_num_queries(MOST_QUERIES):
            assert shifter.get(path).status_code == 200


def test_a_note_is_kept_escaped_and_comes_into_the_draft(shifter: Client) -> None:
    answer = shifter.post("/shift/notes/?window=12h", {"text": "<script>x</script>\r\nsecond line"}, follow=True)
    assert answer.redirect_chain == [("/shift/?window=12h", 302)]
    text = answer.content.decode()
    assert "Note saved." in text and "<script>x" not in text
    assert "bob: &lt;script&gt;x&lt;/script&gt;\n    second line" in text
    assert ShiftNote.objects.get().by == "bob"
    assert "A note must not be empty." in shifter.post("/shift/notes/", {"text": " "}, follow=True).content.decode()


def test_a_shift_is_handed_over_and_acknowledged(shifter: Client) -> None:
    now = timezone.now()
    values = {
        "since": f"{now - 8 * HOUR:%Y-%m-%dT%H:%M}",
        "until": f"{now:%Y-%m-%dT%H:%M}",
        "summary": "watch <SITE_A>",
    }
    text = shifter.post("/shift/hand-over/", values, follow=True).content.decode()
    handover = Handover.objects.get()
    assert (handover.by, handover.summary, handover.until - handover.since) == ("bob", "watch <SITE_A>", 8 * HOUR)
    assert "not acknowledged yet" in text and "watch &lt;SITE_A&gt;" in text and ">Acknowledge<" not in text
    address = f"/shift/hand-over/{handover.pk}/acknowledge/"
    assert "Somebody else must acknowledge" in shifter.post(address, follow=True).content.decode()
    other = User.objects.create_superuser("grace", password="compiler-of-1952")
    shifter.force_login(other)
    assert ">Acknowledge<" in shifter.get("/shift/").content.decode()
    assert "Acknowledged by grace" in shifter.post(address, follow=True).content.decode()
    assert "grace acknowledged this hand-over" in shifter.post(address, follow=True).content.decode()
    assert shifter.post(f"/shift/hand-over/{handover.pk + 1}/acknowledge/").status_code == 404


def test_a_shift_of_no_time_is_not_handed_over(shifter: Client) -> None:
    values = {"since": "2026-01-02T08:00", "until": "2026-01-01T08:00", "summary": "x"}
    assert "since must be before until." in shifter.post("/shift/hand-over/", values, follow=True).content.decode()
    assert not Handover.objects.exists()


def test_a_reader_writes_nothing(reader: Client) -> None:
    handover = Handover.objects.create(by="bob", since=timezone.now() - HOUR, until=timezone.now(), summary="x")
    for path in ("notes/", "hand-over/", f"hand-over/{handover.pk}/acknowledge/"):
        assert reader.post(f"/shift/{path}", {"text": "x", "summary": "x"}).status_code == 403
    assert not ShiftNote.objects.exists()
    assert ">Acknowledge<" not in reader.get("/shift/").content.decode()
