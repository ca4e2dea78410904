"""What instances of harvester call, as they call it, and what they read in the answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.grid import repository
from brokerage_app.models import HarvesterSlots, Queue, WorkerStats
from tasks_app.counts import statistics
from tasks_app.models import (
    Harvester,
    HarvesterCommand,
    HarvesterDialog,
    HarvesterMetrics,
    Job,
    Worker,
    WorkerJob,
)

pytestmark = pytest.mark.django_db

Call = Callable[..., Any]
WORKER = {
    "workerID": 5,
    "batchID": 123,
    "queueName": "q",
    "status": "running",
    "computingSite": "SITE_A",
    "nCore": 8,
    "nodeID": None,
    "submitTime": "datetime/2026-03-04 05:06:07.123456",
    "startTime": "2026-03-04 05:06:08",
    "endTime": None,
    "jobType": "managed",
    "resourceType": "MCORE",
    "nativeExitCode": None,
    "diagMessage": "<b>",
    "nJobs": 1,
    "computingElement": "ce",
    "syncLevel": 0,
    "errorCode": None,
    "minRamCount": 2000,
}


@pytest.fixture
def harvester(api: Callable[..., Client]) -> Call:
    client = api("worker")

    def send(name: str, *, method: str = "POST", by: Client = client, status: int = 200, **body: Any) -> Any:
        address = f"/api/v1/harvester/{name}"
        sent = body if method == "GET" else json.dumps(body)
        answer = by.get(address, sent) if method == "GET" else by.post(address, sent, content_type="application/json")
        assert answer.status_code == status, answer.content
        return answer.json() if status == 200 else answer.content.decode()

    return send


def test_an_instance_reports_itself_and_its_workers(harvester: Call, make_job: Callable[..., Job]) -> None:
    jobs = [make_job().id for _ in range(2)]
    about = {"startTime": "datetime/2026-01-02 03:04:05.000006", "sw_version": "0.7", "commit_stamp": "abc"}
    assert harvester("heartbeat", harvester_id="hv", data=about) == {"success": True, "message": "", "data": None}
    harvester("heartbeat", harvester_id="hv")
    instance = Harvester.objects.get()
    assert (instance.id, instance.owner, instance.version, instance.commit) == ("hv", "worker:worker", "0.7", "abc")
    assert instance.started == datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    workers = [
        {**WORKER, "pandaid_list": jobs},
        {**WORKER, "workerID": "x"},
        {**WORKER, "workerID": 6, "computingSite": ""},
        {**WORKER, "workerID": 2**40, "nCore": None, "submitTime": "04-MAR-26 05:06:07"},
        [],
        {**WORKER, "workerID": 7, "pandaid_list": "1"},
        {**WORKER, "workerID": 8, "errorCode": 10**12},
    ]
    for sent in (workers, json.dumps(workers)):
        answer = harvester("update_workers", harvester_id="hv", workers=sent)
        assert answer["success"] and answer["data"] == [True, False, False, True, False, False, False]
        for word in ("workers[1]: workerID", "computingSite is missing", "workers[4]", "pandaid_list", "errorCode"):
            assert word in answer["message"]
    first, second = Worker.objects.order_by("worker_id")
    assert (first.batch_id, first.cores, first.site, first.message) == ("123", 8, "SITE_A", "<b>")
    assert first.submitted == datetime(2026, 3, 4, 5, 6, 7, 123456, tzinfo=UTC) and second.submitted is None
    assert sorted(WorkerJob.objects.values_list("worker_id", "job_id")) == [(5, job) for job in jobs]
    assert harvester("get_current_worker_id", method="GET", harvester_id="hv")["data"] == 2**40
    assert harvester("get_current_worker_id", method="GET", harvester_id="new")["data"] == 0


def test_numbers_of_workers_reach_the_broker(harvester: Call) -> None:
    Queue.objects.create(name="SITE_A", site_name="A", status="online")
    counts = {"managed": {"MCORE": {"running": 3, "submitted": 4, "ready": 9}}, "user": {"SCORE": {"running": 2}}}
    named = {"harvester_id": "hv", "panda_queue": "SITE_A"}
    for _ in range(2):
        assert harvester("report_worker_statistics", **named, statistics=json.dumps(counts))["success"]
    now = timezone.now() + timedelta(seconds=1)
    statistics.refresh_activity(now)
    grid = repository.load_grid(now)
    assert grid.sites["SITE_A"].batch_jobs == 9
    assert harvester("get_worker_statistics", method="GET")["data"] == {"SITE_A": {"hv": counts}}
    older = {"harvesterID": "hv", "siteName": "SITE_A", "paramsList": '{"user": {"SCORE": {"running": 1}}}'}
    assert harvester("report_worker_statistics", **older)["success"]
    assert [(s.job_type, s.workers) for s in WorkerStats.objects.all()] == [("user", 1)], "what is not said is gone"
    harvester("report_worker_statistics", **named, statistics={})
    assert not WorkerStats.objects.exists()
    for bad, word in (
        ({"statistics": {"a": 1}}, "statistics.a"),
        ({"statistics": {"a": {"b": {"c": -1}}}}, "statistics.a.b.c"),
        ({"statistics": {"a": {"b": {"c": True}}}}, "statistics.a.b.c"),
        ({"statistics": {"a" * 21: {"b": {"c": 1}}}}, "20 characters"),
        ({}, "statistics is missing"),
        ({"statistics": {}, "panda_queue": "NO"}, "no queue NO"),
        ({"statistics": {}, "panda_queue": ""}, "panda_queue is missing"),
    ):
        refused = harvester("report_worker_statistics", **{**named, **bad})
        assert not refused["success"] and word in refused["message"], bad


def test_commands_are_fetched_once_and_acknowledged_by_their_instance(
    harvester: Call, api: Callable[..., Client]
) -> None:
    Queue.objects.create(name="SITE_A", site_name="A", status="online")
    operator = api("production")
    sweep = {"panda_queue": "SITE_A", "status_list": ["submitted"], "ce_list": [], "submission_host_list": ["h1"]}
    assert "no instance" in harvester("add_sweep_command", by=operator, **sweep)["message"]
    harvester(
        "report_worker_statistics", harvester_id="hv", panda_queue="SITE_A", statistics={"u": {"S": {"running": 1}}}
    )
    assert harvester("add_sweep_command", by=operator, **sweep)["success"]
    HarvesterCommand.objects.create(harvester="hv", command="TELL", ack_requested=False)
    assert harvester("acquire_commands", harvester_id="hv", n_commands=0)["data"] == []
    first, second = harvester("acquire_commands", harvester_id="hv", n_commands=10)["data"]
    assert (first["command"], first["ack_requested"], second["ack_requested"]) == ("KILL_WORKERS", True, False)
    assert first["params"] == {
        "computingSite": ["SITE_A"],
        "status": ["submitted"],
        "computingElement": "ALL",
        "submissionHost": ["h1"],
    }
    assert datetime.fromisoformat(first["creation_date"]).tzinfo is None
    assert harvester("acquire_commands", harvester_id="hv", n_commands=10)["data"] == []
    other = api("worker", name="other")
    for name, more in (
        ("acquire_commands", {"n_commands": 1}),
        ("heartbeat", {}),
        ("update_workers", {"workers": [WORKER]}),
        ("add_dialogs", {"dialogs": []}),
        ("update_service_metrics", {"metrics": []}),
    ):
        assert "somebody else" in harvester(name, by=other, status=403, harvester_id="hv", **more), name
    numbers = [first["command_id"], second["command_id"], 10**12]
    for by, expected in ((other, {"retrieved", "acknowledged"}), (None, {"acknowledged"})):
        assert harvester("acknowledge_commands", command_ids=numbers, **({"by": by} if by else {}))["success"]
        assert set(HarvesterCommand.objects.values_list("status", flat=True)) == expected
    assert not Worker.objects.exists()


def test_names_that_turn_the_direction_of_a_line_are_refused_and_texts_lose_what_does(harvester: Call) -> None:
    for name, more in (
        ("heartbeat", {"harvester_id": "h\u202ev"}),
        ("update_workers", {"harvester_id": "h\nv", "workers": []}),
        ("report_worker_statistics", {"harvesterID": "h\u2066v", "siteName": "SITE_A", "paramsList": {}}),
        (
            "report_worker_statistics",
            {"harvester_id": "hv", "panda_queue": "SITE_A", "statistics": {"u\u202e": {"S": {"running": 1}}}},
        ),
    ):
        said = harvester(name, **more)
        assert not said["success"] and "contains a line feed or another control character" in said["message"], name
    assert not Harvester.objects.exists()
    assert harvester("heartbeat", harvester_id="hv", data={"sw_version": "1\u202e2"})["success"]
    assert Harvester.objects.get().version == "1 2"
    assert harvester("update_workers", harvester_id="hv", workers=[{**WORKER, "diagMessage": "a\u202eb"}])["success"]
    assert Worker.objects.get().message == "a b"


def test_dialogs_metrics_and_slots_are_kept_once(harvester: Call, api: Callable[..., Client]) -> None:
    dialog = {
        "diagID": 1,
        "moduleName": "m",
        "identifier": "i",
        "creationTime": "2026-01-02 03:04:05.6",
        "messageLevel": "INFO",
        "diagMessage": "<b>" * 500,
    }
    metrics = ["2026-01-02 03:04:05", "host", '{"rss_mib": 1.5}']
    for _ in range(2):
        assert harvester("add_dialogs", harvester_id="hv", dialogs=[dialog, {"diagID": 2}])["success"]
        assert harvester("update_service_metrics", harvester_id="hv", metrics=[metrics])["success"]
    assert HarvesterDialog.objects.count() == 2 and len(HarvesterDialog.objects.get(number=1).message or "") == 500
    assert HarvesterMetrics.objects.get().metrics == {"rss_mib": 1.5}
    operator = api("production")
    Queue.objects.create(name="SITE_A", site_name="A", status="online")
    later = f"{timezone.now() + timedelta(days=1):%Y-%m-%d %H:%M:%S}"
    for slots in (3, 5):
        assert harvester("add_target_slots", by=operator, panda_queue="SITE_A", slots=slots, expiration_date=later)[
            "success"
        ]
    row = HarvesterSlots.objects.get()
    assert (row.slots, row.share, row.expires and f"{row.expires:%Y-%m-%d %H:%M:%S}") == (5, None, later)
    for name, more, word in (
        ("add_dialogs", {"dialogs": [{"diagID": "x"}]}, "dialogs[0].diagID"),
        ("add_dialogs", {"dialogs": "{"}, "dialogs"),
        ("update_service_metrics", {"metrics": [["now", "h", {}]]}, "metrics[0]"),
        ("update_service_metrics", {"metrics": [["2026-01-02 03:04:05", "h", "{"]]}, "metrics[0]"),
        ("update_service_metrics", {"metrics": [[]]}, "metrics[0]"),
        ("add_target_slots", {"panda_queue": "NO", "slots": 1}, "no queue NO"),
        ("add_target_slots", {"panda_queue": "SITE_A", "slots": "many"}, "slots"),
        ("add_target_slots", {"panda_queue": "SITE_A", "slots": 1, "expiration_date": "soon"}, "expiration_date"),
        ("acquire_commands", {"n_commands": -1}, "n_commands"),
        ("acknowledge_commands", {"command_ids": ["x"]}, "command_ids"),
        ("heartbeat", {"harvester_id": ""}, "harvester_id"),
        ("heartbeat", {"data": "[]"}, "data"),
    ):
        by = operator if name == "add_target_slots" else api("worker")
        refused = harvester(name, by=by, **{"harvester_id": "hv", **more})
        assert not refused["success"] and word in refused["message"], (name, more, refused)


def test_a_token_of_one_queue_speaks_for_no_other(harvester: Call, api: Callable[..., Client]) -> None:
    bound = api("worker", name="bound", site="SITE_B")
    answer = harvester(
        "update_workers", by=bound, harvester_id="b", workers=[WORKER, {**WORKER, "computingSite": "SITE_B"}]
    )
    assert answer["data"] == [False, True] and Worker.objects.get().site == "SITE_B"
    named = {"harvester_id": "b", "panda_queue": "SITE_A", "statistics": {}}
    harvester("report_worker_statistics", by=bound, status=403, **named)
