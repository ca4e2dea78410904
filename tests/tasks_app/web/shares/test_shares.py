"""The pages on shares: the tree against its targets, one share, other targets tried out and stored."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.grid.samples import INTERVAL, ORIGIN
from brokerage_app.models import GlobalShare, Queue, ResourceType, Sample, UserCount, VerdictRecord
from jedisite.models import AuditEntry
from tasks_app.counts import statistics
from tasks_app.models import Job, Task

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12


@pytest.fixture
def tree(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> Task:
    """Production (MC and Data) and Analysis: MC is starved, Analysis has more than its part. Returns a waiting task of MC."""
    for number, (name, value, parent) in enumerate(
        (("Production", 80, None), ("MC", 75, "Production"), ("Data", 25, "Production"), ("Analysis", 20, None))
    ):
        GlobalShare.objects.create(name=name, value=value, parent_id=parent, queue_id=number + 1)
    ResourceType.objects.get_or_create(name="MCORE", defaults={"position": 1})
    for letter in "AB":
        Queue.objects.create(name=f"SITE_{letter}", site_name=letter, core_power=10, cloud=f"REGION_{letter}")
    for share, status, jobs in (
        ("MC", "running", 2),
        ("MC", "activated", 5),
        ("Data", "running", 2),
        ("Analysis", "running", 6),
    ):
        for n in range(jobs):
            make_job(status=status, gshare=share, core_count=1, site=f"SITE_{'AB'[n % 2]}", resource_type="MCORE")
    now = timezone.now()
    task = make_task(
        gshare="MC", status="pending", state_change_time=now, frozen_time=now - timedelta(hours=7), current_priority=5
    )
    make_task(gshare="MC", status="running", name="<b>bold")
    VerdictRecord.objects.create(
        task_id=task.id, chosen=[], skipped=[], code="low_memory", sentence="All 2 <i>sites", share="MC"
    )
    statistics.refresh()
    UserCount.objects.create(site="SITE_A", share="MC", user="ada", running=2, queued=5)
    last = ORIGIN + INTERVAL * ((now - ORIGIN) // INTERVAL)
    for n in range(12):
        for share, hs in (("MC", 50), ("Data", 25), ("Analysis", 25)):
            Sample.objects.create(at=last - n * INTERVAL, share=share, running_hs=hs, queued_hs=n, running_jobs=3)
    return task


def test_without_shares_the_pages_say_so(reader: Client) -> None:
    for path in ("/shares/", "/share-targets/"):
        assert 'class="empty"' in reader.get(path).content.decode(), path
    assert reader.get("/shares/nothing/").status_code == 404


def test_the_tree_shows_each_share_against_its_target(
    reader: Client, tree: Task, django_assert_max_num_queries: Any
) -> None:
    reader.get("/help/states/")  # the choices of the frame are kept for a minute
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get("/shares/")
    rows = {line.row.name: line.row for line in answer.context["lines"]}
    shown = {n: (r.level, round(r.percent), round(r.actual), r.state, round(r.day)) for n, r in rows.items()}
    assert shown == {
        "Production": (1, 80, 40, "starved", 75),
        "MC": (2, 60, 20, "starved", 50),
        "Data": (2, 20, 20, "on target", 25),
        "Analysis": (1, 20, 60, "over target", 25),
    }
    assert (rows["MC"].load.running_jobs, rows["MC"].usage.executing, rows["MC"].usage.queued) == (2, 20, 50)
    assert rows["Production"].waiting is not None and rows["Production"].waiting.oldest == tree.id
    text = answer.content.decode()
    assert "1 share gets less than its target while work waits" in text and f"/tasks/{tree.id}/why/" in text
    assert "MC has 20.0 % of the running power, target 60.0 %: starved" in text
    assert "low_<wbr>memory" in text and "/jobs/?share=MC&amp;status=sent,running" in text
    assert [row.name for row, _ in answer.context["trends"]] == ["MC", "Data", "Analysis"]
    one_region = reader.get("/shares/?region=REGION_A&resource=MCORE").context["lines"]
    assert [line.row.load.running_jobs for line in one_region] == [2, 1, 1, 3]
    assert reader.get("/shares/?resource=&window=x").context["lines"] != []


def test_the_file_and_the_api_are_the_table(reader: Client, tree: Task) -> None:
    lines = reader.get("/shares/").context["lines"]
    answer: Any = reader.get("/api/v2/shares/?format=csv")
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
    table = reader.get("/api/v2/shares/").json()["table"]
    for line, row, one in zip(lines, rows, table, strict=True):
        assert row["name"] == one["name"] == line.row.name and row["state"] == one["state"] == line.row.state
        assert float(row["target_percent"]) == one["target_percent"] == line.row.percent
        assert int(row["running_jobs"]) == one["running_jobs"] == line.row.load.running_jobs
        assert row["oldest_task"] == str(one["oldest_task"] or "")
    assert reader.get("/api/v2/shares/?format=xml").status_code == 422


def test_a_share_has_a_page_with_users_tasks_and_reasons(
    reader: Client, tree: Task, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(MOST_QUERIES):
        text = reader.get("/shares/MC/").content.decode()
    assert "It uses 20.0\u202f% of the running power; its target is 60.0\u202f%" in text and "low_<wbr>memory" in text
    assert (
        "&lt;b&gt;bold" in text and "<b>bold" not in text and "/jobs/?share=MC&amp;user=ada&amp;status=running" in text
    )
    whole = reader.get("/shares/Production/")
    assert whole.context["points"][0]["running_hs"] == 75 and "/shares/MC/" in whole.content.decode()
    Task.objects.filter(pk=tree.id).update(gshare="Old share")
    assert "not configured, but" in reader.get("/shares/Old%20share/").content.decode()
    assert reader.get("/shares/MC/why/")["Location"] == "/shares/MC/#why"


def test_other_targets_are_tried_out_and_stored_with_a_reason(operator: Client, tree: Task) -> None:
    page = operator.get("/share-targets/?value-MC=25&value-Data=25")
    effects = {one.name: one for one in page.context["effects"]}
    assert effects["MC"].new_percent == 40 and effects["MC"].changed and not effects["Data"].changed
    assert 'name="seen-MC" value="75"' in page.content.decode()
    bad = operator.get("/share-targets/?value-MC=-1&value-nothing=3")
    assert bad.status_code == 400 and "value of MC is a whole number" in bad.content.decode()
    form = {"value-MC": "25", "seen-MC": "75", "reason": "the campaign ended"}
    for changes, says in (
        ({"reason": " "}, "Give a reason"),
        ({"value-MC": "75"}, "No value was changed"),
        ({"seen-MC": "70"}, "in the meantime"),
        ({"value-MC": "x"}, "whole number"),
        ({"value-nothing": "1", "seen-nothing": "1"}, "There is no share"),
    ):
        answer = operator.post("/share-targets/change/", {**form, **changes}, follow=True)
        assert says in answer.content.decode(), changes
    assert GlobalShare.objects.get(name="MC").value == 75 and not AuditEntry.objects.exists()
    assert "MC from 75 to 25" in operator.post("/share-targets/change/", form, follow=True).content.decode()
    assert GlobalShare.objects.get(name="MC").value == 25
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.object_id, entry.reason) == (
        "grace",
        "share.value",
        "MC",
        "the campaign ended",
    )
    assert entry.details == {"changed": {"value": [75, 25]}}


def test_who_may_not_steer_may_only_look(reader: Client, tree: Task) -> None:
    assert "Change the targets" not in reader.get("/share-targets/?value-MC=25").content.decode()
    assert reader.post("/share-targets/change/", {"value-MC": "25"}).status_code == 403


def test_where_nothing_runs_a_target_is_none_the_less_a_target(reader: Client, tree: Task) -> None:
    Job.objects.filter(status="running").update(status="activated")
    statistics.refresh()
    answer = reader.get("/shares/")
    text = answer.content.decode()
    assert {line.row.name: line.row.state for line in answer.context["lines"]} == {
        "Production": "nothing runs",
        "MC": "nothing runs",
        "Data": "nothing runs",
        "Analysis": "nothing runs",
    }
    assert "Nothing runs in any share, while 15 jobs are queued and 1 task waits." in text
    assert "below its target." not in text
