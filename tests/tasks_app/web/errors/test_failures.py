"""The pages on errors, and the same through the API."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jedisite.models import AuditEntry
from tasks_app.drawing.bars import bars
from tasks_app.failures.booking import book_ends
from tasks_app.models import ErrorFingerprint, Job, JobEndDue, JobFailure, Task

pytestmark = pytest.mark.django_db
MOST_QUERIES = 12


@pytest.fixture
def failures(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> list[Job]:
    """60 finished jobs, and 30 failed ones: 20 on one node of SITE_A, 6 spread over others, 4 of which nothing is known."""
    now = timezone.now()
    task = make_task()
    ended = {
        "task_id": task.id,
        "state_change_time": now,
        "end_time": now,
        "start_time": now - timedelta(hours=1),
        "gshare": "User",
    }
    jobs = [make_job(status="finished", site=f"SITE_{'AB'[n % 2]}", **ended) for n in range(60)]
    for n in range(20):
        jobs.append(
            make_job(
                status="failed",
                site="SITE_A",
                worker_node="slot1@wn1.example",
                pilot_error_code=1099,
                core_count=8,
                pilot_error_diag=f"cannot copy <b>/data/{n}/f.root</b>",
                pilot_id="t|Q|PR|3.7.2.5",
                **ended,
            )
        )
    for n in range(6):
        jobs.append(make_job(status="failed", site=f"SITE_{n}", worker_node=f"n{n}", trans_exit_code="65", **ended))
    jobs += [make_job(status="failed", site="SITE_B", **{**ended, "task_id": None}) for _ in range(4)]
    JobEndDue.objects.bulk_create(JobEndDue(id=job.id) for job in jobs)
    book_ends(1000)
    return jobs


def test_kinds_of_errors_are_listed_with_what_they_cost_and_how_they_are_spread(
    reader: Client, failures: list[Job], django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get("/errors/")
    text, context = answer.content.decode(), answer.context
    assert [(row["kind"].failures, row["print"].key) for row in context["rows"]] == [
        (20, "pilot:1099"),
        (6, "trans:65"),
        (4, "no error"),
    ]
    assert context["rows"][0]["spread"].sentence == "all on one worker node, wn1.example"
    assert (context["failures"], context["new"], round(context["percent"], 1)) == (30, 3, 33.3)
    assert "33.3 %" in text and "of 90 ended jobs" in text
    assert [line["category"] for line in context["by_category"]] == ["stage-in", "payload", "unknown"]
    assert "cannot copy" in text and "<b>" not in text and "No error was reported" in text
    assert context["plot"].total == 30
    first = context["rows"][0]["print"]
    for query, number in (
        ("category=stage-in", 1),
        ("error=trans:65", 1),
        ("error=none", 1),
        ("site=SITE_A", 1),
        ("node=wn1.example", 1),
        ("user=ada", 3),
        ("share=User", 3),
        ("version=3.7.2.5", 1),
        (f"fingerprint={first.id}", 1),
        ("site=nowhere", 0),
        ("known=true", 0),
        ("known=false", 3),
        ("task=x", 0),
        ("window=2y", 3),
        ("since=2020-01-01T00:00&until=2020-01-02T00:00", 0),
    ):
        assert len(reader.get(f"/errors/?{query}").context["rows"]) == number, query
    orders = [reader.get(f"/errors/?order={order}").context["rows"][0]["kind"].failures for order in ("failures", "")]
    assert orders == [20, 20]
    assert 'name="task"' in reader.get("/errors/?task=x").content.decode()


def test_failed_jobs_are_counted_by_any_two_dimensions_and_each_number_leads_to_its_jobs(
    reader: Client, failures: list[Job], django_assert_max_num_queries: Any, api: Callable[..., Client]
) -> None:
    with django_assert_max_num_queries(MOST_QUERIES):
        table = reader.get("/errors/pivot/?rows=fingerprint&columns=site&show=rate").context
    sites = {head["head"].key: head["head"].rate for head in table["heads"]}
    assert round(sites["SITE_A"] or 0) == 400 and sites["SITE_0"] == 1000
    cells = [one for line in table["lines"] for one in line["cells"] if one["cell"].failures]
    assert {(one["cell"].failures, round(one["cell"].rate)) for one in cells} == {(20, 400), (1, 1000), (4, 118)}
    for one in cells:
        assert reader.get(one["url"]).context["counted"].total == one["cell"].failures
    dimensions = [d.name for d in table["dimensions"]]
    for number, rows in enumerate(dimensions):
        columns = dimensions[number - 1]
        query = f"rows={rows}&columns={columns}&show=wasted"
        context = reader.get(f"/errors/pivot/?{query}").context
        assert sum(one["cell"].failures for line in context["lines"] for one in line["cells"]) == 30, query
    unknown = reader.get("/errors/pivot/?rows=node&columns=task").context["lines"]
    assert [line["url"] for line in unknown if not line["head"].key] == [""]
    for query, said in (
        ("rows=odd", "rows is one of"),
        ("rows=site&columns=site", "rows and columns must differ"),
        ("show=x", "show is one of"),
    ):
        assert said in reader.get(f"/errors/pivot/?{query}").content.decode()
        answer = api().get(f"/api/v2/errors/pivot/?{query}")
        assert answer.status_code == 422 and answer.json()["errors"][0]["field"] in query + "rows"
    sent = api().get("/api/v2/errors/pivot/?rows=site&columns=error").json()
    assert (sent["failures"], sent["rows"], sent["cells"][0]["failures"]) == (30, "site", 20)
    answer: Any = api().get("/api/v2/errors/pivot/?rows=site&columns=error&format=csv")
    lines = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
    assert [(line["row"], line["column"], int(line["failures"])) for line in lines] == [
        (cell["row"], cell["column"], cell["failures"]) for cell in sent["cells"]
    ]
    for query in ("format=xml", "window=2y", "task=x", "odd=1"):
        assert api().get(f"/api/v2/errors/pivot/?{query}").status_code == 422, query


def test_a_kind_of_error_shows_where_it_is_and_people_write_down_what_they_know(
    reader: Client, failures: list[Job], django_assert_max_num_queries: Any, api: Callable[..., Client], make_user: Any
) -> None:
    kind = ErrorFingerprint.objects.get(code="1099")
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get(f"/errors/{kind.id}/")
    text = answer.content.decode()
    assert "20 failed jobs" in text and "all on one worker node, wn1.example" in text
    assert "cannot copy &lt;b&gt;/data/" in text and "Notes on this error" not in text
    assert "Most likely worker node wn1.example." in text
    by_site = next(table for table in answer.context["tops"] if table["title"] == "Site")
    assert [(line["top"].key, line["rate"]) for line in by_site["lines"]] == [("SITE_A", 400.0)]
    assert reader.get(answer.context["jobs_url"]).context["counted"].total == 20
    assert reader.get("/jobs/", {"fingerprint": kind.id}).context["counted"].total == 20
    assert reader.get("/errors/999999/").status_code == 404

    reader.force_login(make_user("grace", "shifter"))
    url = f"/errors/{kind.id}/classify/"
    until = timezone.now() + timedelta(days=2)
    known = {
        "ticket": "https://tickets.example/7",
        "known_until": f"{until:%Y-%m-%dT%H:%M}",
        "advice": "Wait.",
        "cause": "node",
    }
    refused = reader.post(url, known)
    assert refused.status_code == 422 and "This field is required" in refused.content.decode()
    assert reader.post(url, {**known, "known_until": "3000-01-01T00:00", "reason": "x"}).status_code == 422
    assert not AuditEntry.objects.exists()
    assert reader.post(url, {**known, "reason": "the disk is being replaced"}).status_code == 302
    entry = AuditEntry.objects.get(action="error.classify")
    assert (entry.actor, entry.object_id, entry.reason) == ("grace", str(kind.id), "the disk is being replaced")
    text = reader.get(f"/errors/{kind.id}/").content.decode()
    assert "A worker node, as grace noted" in text
    assert reader.post(url, {**known, "cause": "gremlins", "reason": "x"}).status_code == 422
    assert 'href="https://tickets.example/7"' in text and "known and expected until" in text
    assert len(reader.get("/errors/?known=false").context["rows"]) == 2
    (row,) = api().get("/api/v2/errors/?known=true").json()["results"]
    assert (row["id"], row["advice"], row["classified_by"]) == (kind.id, "Wait.", "grace")
    assert api().get(f"/api/v2/errors/{kind.id}/").json()["text"] == kind.text
    assert reader.post(url, {"reason": "mended"}).status_code == 302
    kind.refresh_from_db()
    assert (kind.ticket, kind.known_until, kind.classified_by) == ("", None, "")


def test_the_list_of_failed_jobs_is_the_api_and_the_csv(
    reader: Client, failures: list[Job], api: Callable[..., Client]
) -> None:
    page = reader.get("/errors/jobs/?site=SITE_A&window=1h")
    assert page.context["counted"].total == 20
    shown = [[cell.raw for cell in row] for _, row in page.context["table"]]
    sent: Any = reader.get(dict(page.context["export_forms"])["CSV"])
    assert list(csv.reader(io.StringIO(b"".join(sent.streaming_content).decode())))[1:] == shown
    assert "cannot copy" in page.content.decode() and "/errors/pivot/?site=SITE_A" in page.content.decode()
    (row, *_) = api().get("/api/v2/failures/?site=SITE_A").json()["results"]
    assert row["wasted_core_s"] == 8 * 3600
    assert len(api().get("/api/v2/failures/?category=unknown&until=2000-01-01").json()["results"]) == 0
    assert len(api().get("/api/v2/failures/?category=unknown").json()["results"]) == 4


def test_a_task_shows_the_causes_of_its_failures(
    reader: Client, failures: list[Job], make_task: Callable[..., Task], django_assert_max_num_queries: Any
) -> None:
    task_id = failures[0].task_id
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get(f"/tasks/{task_id}/errors/")
    rows = answer.context["rows"]
    assert [(round(row["part"]), row["print"].key) for row in rows] == [
        (77, "pilot:1099"),
        (23, "trans:65"),
    ]
    assert rows[0]["sites"][0].key == "SITE_A" and len(rows[1]["sites"]) == 3
    assert reader.get(rows[0]["jobs_url"]).context["counted"].total == 20
    other = make_task()
    assert "No job of this task failed" in reader.get(f"/tasks/{other.id}/errors/").content.decode()
    assert reader.get("/tasks/1/errors/").status_code == 404


def test_without_failures_the_pages_say_so(reader: Client, db: None) -> None:
    assert not JobFailure.objects.exists()
    for path in ("/errors/", "/errors/pivot/"):
        assert "No job failed in this window" in reader.get(path).content.decode()
        assert "No failed job matches" in reader.get(f"{path}?site=X").content.decode()
    assert "No job failed in the last 30 days" in reader.get("/errors/jobs/").content.decode()


def test_the_page_of_an_error_says_which_filter_is_wrong(reader: Client, failures: list[Job]) -> None:
    path = f"/errors/{ErrorFingerprint.objects.values_list('pk', flat=True)[0]}/"
    for fault in ("task=x", "site=SITE_C"):
        answer = reader.get(f"{path}?{fault}")
        text = answer.content.decode()
        assert answer.status_code == 200 and f"{fault[:4]}: " in text, fault
        assert "No job failed" not in text and "None in this window" not in text, fault


def test_bars_are_as_high_as_their_numbers() -> None:
    drawn = bars(timezone.now(), timedelta(minutes=15), [0, 5, 10], lambda start: f"{start:%H%M}")
    assert [bar.box.height > 0 for bar in drawn.bars] == [False, True, True] and drawn.total == 15
    assert drawn.bars[2].box.height == 2 * drawn.bars[1].box.height and not drawn.bars[0].url
