"""The overview: empty, with everything on it, of one share, and at a bounded price."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.grid import configuring, samples
from brokerage_app.models import Queue, Sample
from jedisite import audit
from jedisite.models import Agent
from tasks_app.attention import keeping
from tasks_app.attention.rounds import QUICK, SLOW
from tasks_app.attention.rules.findings import Found
from tasks_app.counts import statistics
from tasks_app.models import AttentionItem, ErrorFingerprint, Job, JobFailure, JobStatusLog, SavedView, Task
from tasks_app.web.overview import recent_changes, tiles
from tasks_app.web.overview.cores import running_cores

pytestmark = pytest.mark.django_db
MOST_QUERIES = 13


def test_all_is_normal_only_as_far_as_it_was_measured(reader: Client) -> None:
    now = timezone.now()
    assert "All normal" not in reader.get("/").content.decode()
    Sample.objects.create(at=now - timedelta(minutes=50), running_jobs=3, queued_jobs=5)
    text = reader.get("/").content.decode()
    assert "Unknown: jobs were last counted" in text and "50 min ago" in text and "All normal" not in text
    # The tiles show the last sample itself, not the mean of the step that it is in.
    for minutes, running in ((7, 100), (2, 40)):
        Sample.objects.create(at=now - timedelta(minutes=minutes), running_jobs=running, queued_jobs=0)
    assert "the attention rules have not run yet" in reader.get("/").content.decode()
    looked = dict.fromkeys(("attention", "attention_tasks"), now - timedelta(minutes=1))
    rules(looked)
    text = reader.get("/").content.decode()
    assert "All normal" in text and "Jobs counted" in text and "2 min ago" in text
    assert f"none of {len(QUICK)} rules found anything at" in text and f"none of {len(SLOW)} slower ones at" in text
    assert "Sites with work but no pilots" in text
    assert '<span class="tile-value">40</span><span class="tile-label">running jobs' in text


def test_what_is_acknowledged_goes_on_and_is_not_normal(reader: Client) -> None:
    now = timezone.now()
    Sample.objects.create(at=now - timedelta(minutes=2), running_jobs=0, queued_jobs=5)
    rules(dict.fromkeys(("attention", "attention_tasks"), now))
    keeping.keep(["asks"], [Found("asks", "1", "item 1", "/tasks/", "ada", 1)], now)
    keeping.acknowledge(AttentionItem.objects.get().id, by="grace", reason="I ask ada")
    text = reader.get("/").content.decode()
    assert "All normal" not in text and "Nothing new: all open items are acknowledged (" in text
    keeping.snooze(AttentionItem.objects.get().id, now + timedelta(hours=1), by="grace", reason="tomorrow")
    text = reader.get("/").content.decode()
    assert "All normal" not in text and "Nothing new: all open items are snoozed (" in text, "a snooze mends nothing"


def test_each_look_has_its_own_time(reader: Client) -> None:
    now = timezone.now()
    Sample.objects.create(at=now - timedelta(minutes=2), running_jobs=0, queued_jobs=5)
    keeping.keep(["asks"], [Found("asks", "1", "item 1", "/tasks/", "ada", 1)], now - timedelta(minutes=3))
    keeping.keep(["asks"], [], now - timedelta(seconds=20))
    rules({"attention": now - timedelta(seconds=20), "attention_tasks": now - timedelta(minutes=4)})
    said = re.sub("<[^>]*>", "", reader.get("/").content.decode())
    quick, slow = (f"{now - ago:%H:%M:%S} UTC" for ago in (timedelta(seconds=20), timedelta(minutes=4)))
    normal = re.search(
        r"All normal: none of \d+ rules found anything at \S* ?(\S+ UTC) .*slower ones at \S* ?(\S+ UTC)", said
    )
    assert normal is not None and normal.groups() == (quick, slow), said
    assert re.search(rf"The last item was resolved 2\d s ago, at .*{quick}", said)
    rules({"attention": now - timedelta(minutes=3)})
    assert "the attention rules last ran" in reader.get("/").content.decode(), "three periods are over"


def rules(looked: dict[str, datetime]) -> None:
    Agent.objects.update(due_at=timezone.now())
    for name, at in looked.items():
        Agent.objects.update_or_create(
            name=name, defaults={"last_ended_at": at, "period_s": 300 if name == "attention_tasks" else 30}
        )


@pytest.mark.parametrize("path", ["/", "/attention/"])
def test_pages_themselves_see_that_agents_are_late_and_say_of_when_their_items_are(reader: Client, path: str) -> None:
    now = timezone.now()
    stopped, looked = now - timedelta(seconds=220), now - timedelta(seconds=230)

    def said() -> str:
        return " ".join(re.sub("<[^>]*>", "", reader.get(path).content.decode()).split())

    Sample.objects.create(at=now - timedelta(minutes=2), running_jobs=0, queued_jobs=5)
    keeping.keep(["asks"], [Found("asks", "1", "item 1", "/tasks/", "ada", 1)], looked)
    Agent.objects.all().delete()
    rules({"attention": looked, "attention_tasks": looked})
    for name, period_s in (("refiner", 5), ("adder", 1), ("feeder", 5), ("archive", 300)):
        Agent.objects.create(name=name, period_s=period_s, due_at=now)
    Agent.objects.create(name="merger", period_s=3, due_at=stopped, paused=True)
    assert "item 1" in said() and "late, since" not in said()
    assert f"checked at {looked:%Y-%m-%d %H:%M:%S} UTC (3 min ago); slower rules at" in said(), "its age is always said"

    Agent.objects.filter(name="adder").update(due_at=stopped)
    since = f"since {stopped:%Y-%m-%d %H:%M:%S} UTC: the attention rules last ran at {looked:%Y-%m-%d %H:%M:%S} UTC."
    assert f"1 of 6 agents is late (adder), {since}" in said()
    Agent.objects.filter(paused=False).update(due_at=stopped)
    assert f"4 of 6 agents are late, {since} See the agents" in said()
    keeping.keep(["asks"], [], looked)
    assert f"4 of 6 agents are late, {since}" in said() and "All normal" not in said() and "Nothing needs" not in said()


@pytest.mark.parametrize("path", ["/", "/attention/"])
def test_rules_that_nobody_looks_at_say_nothing(reader: Client, path: str) -> None:
    now = timezone.now()
    Sample.objects.create(at=now - timedelta(minutes=2), running_jobs=3, queued_jobs=5)
    rules({"attention": now, "attention_tasks": now - timedelta(minutes=40)})
    text = reader.get(path).content.decode()
    assert "All normal" not in text and "Nothing needs attention" not in text
    assert "Unknown: the attention rules last ran" in text and "40 min ago" in text
    Agent.objects.filter(name="attention").update(last_ended_at=None)
    text = reader.get(path).content.decode()
    assert "Nothing needs" not in text and "Unknown: the attention rules have not run yet" in text


def test_tasks_that_failed_are_told_beside_all_normal(
    reader: Client, make_task: Callable[..., Task], django_assert_max_num_queries: Any
) -> None:
    now = timezone.now()
    Sample.objects.create(at=now - timedelta(minutes=2), running_jobs=3, queued_jobs=5)
    rules({"attention": now, "attention_tasks": now})
    assert "No task failed in the last 24 hours." in reader.get("/").content.decode()
    failed = make_task(status="failed")
    make_task(status="done")
    Task.objects.filter(pk=make_task(status="broken").id).update(modification_time=now - timedelta(days=2))
    with django_assert_max_num_queries(MOST_QUERIES):
        text = reader.get("/").content.decode()
    assert "1 task failed</a> in the last 24 hours" in text
    address = re.search(r'href="(/tasks/\?status=failed[^"]*)"', text)
    assert address is not None
    shown = reader.get(address[1].replace("&amp;", "&")).content.decode()
    assert f"/tasks/{failed.id}/" in shown and "done" not in re.findall(r'class="chip[^>]*>([^<]*)', shown)
    Task.objects.update(status="broken", modification_time=now)
    assert "3 tasks failed</a>" in reader.get("/").content.decode()


def test_the_last_hour_is_that_before_the_time_that_is_stated(reader: Client) -> None:
    now = timezone.now()
    step = now - (now - samples.ORIGIN) % tiles.SPARK_STEP
    measured = step + timedelta(minutes=10)
    for minutes, finished, failed in ((0, 40, 4), (5, 30, 3), (10, 15, 1), (55, 5, 2), (60, 900, 900)):
        Sample.objects.create(at=measured - timedelta(minutes=minutes), queued_jobs=1, finished=finished, failed=failed)
    at = measured + timedelta(minutes=1)
    jobs_now = tiles.live(at, "")
    shown = {kpi.label: kpi.value for kpi in tiles.kpis(at, "", jobs_now)}
    assert shown["finished in the last hour"] == "90" and shown["failure rate in the last hour"] == "10.0"


def test_cores_of_the_step_under_way_are_drawn_beside_the_tiles(reader: Client) -> None:
    now = timezone.now()
    # The window of 24 hours has steps of ten minutes: the samples are in the one that has not ended.
    until = now - (now - samples.ORIGIN) % timedelta(minutes=10) + timedelta(minutes=6)
    at = until - timedelta(minutes=1)
    for share in ("", "Production"):
        Sample.objects.create(at=at, share=share, running_jobs=3, running_cores=24, queued_jobs=0)
    cores = running_cores(until - timedelta(hours=24), until, "", [])
    assert cores is not None and [(layer.name, layer.note) for layer in cores.plot.layers] == [("Production", "24")]
    assert cores.rows[0] == (until, [24.0])
    drawn = cores.plot.layers[0].path
    assert drawn.startswith(f"M{cores.plot.frame.left}.0,") and f"L{cores.plot.frame.right}.0," in drawn, (
        "it can be seen"
    )
    Sample.objects.exclude(share="").delete()
    Sample.objects.update(at=now - timedelta(minutes=1))
    assert "Only jobs with a share are drawn here, and none was running" in reader.get("/").content.decode()
    assert "No job was running at any sample in this window" in reader.get("/?share=User").content.decode()
    Sample.objects.create(at=now - timedelta(minutes=1), share="User", running_jobs=0, running_cores=0, finished=22)
    page = reader.get("/?share=User").content.decode()
    assert "shorter jobs can be missed" in page and "Nothing ran" not in page


def test_descriptions_that_were_imported_are_a_change(db: None) -> None:
    audit.record("manage.py", "grid.import", "grid", "sites.json", details={"changed": {"sites": 1, "queues": 2}})
    now = timezone.now() + timedelta(minutes=1)
    (change,) = recent_changes.changes(now - timedelta(hours=1), now)
    assert (change.who, change.what) == ("manage.py", "descriptions of the grid sites.json: imported (sites, queues)")


def test_changes_of_the_configuration_name_the_parameter(db: None) -> None:
    row = configuring.set_value("brokerage", "JOB_BROKER", "generic", by="ada", reason="cap test")
    audit.record("ada", "admin.change", "gdpconfig", row.pk, details={"changed": {"value": ["5", "6"]}})
    now = timezone.now() + timedelta(minutes=1)
    told = [change.what for change in recent_changes.changes(now - timedelta(hours=1), now)]
    assert told == [f"configuration {row}: changed (value)", f"configuration {row}: set"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 core hours"), (90, "under 0.1 core hours"), (1440, "0.4 core hours"), (3600 * 12, "12 core")],
)
def test_little_that_was_lost_is_not_told_as_nothing(reader: Client, seconds: int, said: str) -> None:
    now = timezone.now()
    error = ErrorFingerprint.objects.create(
        component="pilot", code="1", text="x", example="x", category="disk", first_seen=now, last_seen=now
    )
    JobFailure.objects.create(
        id=1,
        ended=now - timedelta(minutes=1),
        fingerprint=error,
        task_id=1,
        attempt=1,
        site="A",
        node="n",
        user="ada",
        activity="User",
        pilot_version="3",
        walltime_s=seconds,
        wasted_core_s=seconds,
    )
    text = reader.get("/").content.decode()
    assert said in text and "1 failed job<" in text
    assert (" %</span></td>" in text) == bool(seconds), "no part of nothing"


def test_an_empty_installation_is_told(reader: Client) -> None:
    text = reader.get("/").content.decode()
    for said in (
        "Nothing has been counted yet",
        "no samples yet",
        "No samples in this window",
        "No job failed.",
        "was changed.",
        "No task has been submitted yet",
        "manage.py submit --user ada",
    ):
        assert said in text


def test_the_tiles_of_a_site_that_has_just_begun_are_of_now(
    reader: Client, make_task: Callable[..., Task], make_job: Callable[..., Job]
) -> None:
    """The first sample is of the moment when there was nothing yet; the next one comes minutes later."""
    now = timezone.now()
    Sample.objects.create(at=now - timedelta(minutes=4), running_jobs=0, running_cores=0, queued_jobs=0, idle_tasks=0)
    task = make_task()
    ended = [make_job(task_id=task.id, status=status).id for status in ("finished", "finished", "failed")]
    for job_id, status in zip(ended, ("finished", "finished", "failed"), strict=True):
        JobStatusLog.objects.create(job_id=job_id, status=status, by="adder")
    JobStatusLog.objects.create(job_id=ended[0], status="finished", by="adder")  # said twice
    for status in ("running", "running", "activated"):
        make_job(task_id=task.id, status=status, core_count=4, gshare="Express")
    statistics.refresh()
    page = reader.get("/")
    assert {kpi.label: kpi.value for kpi in page.context["kpis"]} == {
        "running jobs": "2",
        "running cores": "8",
        "queued jobs": "1",
        "finished in the last hour": "2",
        "failure rate in the last hour": "33.3",
        "tasks with no jobs": "0",
    }
    text = page.content.decode()
    assert "tasks with no jobs 4 min ago" in " ".join(re.sub("<[^>]*>", "", text).split())
    assert "No task has been submitted yet" not in text
    Sample.objects.create(at=now - timedelta(minutes=2), running_jobs=0, running_cores=0, queued_jobs=0, idle_tasks=1)
    idle, _ = make_task(), make_task(status="done")
    (tile,) = [kpi for kpi in reader.get("/").context["kpis"] if kpi.label == "task with no jobs"]
    listed = reader.get(tile.url)
    assert [key for key, _ in listed.context["table"]] == [idle.id]
    tiles = {kpi.label: kpi.value for kpi in reader.get("/?share=User").context["kpis"]}
    assert (tiles["running jobs"], tiles["finished in the last hour"]) == ("0", "0")


def test_everything_is_on_the_overview(
    reader: Client, make_task: Callable[..., Task], django_assert_max_num_queries: Any
) -> None:
    now = timezone.now()
    for number in range(60):
        at = now - number * timedelta(minutes=5)
        Sample.objects.create(
            at=at, running_jobs=1200, running_cores=9600, queued_jobs=700, finished=90, failed=10, idle_tasks=4
        )
        for share, cores in (("Production", 9000), ("User", 600)):
            Sample.objects.create(at=at, share=share, running_cores=cores, running_jobs=7)
        Sample.objects.create(at=at, site="SITE_A", share="User", running_cores=600)
    task = make_task(name="<i>lab</i>")
    error = ErrorFingerprint.objects.create(
        component="pilot",
        code="1305",
        text="no space <b>left",
        example="x",
        category="disk",
        first_seen=now,
        last_seen=now,
    )
    for number in range(30):
        JobFailure.objects.create(
            id=number,
            ended=now - timedelta(minutes=number),
            fingerprint=error,
            task_id=task.id,
            attempt=1,
            site="SITE_A",
            node="wn1",
            user="ada",
            activity="User",
            pilot_version="3",
            walltime_s=3600,
            wasted_core_s=8 * 3600,
        )
    keeping.keep(["asks"], [Found("asks", str(n), f"item {n}", "/tasks/", "ada", n) for n in range(30)], now)
    Queue.objects.create(name="SITE_A", site_name="A")
    Queue.objects.filter(name="SITE_A").update(status="offline", status_reason="no power")
    audit.record("grace", "share.value", "globalshare", "User", reason="summer", details={"changed": {"value": [1, 2]}})
    SavedView.objects.create(owner="ada", page="tasks", name="mine", query="user=ada", pinned=True)
    with django_assert_max_num_queries(MOST_QUERIES):
        text = reader.get("/").content.decode().replace("\u202f", " ")
    for said in (
        "item 29",
        "All open items",
        "9 600",
        "1 200",
        "10.0 %",
        "Production",
        "share User: changed (value)",
        "summer",
        "SITE_A: online → offline",
        "no power",
        "240 core hours in 30 failed jobs",
        "no space &lt;b&gt;left",
        f"/tasks/{task.id}/errors/",
        "&lt;i&gt;lab",
        "/jobs/?user=ada&amp;status=failed&amp;window=24h",
        "/tasks/?user=ada",
        'class="change"',
    ):
        assert said in text, said
    assert "item 1<" not in text and "All normal" not in text
    of_share = reader.get("/?share=User&window=6h").content.decode()
    assert (
        "Running cores of User by site" in of_share
        and "last 6 hours" in of_share
        and "tasks with no jobs" not in of_share
    )
    assert "240 core hours" in of_share and "No job failed." in reader.get("/?share=Production").content.decode()
    assert "window is one of" in reader.get("/?window=9y").content.decode()
