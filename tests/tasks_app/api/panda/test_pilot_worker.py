"""What pilots ask and say beside their reports on jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.models import NodeGpus, WorkerNode
from tasks_app.agents.watchdogs import old_workers
from tasks_app.models import Harvester, HarvesterCommand, HarvesterDialog, HarvesterMetrics, Job, Worker, WorkerJob

pytestmark = pytest.mark.django_db


def post(client: Client, name: str, **body: Any) -> Any:
    answer = client.post(f"/api/v1/pilot/{name}", json.dumps(body), content_type="application/json")
    return answer.json() if answer.status_code == 200 else answer.status_code


def test_a_pilot_asks_for_the_states_of_jobs(make_job: Callable[..., Job], api: Callable[..., Client]) -> None:
    job, foreign = make_job(attempt=2), make_job(site="SITE_B")
    data = api("pilot", site="SITE_A").get(f"/api/v1/pilot/get_job_status?job_ids={job.id}&job_ids={foreign.id}").json()
    assert data["data"] == [
        {"job_id": job.id, "status": "running", "attempt_number": 2},
        {"job_id": foreign.id, "status": "unknown", "attempt_number": None},
    ]
    assert not api("pilot").get("/api/v1/pilot/get_job_status?job_ids=x").json()["success"]


def test_a_pilot_tells_of_its_worker_and_node(api: Callable[..., Client]) -> None:
    pilot = api("pilot", site="SITE_A")
    said = {"worker_id": 77, "harvester_id": "hv", "status": "started", "node_id": "wn1"}
    assert "no instance hv" in post(pilot, "update_worker_status", **said)["message"]
    Harvester.objects.create(id="hv", owner="worker:x")
    assert post(pilot, "update_worker_status", **said) == {"success": True, "message": "", "data": None}
    assert Worker.objects.values_list("pilot_status", "site", "node").get() == ("started", "SITE_A", "wn1")
    host = {"site": "A", "host_name": "wn1", "cpu_model": "<b>"}
    for more in (
        {"n_logical_cpus": 8, "clock_speed": 2400.5, "total_memory": 64000},
        {"cpu_architecture_level": "x86_64-v3"},
    ):
        assert post(pilot, "update_worker_node", **host, panda_queue="SITE_A", **more)["success"]
    node = WorkerNode.objects.get()
    assert (node.logical_cpus, node.clock_mhz, node.level, node.queue) == (8, 2400.5, "x86_64-v3", "SITE_A")
    assert post(pilot, "update_worker_node", **host, panda_queue="SITE_B") == 403
    gpu = {"site": "A", "host_name": "wn1", "vendor": "v", "model": "m", "count": 2, "vram": 40960}
    for _ in range(2):
        assert post(pilot, "update_worker_node_gpu", **gpu)["success"]
    assert NodeGpus.objects.values_list("count", "memory_mb").get() == (2, 40960)
    for name, bad, word in (
        ("update_worker_status", {**said, "worker_id": "x"}, "worker_id"),
        ("update_worker_node", {**host, "n_sockets": -1}, "n_sockets"),
        ("update_worker_node", {"site": "A"}, "host_name"),
        ("update_worker_node_gpu", {**gpu, "count": 2**40}, "count"),
    ):
        refused = post(pilot, name, **bad)
        assert not refused["success"] and word in refused["message"]


def test_it_is_kept_which_worker_got_which_job(make_job: Callable[..., Job], api: Callable[..., Client]) -> None:
    jobs = [make_job(status="activated", current_priority=n) for n in range(3)]
    harvester = api("worker")
    asked = {"site_name": "SITE_A", "scheduler_id": "harvester-hv", "harvester_id": "hv", "computing_element": "ce"}
    assert len(post(harvester, "acquire_jobs", **asked, worker_id=12, n_jobs=2)["data"]["jobs"]) == 2
    assert post(harvester, "acquire_jobs", **asked, worker_id="no number")["success"]
    assert set(WorkerJob.objects.values_list("harvester", "worker_id", "job_id")) == {
        ("hv", 12, jobs[2].id),
        ("hv", 12, jobs[1].id),
    }


def test_workers_and_words_of_long_ago_are_deleted() -> None:
    now = timezone.now()
    for days in (1, 8, 100):
        at = now - timedelta(days=days)
        Worker.objects.create(harvester="h", worker_id=days, status="running", site="A", last_update=at)
        WorkerJob.objects.create(harvester="h", worker_id=days, job_id=1, at=at)
        HarvesterDialog.objects.create(harvester="h", number=days, at=at)
        HarvesterMetrics.objects.create(harvester="h", host="x", at=at, metrics={})
        HarvesterCommand.objects.create(harvester="h", command="x", changed=at)
    assert old_workers.run(now=now).items == 7
    left = (Worker, WorkerJob, HarvesterDialog, HarvesterMetrics, HarvesterCommand)
    assert [model._default_manager.count() for model in left] == [2, 2, 1, 1, 2]
