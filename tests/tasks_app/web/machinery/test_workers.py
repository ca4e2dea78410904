"""The pages on workers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from brokerage_app.models import WorkerStats
from jedisite.identity.callers import end_tokens_of_workers, issue_token
from tasks_app.models import Harvester, HarvesterCommand, HarvesterDialog, Job, JobEnds, Worker, WorkerJob

pytestmark = pytest.mark.django_db


def test_the_pages_show_instances_queues_and_workers(
    client: Client, ada: User, make_job: Callable[..., Job], django_assert_max_num_queries: Any
) -> None:
    client.force_login(ada)
    assert "No harvester instance has reported a worker yet" in client.get("/workers/").content.decode()
    Harvester.objects.create(id="hv/1", owner="worker:<x>")
    for n in range(60):
        status = "failed" if n % 2 else "running"
        Worker.objects.create(harvester="hv/1", worker_id=n + 1, status=status, site="SITE/A", message="<b>no slot")
    WorkerStats.objects.create(harvester="hv/1", queue="SITE/B", resource_type="S", status="submitted", workers=1234)
    HarvesterDialog.objects.create(harvester="hv/1", number=1, message="<i>disk full", level="ERROR")
    HarvesterCommand.objects.create(harvester="hv/1", command="KILL_WORKERS")
    worker = Worker.objects.get(worker_id=60)
    job = make_job(worker_id="60", task_id=20_000_000)
    for number in (job.id, 1):
        WorkerJob.objects.create(harvester="hv/1", worker_id=60, job_id=number)
    JobEnds.objects.create(hour=timezone.now(), dimension="version", key="3.9.3.12", finished=3, failed=1)
    with django_assert_max_num_queries(12):
        page = client.get("/workers/")
    text = page.content.decode()
    facts = page.context["facts"]
    assert [(error.workers, error.queues) for error in facts.errors] == [(30, 1)]
    assert facts.whole.failed_percent == 100 and facts.whole.empty_percent is None
    assert [(version.name, version.failure_percent) for version in facts.versions] == [("3.9.3.12", 25.0)]
    assert "worker:&lt;x&gt;" in text and "&lt;b&gt;no slot" in text and "<b>no slot" not in text
    assert "30 running" in text and "1,234 submitted" in text.replace("\N{THIN SPACE}", ",").replace(
        "\N{NARROW NO-BREAK SPACE}", ","
    )
    assert "?cursor=" in text and f"/workers/{worker.id}/" in text
    for query, shown in (
        ("status=failed&site=SITE/A", 30),
        (f"job={job.id}", 1),
        ("harvester=no", 0),
        ("empty=false", 1),
        ("view=all", 50),
    ):
        rows = client.get(f"/workers/?{query}").context["table"]
        assert len(rows) == shown, query
    assert client.get("/workers/?job=x").status_code == 200
    with django_assert_max_num_queries(10):
        page = client.get(f"/workers/{worker.id}/").content.decode()
    assert f"/jobs/{job.id}/" in page and "archived" in page and "&lt;i&gt;disk full" in page and "KILL_WORKERS" in page
    assert f"/workers/?job={job.id}" in client.get(f"/jobs/{job.id}/").content.decode()
    assert client.get("/workers/999999/").status_code == 404


def test_pilots_of_local_services_are_shown_with_their_jobs(
    client: Client, ada: User, make_job: Callable[..., Job], django_assert_max_num_queries: Any
) -> None:
    client.force_login(ada)
    assert "No local service runs pilots now." in client.get("/workers/").content.decode()
    hour = timedelta(hours=1)
    tokens = {name: issue_token("local workers", "pilot", site="LOCAL", lifetime=hour, worker=name) for name in "123"}
    issue_token("gone", "pilot", site="LOCAL", lifetime=-hour, worker="4")
    issue_token("gone long ago", "pilot", site="LOCAL", lifetime=-25 * hour, worker="5")
    issue_token("shared", "pilot", site="LOCAL", lifetime=hour)
    end_tokens_of_workers([tokens["3"]])
    job = make_job(site="LOCAL", worker_id="2", status="running", worker_node="wn7", heartbeat_at=timezone.now())
    make_job(site="LOCAL", worker_id="1", status="finished")
    make_job(site="ELSEWHERE", worker_id="1", status="running")
    with django_assert_max_num_queries(12):
        answer = client.get("/workers/")
    found = [(one.queue, one.number, one.job, one.status, one.node) for one in answer.context["local_pilots"]]
    assert found == [("LOCAL", "2", job.id, "running", "wn7"), ("LOCAL", "1", None, None, None)]
    text = answer.content.decode()
    assert f"/jobs/{job.id}/" in text and "none now" in text
    assert answer.context["facts"].local_ended == [("LOCAL", 2)] and "Ended within 24 hours: 2 pilots of" in text
