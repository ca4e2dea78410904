"""Timelines: stays, moments and bars from logs; their drawing; the pages of a task and a job; what is usual."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.models import QueueStatusLog
from jedisite.models import AuditEntry
from tasks_app.agents import usual_durations
from tasks_app.drawing import diagrams, lanes, spans
from tasks_app.drawing.spans import Lane, Logged, Moment, Span, View
from tasks_app.models import Command, Job, JobStatusLog, ScoutReport, Task, TaskStatusLog, UsualDuration
from tasks_app.web.help import machines

MOST_QUERIES = 14
START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
Make = Callable[..., Any]


def logged(*states: str, step: timedelta = HOUR) -> list[Logged]:
    return [Logged(START + step * n, status, "someone", f"why {n}") for n, status in enumerate(states)]


def test_a_log_becomes_stays_and_notes_and_says_what_is_unusual() -> None:
    log = logged("ready", "running", "running", "pending", "running", "done")
    found = spans.stays(log, kind="task", usual={"running": 60.0, "pending": 3600.0}, final=["done"])
    assert [(s.text, s.length(START) // HOUR) for s in found] == [
        ("ready", 1),
        ("running", 2),
        ("pending", 1),
        ("running", 1),
        ("done", 0),
    ]
    assert [note.reason for note in spans.notes(log)] == ["why 2"]
    assert spans.taken(found)["running", "pending"] == 1
    total = spans.totals(found, START)[0]
    assert (total.status, total.stays, total.total_s, total.longest_s, total.times) == ("running", 2, 10800, 7200, 120)
    assert "done" not in {total.status for total in spans.totals(found, START)}
    assert spans.sentence(found, START) == "It was in running 2 h; usual 1 min."
    now = START + 12 * HOUR
    waits = spans.stays(logged("ready", "running", "pending"), kind="task", usual={"pending": 720.0}, final=())
    assert spans.sentence(waits, now) == "In pending for 10 h; usual 12 min."
    assert spans.sentence([], now) == ""


def test_any_number_of_stays_is_drawn_with_few_marks() -> None:
    log = logged(*(("pending", "running") * 3000), step=timedelta(seconds=30))
    row = spans.stays(log, kind="task", usual={}, final=())
    now = log[-1].at
    drawing = lanes.draw([Lane("states", [row])], View(START, now, START, now), now)
    assert drawing.count("<rect") <= 400 and "short ones: pending, running" in drawing
    near = lanes.draw([Lane("states", [row])], View(START, START + timedelta(minutes=5), START, now), now)
    assert near.count("<rect") == 10 and "usual" not in near


def test_what_is_drawn_is_escaped_and_what_lies_on_each_other_is_one_mark() -> None:
    evil = '"><script>alert(1)</script>'
    now = START + 10 * HOUR
    row = [Span("states", evil, "run", START, now, by=evil, reason=evil, usual_s=3600, url='/x/?a="&b')]
    moments = [Moment(START + HOUR, evil), Moment(START + HOUR, "again"), Moment(now + HOUR, "outside")]
    drawing = lanes.draw([Lane("a", [row]), Lane("b", moments=moments)], View(START, now, START, now), now)
    assert "<script" not in drawing and 'class="usual"' in drawing
    assert drawing.count('class="moment') == 1 and ">2</text>" in drawing and "outside" not in drawing


def test_spans_are_packed_so_that_none_lies_on_another() -> None:
    row = [Span("jobs", str(n), "ok", START + n * HOUR, START + (n + 3) * HOUR) for n in range(9)]
    packed = spans.packed(row, START)
    assert len(packed) == 3
    for some in packed:
        assert all(a.end <= b.start for a, b in pairwise(some) if a.end)


def test_the_route_is_drawn_bold_and_apart_from_boxes_that_stand_for_many() -> None:
    route = diagrams.Route({("running", "pending"): 2, ("pending", "running"): 1}, "running")
    picture = diagrams.draw(machines.TASKS, route)
    assert re.findall(r'class="\w+ taken"[^>]*data-moves="([^"]+)"><title>([^<]+)', picture) == [
        ("pending running", "pending → running: once"),
        ("running pending", "running → pending: 2 times"),
    ]
    assert picture.count('class="state now"') == 1 and picture.count('class="state been"') == 1
    drawn = {tuple(move.split()) for moves in re.findall('data-moves="([^"]+)"', picture) for move in moves.split(";")}
    assert drawn == diagrams.moves_of(machines.TASKS)


@pytest.fixture
def old_task(make_task: Make, make_job: Make) -> Task:
    now = timezone.now()
    task = make_task(
        prod_source_label="managed", task_type="prod", processing_type="simul", creation_date=now - timedelta(hours=20)
    )
    for hours, status, by, reason in (
        (20, "registered", "ada", "submitted"),
        (19, "running", "generator", ""),
        (10, "pending", "generator", "<b>no site</b>"),
        (1, "running", "pending", "again"),
        (0.5, "running", "grace", "change priority: priority 5"),
    ):
        at = now - timedelta(hours=hours)
        TaskStatusLog.objects.create(task_id=task.id, status=status, at=at, by=by, reason=reason)
    for number in range(12):
        begin = now - timedelta(hours=18 - number)
        make_job(
            task_id=task.id,
            status="failed" if number % 3 else "finished",
            site=f"SITE_{number % 2}",
            attempt=1,
            creation_time=begin,
            start_time=begin,
            end_time=begin + HOUR,
            modification_time=begin + HOUR,
        )
    Command.objects.create(task=task, name="pause", owner="grace", comment="stop it", status="refused", answer="no")
    ScoutReport.objects.create(
        task_id=task.id,
        scouts=True,
        outcome="passed",
        sample=1,
        finished_jobs=1,
        detail="all well",
        presets={},
        measured={},
    )
    AuditEntry.objects.create(actor="grace", action="pause", object_type="task", object_id=str(task.id))
    AuditEntry.objects.create(
        actor="grace", action="recover", object_type="task", object_id=str(task.id), reason="lost"
    )
    AuditEntry.objects.create(
        actor="grace", action="config.set", object_type="gdpconfig", object_id="7", reason="weights"
    )
    QueueStatusLog.objects.create(queue="SITE_1", old="online", new="offline", by="hc", reason="downtime", at=now)
    UsualDuration.objects.create(
        task_type="prod",
        label="managed",
        processing_type="simul",
        status="pending",
        stays=9,
        median_s=720,
        low_s=60,
        high_s=900,
        updated=now,
    )
    return task


def csv_rows(answer: Any) -> list[dict[str, str]]:
    assert answer.status_code == 200 and answer["Content-Type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


@pytest.mark.django_db
def test_the_timeline_of_a_task_tells_states_jobs_sites_and_events(
    reader: Client, old_task: Task, django_assert_max_num_queries: Any
) -> None:
    url = f"/tasks/{old_task.id}/timeline/"
    assert url in reader.get(f"/tasks/{old_task.id}/").content.decode()
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get(url)
    text = answer.content.decode()
    assert "it was in pending 9 h; usual 12 min" in text and "&lt;b&gt;no site" in text and "<b>no site" not in text
    assert "/do/pause/" in text and 'class="state now"' in text and " style=" not in text
    found = csv_rows(reader.get(f"{url}?format=csv"))
    assert len(found) == len(answer.context["rows"]) and list(found[0]) == [
        "lane",
        "what",
        "from",
        "until",
        "duration_s",
        "usual_s",
        "count",
        "by",
        "reason",
    ]
    by_lane: dict[str, list[str]] = {}
    for row in found:
        by_lane.setdefault(row["lane"], []).append(row["what"])
    assert by_lane["states"] == ["registered", "running", "pending", "running"]
    assert len(by_lane["jobs"]) == 12 and [site.split(" ")[0] for site in by_lane["sites"]] == ["SITE_0", "SITE_1"]
    assert set(by_lane["events"]) == {
        "change priority: priority 5",
        "command pause",
        "configuration 7: set",
        "recover lost files",
        "scouts passed",
        "SITE_1 is offline",
    }
    pending = next(row for row in found if row["what"] == "pending")
    assert (float(pending["duration_s"]), pending["usual_s"], pending["by"]) == (32400.0, "720.0", "generator")


@pytest.mark.django_db
def test_a_timeline_is_zoomed_by_its_address(reader: Client, old_task: Task) -> None:
    url = f"/tasks/{old_task.id}/timeline/"
    begin, end = (timezone.now() - timedelta(hours=h) for h in (9, 8))
    answer = reader.get(url, {"from": begin.isoformat(), "to": end.isoformat()})
    assert [row["what"] for row in answer.context["rows"] if row["lane"] == "states"] == ["pending"]
    for _, _, zoom in answer.context["zooms"]:
        assert reader.get(zoom).context["view"].fault == ""
    assert len(csv_rows(reader.get(url, {"from": begin.isoformat(), "to": end.isoformat(), "format": "csv"}))) == len(
        answer.context["rows"]
    )
    for wrong in (
        {"from": "x"},
        {"from": end.isoformat(), "to": begin.isoformat()},
        {"from": "0001-01-01"},
        {"to": "9999-12-31T23:59:59+00:00"},
    ):
        answer = reader.get(url, wrong)
        assert answer.status_code == 200 and answer.context["view"].fault, wrong


@pytest.mark.django_db
def test_many_jobs_are_bars_that_lead_to_their_lists_and_very_many_a_sample(
    reader: Client, old_task: Task, django_assert_max_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    Job.objects.bulk_create(
        Job(
            id=8_000_000_000 + n,
            task_id=old_task.id,
            status="finished",
            site="SITE_A",
            creation_time=now - 9 * HOUR,
            modification_time=now - timedelta(minutes=n),
        )
        for n in range(400)
    )
    url = f"/tasks/{old_task.id}/timeline/"
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get(url)
    bars = [row for row in answer.context["rows"] if row["lane"] == "jobs"]
    assert sum(row["count"] for row in bars) == 412 and len(bars) < 180
    largest = max(bars, key=lambda row: row["count"])
    assert reader.get(largest["url"]).context["counted"].total == largest["count"]
    monkeypatch.setattr("tasks_app.web.tasks.timeline_queries.SAMPLED_ABOVE", 100)
    answer = reader.get(url)
    assert answer.context["every"] == 8 and "estimated from 1 in 8" in answer.content.decode()
    assert 150 < answer.context["total"] < 900


@pytest.mark.django_db
def test_the_timeline_of_a_job_shows_its_attempts(
    reader: Client, failed_job: Job, make_job: Make, django_assert_max_num_queries: Any
) -> None:
    JobStatusLog.objects.filter(job_id=failed_job.id).update(site="SITE_A")
    url = f"/jobs/{failed_job.id}/timeline/"
    assert url in reader.get(f"/jobs/{failed_job.id}/").content.decode()
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.get(url)
    text = answer.content.decode()
    assert f"{failed_job.id} (this)" in text and "retry_more_memory" in text and 'class="state now"' in text
    lanes_of = {row["lane"] for row in csv_rows(reader.get(f"{url}?format=csv"))}
    assert lanes_of == {"states", "jobs", "sites", "events"}
    alone = make_job(status="activated")
    assert "the status log is empty" in reader.get(f"/jobs/{alone.id}/timeline/").content.decode()
    for path in ("/tasks/1/timeline/", "/jobs/1/timeline/"):
        assert reader.get(path).status_code == 404


@pytest.mark.django_db
def test_the_usual_length_of_stays_is_measured_by_kind_of_task(make_task: Make) -> None:
    now = timezone.now()
    for number in range(5):
        task = make_task(prod_source_label="managed", task_type="prod", processing_type="simul")
        begin, stay = now - timedelta(days=2), timedelta(minutes=10 * (number + 1))
        for at, status in (
            (begin, "ready"),
            (begin + HOUR, "pending"),
            (begin + HOUR, "pending"),
            (begin + HOUR + stay, "done"),
        ):
            TaskStatusLog.objects.create(task_id=task.id, status=status, at=at, by="x")
    other = make_task()
    TaskStatusLog.objects.create(task_id=other.id, status="ready", at=now - HOUR, by="x")
    TaskStatusLog.objects.create(task_id=other.id, status="running", at=now, by="x")
    assert usual_durations.run(now).items == 2
    found = {row.status: row for row in UsualDuration.objects.all()}
    assert set(found) == {"ready", "pending"}
    pending = found["pending"]
    assert (pending.label, pending.stays, pending.median_s, round(pending.low_s), round(pending.high_s)) == (
        "managed",
        5,
        1800,
        840,
        2760,
    )
    assert usual_durations.run(now + timedelta(days=60)).items == 0 and not UsualDuration.objects.exists()
