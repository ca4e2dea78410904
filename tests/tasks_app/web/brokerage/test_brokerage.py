"""Pages on why and on brokerage: what they say, their limits of queries, their empty states, and bad addresses."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.brokers.choosing import decide
from brokerage_app.cases.case import grid_of
from brokerage_app.models import GlobalShare, PilotCalls, Queue, VerdictCount, VerdictHour, VerdictRecord
from brokerage_app.policy.configuration import Configuration
from brokerage_app.verdicts import records
from brokerage_app.verdicts.records import Decided, Snapshots, keep
from brokerage_app.vocabulary.needs import InputData, Replica, TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.verdict import Verdict
from tasks_app.counts import line_order, statistics
from tasks_app.models import Job, Task

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12
GRID = grid_of([SiteView("A", max_memory_mb=2000), SiteView("B", status="offline"), SiteView("C", max_memory_mb=2900)])
LOW = "needs 3000 MB, the site gives 2900 MB"


@pytest.fixture
def decided(make_task: Callable[..., Task]) -> tuple[Task, int, int]:
    """A task with two decisions, the later one without a site, and their numbers."""
    task = make_task(status="pending", gshare="Express", name="user.ada.<b>bold</b>")
    for name in ("A", "B", "C"):
        Queue.objects.create(name=name, site_name=name)
    data = InputData("some.input", 10, 5000.0, True, replicas={"DISK": Replica(10, 5000.0)})
    numbers = []
    for memory in (1000, 3000):
        needs = TaskNeeds(memory_mb=memory, task_id=task.id, share="Express", inputs=(data,), walltime_s=7200)
        verdict = decide(needs, GRID, Configuration())
        numbers.append(keep(Decided(task.id, verdict, needs, snapshots=Snapshots(GRID))))
    VerdictRecord.objects.filter(pk=numbers[0]).update(
        first_at=timezone.now() - timedelta(hours=3), at=timezone.now() - timedelta(hours=1)
    )
    VerdictRecord.objects.filter(pk=numbers[1]).update(first_at=timezone.now() - timedelta(hours=1), repeats=5)
    records.fold()
    return task, numbers[0], numbers[1]


def test_the_why_page_of_a_task(
    reader: Client, decided: tuple[Task, int, int], django_assert_max_num_queries: Any
) -> None:
    task, _, latest = decided
    with django_assert_max_num_queries(MOST_QUERIES):
        text = reader.get(f"/tasks/{task.id}/why/").content.decode()
    assert '<tr class="first-no">' in text and '<tr class="unreached">' in text
    assert LOW in text and f"/brokerage/{latest}/" in text and "/help/codes/low_memory/" in text
    assert "Reasons over the last 48 hours" in text and '<path class="area k2"' in text and "3.33 %" in text
    assert "<b>bold" not in text
    assert "<title>Not enough memory at the site</title>" in text and "low_<wbr>memory</a>" in text
    for asked, sites in (
        ({"site": "a"}, ["A"]),
        ({"code": "low_memory"}, ["A", "C"]),
        ({"code": "site_offline", "site": "c"}, []),
        ({"answer": "near"}, ["C", "A"]),
        ({"answer": "", "site": ""}, ["B", "A", "C"]),
    ):
        (part,) = reader.get(f"/tasks/{task.id}/why/", asked).context["parts"]
        assert [row.site for row in part.rows] == sites
        answer = reader.get(f"/tasks/{task.id}/why/", {**asked, "format": "csv"})
        rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
        assert [row["site"] for row in rows] == sites, "the file has the rows of the table"
    assert rows[1]["sentence"] == "needs 3000 MB, the site gives 2000 MB" and rows[1]["who_can_fix"] == "user"
    since = {row.site: row.since for row in part.rows}
    assert since["B"] < since["A"], "B has been offline for longer than the memory is too little"


def test_a_task_that_nobody_decided_on(reader: Client, make_task: Callable[..., Task]) -> None:
    text = reader.get(f"/tasks/{make_task().id}/why/").content.decode()
    assert "No broker decision on this task yet" in text and "format=csv" not in text


def test_the_page_of_a_decision(
    reader: Client, decided: tuple[Task, int, int], django_assert_max_num_queries: Any
) -> None:
    task, first, latest = decided
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get(f"/brokerage/{latest}/")
    text = answer.content.decode().replace("\u202f", " ")
    assert [(step.code, step.gone, step.after) for step in answer.context["part"].steps] == [
        ("site_offline", 1, 2),
        ("low_memory", 2, 0),
    ]
    assert (
        f'rel="prev" href="/brokerage/{first}/"' in text
        and "some.<wbr>input" in text
        and "DISK: 10 files, 5.0 GB, complete" in text
    )
    assert "<dt>memory</dt><dd>3 000 MB</dd>" in text and "<dt>walltime</dt><dd>2 h</dd>" in text
    assert answer.context["changes"].lost == ("A", "C")
    before = reader.get(f"/brokerage/{first}/")
    assert f'rel="next" href="/brokerage/{latest}/"' in before.content.decode()
    assert before.context["factors"][0][0] == "running + 1" and len(before.context["factors"][1]) == 2
    assert reader.get(f"/brokerage/{latest}/?format=csv&answer=near").content.decode().count("\n") == 3
    assert reader.get(f"/brokerage/{10**9}/").status_code == 404
    stopped = keep(Decided(task.id, Verdict(stopped=Skip("", "throttled_queued", "{} jobs are queued", (9,)))))
    assert "/help/codes/throttled_queued/" in reader.get(f"/brokerage/{stopped}/").content.decode()


def test_the_page_of_brokerage(
    reader: Client, decided: tuple[Task, int, int], django_assert_max_num_queries: Any
) -> None:
    task, _, latest = decided
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get("/brokerage/?window=6h")
    text = answer.content.decode()
    assert (answer.context["decided"], answer.context["chosen"], answer.context["none"]) == (6, 1, 5)
    assert [(one.task, one.verdict, one.code) for one in answer.context["waiting"]] == [(task.id, latest, "low_memory")]
    assert [(one["code"], one["tasks"]) for one in answer.context["by_code"]] == [("low_memory", 1)]
    heat = json.loads(text.split('<script id="heat-data" type="application/json">')[1].split("</script>")[0])
    cells = {(heat["rows"][y], heat["columns"][x]): n for x, y, n in heat["cells"]}
    assert cells == {("A", "low_memory"): 5, ("C", "low_memory"): 5, ("B", "site_offline"): 6}
    assert answer.context["matrix"].by == "hour"
    days = reader.get("/brokerage/?window=7d").context["matrix"]
    assert days.by == "day" and days.cells == {(site, code): n for (site, code), n in cells.items()}
    assert reader.get("/brokerage/?share=Express&site=b").context["matrix"].sites == ["B"]
    for elsewhere in ("share=Other", "kind=task", "since=2020-01-01&until=2020-01-02"):
        text = reader.get(f"/brokerage/?{elsewhere}").content.decode()
        assert text.count('class="empty"') == 3, elsewhere
    for nonsense in ("kind=", "window=x", "since=x", "share=%00", "code=%3Cb%3E"):
        answer = reader.get(f"/brokerage/?{nonsense}")
        assert answer.status_code == 200 and "<b>" not in answer.content.decode()


def test_codes_have_pages(reader: Client, decided: tuple[Task, int, int], django_assert_max_num_queries: Any) -> None:
    task, _, _ = decided
    assert "/help/codes/low_memory/" in reader.get("/help/codes/").content.decode()
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get("/help/codes/low_memory/")
    text = answer.content.decode()
    assert (
        answer.context["sites"] == {"A": 5, "C": 5}
        and f"/tasks/{task.id}/why/" in text
        and "Ask for less memory" in text
    )
    assert "No broker has given this reason" in reader.get("/help/codes/zero_share/").content.decode()
    assert reader.get("/help/codes/never_said/").status_code == 404
    VerdictCount.objects.filter(code="low_memory").update(code="gone_code")
    VerdictHour.objects.filter(code="low_memory").update(code="gone_code")
    assert "gone code" in reader.get("/help/codes/gone_code/").content.decode()
    assert "gone_code" in reader.get("/brokerage/").content.decode()


def test_what_if_by_a_form(reader: Client, decided: tuple[Task, int, int], django_assert_max_num_queries: Any) -> None:
    task, _, latest = decided
    before = list(VerdictRecord.objects.order_by("id").values())
    start = reader.get("/brokerage/what-if/")
    assert "Which decision?" in start.content.decode()
    assert "now 3000 MB" in reader.get(f"/brokerage/what-if/?decision={latest}").content.decode()
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get(f"/brokerage/what-if/?task={task.id}&memory=2500&sites=A+C")
    found = answer.context["found"]
    assert [(row.site, row.change, row.before, row.after) for row in found.rows] == [
        ("C", "gained", "low_memory", ""),
        ("A", "other numbers", "low_memory", "low_memory"),
    ]
    assert "Sites gained: C." in answer.content.decode() and found.unchanged == 1
    online = reader.get(f"/tasks/{task.id}/what-if/", {"memory": "1000", "changes": "site.B.status=online"}).context[
        "found"
    ]
    assert online.difference.gained == ("A", "B", "C")
    pasted = reader.get("/brokerage/what-if/", {"needs": json.dumps({"memory_mb": 2500}), "memory": "1500"})
    assert pasted.context["found"].difference.gained == ("A",)
    assert list(VerdictRecord.objects.order_by("id").values()) == before, "nothing is touched"


@pytest.mark.parametrize(
    ("given", "says", "status"),
    [
        ({"task": "x"}, "is not a number", 400),
        ({"task": "7"}, "For task 7, no decision on its jobs was kept", 404),
        ({"decision": "7"}, "Decision 7 is not a decision on jobs", 404),
        ({"needs": "{"}, "Needs: they are not plain JSON", 400),
        ({"needs": "[]"}, "Needs: they are not a JSON object", 400),
        ({"needs": '{"memory": 3}'}, "memory", 400),
        ({"decision": "latest", "memory": "much"}, "Memory: &#x27;much&#x27; is not a whole number", 400),
        ({"decision": "latest", "memory": "99999999999"}, "is not a whole number from 0", 400),
        ({"decision": "latest", "changes": "needs.x=1"}, "there is no field x", 400),
        ({"decision": "latest", "changes": "needs.cores=1\n" * 60}, "the maximum is 50", 400),
    ],
)
def test_what_if_names_what_is_wrong(
    reader: Client, decided: tuple[Task, int, int], given: dict[str, str], says: str, status: int
) -> None:
    if given.get("decision") == "latest":
        given = {**given, "decision": str(decided[2])}
    answer = reader.get("/brokerage/what-if/", given)
    assert answer.status_code == status and says in answer.content.decode()


def test_the_why_page_of_a_job(
    reader: Client, decided: tuple[Task, int, int], make_job: Callable[..., Job], django_assert_max_num_queries: Any
) -> None:
    task, first, _ = decided
    made = timezone.now() - timedelta(hours=2)
    values = {"task_id": task.id, "site": "A", "status": "activated", "gshare": "Express", "creation_time": made}
    job = make_job(current_priority=500, **values)
    for share, priority in (("Express", 900), ("Express", 500), ("Express", 400), ("Other", 400), ("Other", 900)):
        make_job(**{**values, "gshare": share}, current_priority=priority)
    PilotCalls.objects.create(site="A", hour=timezone.now().replace(minute=0, second=0, microsecond=0), get_job=40)
    with django_assert_max_num_queries(MOST_QUERIES + 1):  # one asks for storages that are away
        text = reader.get(f"/jobs/{job.id}/why/").content.decode()
    found = reader.get(f"/api/v2/jobs/{job.id}/why/").json()
    assert found["decision"] == {"id": first, "at": found["decision"]["at"], "place": 1, "of": 2, "weight": 1.0}
    assert found["blocked_by"]["code"] == "jobs_go_first" and found["pilots"]["calls"] == 40
    assert found["ahead"] == {"share": "Express", "own_share": 2, "other_shares": 0, "urgent": 0}, (
        "without shares: by priority and age"
    )
    assert f"/brokerage/{first}/" in text and "Why job" in text and "40 calls" in text
    make_job(**{**values, "status": "running"})
    for name, value in (("Other", 90), ("Express", 10)):
        GlobalShare.objects.create(name=name, value=value)
    line_order.forget()
    statistics.refresh()
    assert reader.get(f"/api/v2/jobs/{job.id}/why/").json()["ahead"] == {
        "share": "Express",
        "own_share": 1,
        "other_shares": 2,
        "urgent": 0,
    }
    Job.objects.filter(pk=job.id).update(status="failed", pilot_error_code=1305, trans_exit_code="7")
    text = reader.get(f"/jobs/{job.id}/why/").content.decode()
    assert "exit code 7" in text and "job_ended_badly" in text and "Why job" in text
    assert reader.get("/jobs/1/why/").status_code == 404
