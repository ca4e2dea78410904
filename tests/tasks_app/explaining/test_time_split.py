"""Where the time of jobs goes: the parts, the one that stands out, and what is read from the log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from tasks_app.domain.states import JOB_OPEN
from tasks_app.explaining import time_split
from tasks_app.explaining.rules.time_shares import PART_OF, Life, Measured, Part, split
from tasks_app.models import JobStatusLog, Task

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
Make = Callable[..., Any]
NOTHING = Measured(0, {})


def of(own: Measured, peers: Measured = NOTHING) -> Any:
    return split(own, peers, "Its jobs", "in other tasks of this kind")


def test_every_open_state_is_part_of_the_time() -> None:
    assert set(PART_OF) == JOB_OPEN


def test_without_others_a_long_wait_stands_out() -> None:
    found = of(Measured(10, {Part.PILOT: 6000, Part.RUN: 4000}))
    assert found.bottleneck is Part.PILOT
    assert found.sentence == "Its jobs spent 10 min waiting for a pilot, 60 % of the time."
    assert [(share.part, share.start, share.width) for share in found.shares] == [
        (Part.PILOT, 0, 60),
        (Part.RUN, 60, 40),
    ]
    assert found.measured == "Mean of 10 jobs" and found.label() == "waiting for a pilot 60 %, running 40 %"
    calm = of(Measured(10, {Part.PILOT: 1000, Part.RUN: 9000}))
    assert calm.bottleneck is None
    little = of(Measured(10, {Part.PILOT: 20, Part.RUN: 9980}))
    assert [share.part for share in little.shares] == [Part.RUN]
    assert calm.sentence == "Its jobs spent 90 % of the time running; no wait stands out."


def test_against_others_what_takes_longer_stands_out_and_not_what_is_usual() -> None:
    peers = Measured(100, {Part.PILOT: 60_000, Part.RUN: 40_000})
    assert of(Measured(10, {Part.PILOT: 6000, Part.RUN: 4000}), peers).bottleneck is None
    slow = of(Measured(10, {Part.PILOT: 6000, Part.RUN: 14_000}), peers)
    assert slow.bottleneck is Part.RUN
    assert slow.sentence == "Its jobs spent 23 min 20 s running; in other tasks of this kind: 6 min 40 s."
    few = of(Measured(10, {Part.PILOT: 6000, Part.RUN: 4000}), Measured(9, {Part.PILOT: 90_000}))
    assert few.bottleneck is Part.PILOT and few.peer_jobs == 0
    failing = of(Measured(10, {Part.FAILED: 9000, Part.RUN: 4000}), peers)
    assert failing.bottleneck is Part.FAILED
    assert failing.sentence == ("Its jobs spent 69 % of the time in failed attempts; in other tasks of this kind: 0 %.")
    quick = of(Measured(10, {Part.FAILED: 15}), Measured(100, {Part.PILOT: 800, Part.RUN: 100}))
    assert quick.bottleneck is Part.FAILED, "failures take less time than work"
    assert {share.part: share.peers_s for share in failing.shares}[Part.PILOT] == 600


def test_time_without_any_job_is_told() -> None:
    assert Life(440, 20).sentence == "It had no open job for 7 min of 7 min 20 s: see its timeline."
    assert Life(440, 400).sentence == "" and Life(40, 15).sentence == ""


def test_no_time_has_no_split() -> None:
    assert of(NOTHING) is None and of(Measured(2, {Part.RUN: 0.0})) is None


def logged(make_job: Make, task: Task, status: str, *stays: tuple[str, int]) -> Any:
    """A job that went through states, each so many seconds long."""
    job = make_job(task_id=task.id, status=status)
    JobStatusLog.objects.filter(job_id=job.id).delete()
    at = NOW - timedelta(seconds=sum(s for _, s in stays))
    for name, s in stays:
        JobStatusLog.objects.create(job_id=job.id, status=name, at=at, by="x")
        at += timedelta(seconds=s)
    if status not in JOB_OPEN:
        JobStatusLog.objects.create(job_id=job.id, status=status, at=at, by="x")
    return job


@pytest.mark.django_db
def test_the_log_tells_where_a_tasks_time_goes(make_task: Make, make_job: Make) -> None:
    kind = {"task_type": "anal", "processing_type": "panda-client", "prod_source_label": "user"}
    task, peer, other = make_task(**kind), make_task(**kind), make_task(**{**kind, "task_type": "prod"})
    logged(
        make_job,
        task,
        "finished",
        ("assigned", 40),
        ("activated", 100),
        ("sent", 10),
        ("running", 200),
        ("holding", 10),
    )
    # A note repeats the state, and an open job's last stay lasts until now.
    logged(make_job, task, "running", ("activated", 60), ("activated", 40), ("running", 60))
    logged(make_job, task, "failed", ("activated", 300), ("running", 100))
    for _ in range(12):
        logged(make_job, peer, "finished", ("activated", 10), ("running", 100))
    logged(make_job, other, "finished", ("activated", 10_000))
    found = time_split.of_task(task, NOW)
    assert found is not None and (found.jobs, found.peer_jobs) == (3, 12)
    assert {share.part: (round(share.mean_s * 3), share.peers_s) for share in found.shares} == {
        Part.INPUT: (40, 0),
        Part.PILOT: (200, 10),
        Part.START: (10, 0),
        Part.RUN: (260, 100),
        Part.STORE: (10, 0),
        Part.FAILED: (400, 0),
    }
    assert found.bottleneck is Part.FAILED
    Task.objects.filter(pk=task.pk).update(creation_date=NOW - timedelta(seconds=1400))
    task.refresh_from_db()
    slow = time_split.of_task(task, NOW)
    assert slow is not None and slow.without_jobs.startswith("It had no open job for 16 min 40 s of 23 min 20 s")
    later = time_split.of_task(task, NOW + timedelta(seconds=300))
    assert later is not None and {s.part: round(s.mean_s * 3) for s in later.shares}[Part.RUN] == 560
    assert time_split.of_task(make_task(**kind), NOW) is None


@pytest.mark.django_db
def test_a_failed_jobs_time_is_told_by_what_it_did(make_task: Make, make_job: Make) -> None:
    task = make_task()
    for _ in range(12):
        logged(make_job, task, "finished", ("activated", 10), ("running", 100))
    job = logged(make_job, task, "failed", ("activated", 300), ("running", 100))
    found = time_split.of_job(job, NOW)
    assert found is not None and found.bottleneck is Part.PILOT and (found.jobs, found.peer_jobs) == (1, 12)
    assert found.sentence == "It spent 5 min waiting for a pilot; other jobs of its task: 10 s."


@pytest.mark.django_db
def test_pages_say_it_on_their_first_screen(client: Client, make_user: Make, make_task: Make, make_job: Make) -> None:
    client.force_login(make_user("reader"))
    task = make_task()
    job = logged(make_job, task, "finished", ("activated", 300), ("running", 100))
    for url, whose in ((f"/tasks/{task.id}/", "Its jobs"), (f"/jobs/{job.id}/", "It")):
        text = client.get(url).content.decode()
        assert f"{whose} spent 5 min waiting for a pilot, 75 % of the time." in text
        assert "Where the time goes" in text
    empty = make_task()
    assert "Where the time goes" not in client.get(f"/tasks/{empty.id}/").content.decode()
