"""The rarer legacy calls."""

from __future__ import annotations

import json
from collections.abc import Callable

from django.test import Client

from tasks_app.dispatch.harvester_instances import check_in
from tasks_app.labs.bench.scene import add_jobs
from tasks_app.models import Job, Worker
from tests.flow.driving import SITE

SP = "/server/panda/"


def test_reports_in_bulk_are_judged_alone_and_answered_as_texts(tables: None, api: Callable[..., Client]) -> None:
    ids = add_jobs(4, [SITE], "sent", inputs=0)
    Job.objects.filter(pk__in=ids[:3]).update(secret_hash=None)
    say = [{"jobId": job, "state": "running", "attemptNr": "1"} for job in ids]
    say += [{"jobId": ids[2], "state": "failed", "attemptNr": 2}, {"state": "running"}, 7]
    given, said = api("pilot", site=SITE).post(f"{SP}updateJobsInBulk", {"jobList": json.dumps(say)}).json()
    assert given is True
    answers = [json.loads(one) for one in said]
    ok, foreign = {"StatusCode": 0, "command": "NULL"}, {"StatusCode": 60, "errorDialog": "the job is not yours"}
    assert answers[:4] == [ok, ok, ok, foreign]
    assert answers[4]["command"].startswith("badattemptnr")
    assert [answer["StatusCode"] for answer in answers[4:]] == [0, 50, 50]
    assert "jobId" in answers[5]["errorDialog"] and "jobList[6]" in answers[6]["errorDialog"]
    states = list(Job.objects.order_by("id").values_list("status", flat=True))
    assert states == ["running", "running", "running", "sent"]


def test_states_of_jobs_are_told_to_pilots_of_their_site(tables: None, api: Callable[..., Client]) -> None:
    (first,) = add_jobs(1, [SITE], "running", inputs=0)
    (other,) = add_jobs(1, ["SITE_B"], "running", inputs=0)
    call = api("pilot", site=SITE)
    answer = call.post(f"{SP}getStatus", {"ids": f"{first} {other} 5"})
    assert answer.content == b"StatusCode=0&status=running+unknown+unknown&attemptNr=1+0+0"
    said = call.post(f"{SP}checkJobStatus", {"pandaIDs": f"{other},{first}"}).json()
    assert [row["status"] for row in said["data"]] == ["unknown", "running"]
    for name, field, text in (
        ("getStatus", "ids", "x"),
        ("checkJobStatus", "pandaIDs", ""),
        ("getStatus", "ids", "-1"),
    ):
        assert call.post(SP + name, {field: text}).json()["StatusCode"] == 50


def test_a_pilot_tells_of_its_worker(tables: None, api: Callable[..., Client]) -> None:
    check_in("hv1", by="production")
    call = api("pilot", site=SITE)
    tell = {"workerID": "77", "harvesterID": "hv1", "site": SITE}
    for status in ("started", "finished"):
        assert call.post(f"{SP}updateWorkerPilotStatus", {**tell, "status": status}).json() == {"StatusCode": 0}
    row = Worker.objects.get()
    assert (row.worker_id, row.pilot_status) == (77, "finished")
    unheard = call.post(f"{SP}updateWorkerPilotStatus", {**tell, "harvesterID": "nobody", "status": "started"}).json()
    assert unheard["StatusCode"] == 0 and Worker.objects.count() == 1
    assert (
        call.post(f"{SP}updateWorkerPilotStatus", {**tell, "site": "SITE_B", "status": "started"}).json()["StatusCode"]
        == 60
    )


def test_what_the_site_has_not_is_said_in_the_shape_that_pilots_read(tables: None, api: Callable[..., Client]) -> None:
    call = api("pilot", site=SITE)
    keys = call.post(f"{SP}getKeyPair", {"publicKeyName": "a", "privateKeyName": "b"}).json()
    assert (keys["StatusCode"], call.post(f"{SP}getProxy", {"role": "x"}).json()["StatusCode"]) == (80, 90)
    for client in (call, Client(enforce_csrf_checks=True)):
        said = client.post(f"{SP}insertTaskParams", {"a": 1})
        assert (said.status_code, said.json()["StatusCode"]) == (200, 30)
