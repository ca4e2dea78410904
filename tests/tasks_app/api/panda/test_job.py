"""What PanDA's clients ask about jobs and do to them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from tasks_app.dispatch.debugging import set_debug
from tasks_app.models import Job, JobArchive, JobFile, JobMetadata, JobParams, JobStatusLog
from tasks_app.params.special_handling import DEBUG, has

pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
Make = Callable[..., Any]


def post(client: Client, name: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/api/v1/job/{name}", body, content_type="application/json")
    assert answer.status_code == 200
    said: dict[str, Any] = answer.json()
    return said


def test_jobs_are_described_in_order_with_their_files_and_those_of_the_archive(
    api: Api, make_task: Make, make_job: Make, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    task = make_task()
    jobs = [make_job(task_id=task.id, max_rss_kb=7, end_time=datetime(2026, 1, 1, tzinfo=UTC)) for _ in range(20)]
    old = JobArchive.objects.create(id=5, status="failed", site="SITE_A", task_id=task.id)
    JobParams.objects.create(id=jobs[3].id, params="--run")
    JobMetadata.objects.create(id=jobs[3].id, metadata={"a": [1]})
    for job in jobs:
        JobFile.objects.create(job_id=job.id, task_id=task.id, type="output", lfn=f"out.{job.id}", guid="G")
    wanted = [jobs[3].id, 9, old.id, jobs[0].id]
    client = api()
    with django_assert_max_num_queries(8):  # three of them say who asks
        found = post(client, "get_description_incl_archive", job_ids=wanted)["data"]
    assert [job and job["PandaID"] for job in found] == [jobs[3].id, None, old.id, jobs[0].id]
    shown = {
        "jediTaskID": task.id,
        "jobStatus": "running",
        "computingSite": "SITE_A",
        "jobParameters": "--run",
        "maxRSS": 7,
        "metadata": '{"a": [1]}',
        "endTime": {"__datetime__": "2026-01-01T00:00:00"},
        "startTime": None,
        "prodUserName": "ada",
    }
    assert {name: found[0][name] for name in shown} == shown
    assert [(f["lfn"], f["GUID"], f["type"]) for f in found[0]["Files"]] == [(f"out.{jobs[3].id}", "G", "output")]
    assert "secret" not in str(found).lower()
    living = post(client, "get_description", job_ids=wanted)["data"]
    assert [job and job["PandaID"] for job in living] == [jobs[3].id, None, None, jobs[0].id]


@pytest.mark.parametrize("ids", [None, [], ["x"], [0], [-1], [2**63], "x", {"a": 1}, [1] * 5501, [True]])
def test_wrong_ids_are_refused(api: Api, ids: Any) -> None:
    for name in ("get_description", "get_description_incl_archive", "kill"):
        said = post(api(), name, job_ids=ids)
        assert said["success"] is False and "job_ids" in said["message"]


def test_harvester_reads_states_and_what_pilots_are_to_do(api: Api, make_job: Make) -> None:
    running = make_job(command_to_pilot="tobekilled")
    query = {"job_ids": [running.id, 5]}
    told = {"status": "running", "command": "tobekilled"}
    unknown = {"status": "unknown", "command": "tobekilled"}
    for role in ("worker", "user"):
        assert api(role).get("/api/v1/job/get_status", query).json()["data"] == [told, unknown]


def test_owners_kill_their_jobs_and_production_managers_those_of_all(api: Api, make_task: Make, make_job: Make) -> None:
    task = make_task(user="ada")
    queued = make_job(task_id=task.id, status="activated", prod_source_label="user")
    running = make_job(task_id=task.id, status="running", prod_source_label="user")
    ended = make_job(task_id=task.id, status="finished")
    eves = make_job(user="eve", status="running", prod_source_label="user")
    ids = [eves.id, running.id, 7, queued.id, ended.id]
    said = post(api(), "kill", job_ids=ids)
    assert said["data"] == [False, True, False, True, False] and "3 jobs" in said["message"]
    states = dict(Job.objects.values_list("id", "status"))
    assert [states[i] for i in (queued.id, running.id, ended.id, eves.id)] == [
        "cancelled",
        "running",
        "finished",
        "running",
    ]
    assert Job.objects.get(pk=running.id).command_to_pilot == "tobekilled"
    assert JobStatusLog.objects.get(job_id=queued.id).by == "ada"
    manager = api("production")
    assert post(manager, "kill", job_ids=[eves.id])["data"] == [False]  # analysis of others only with the codes for it
    assert post(manager, "kill", job_ids=[eves.id], code=91)["data"] == [True]


def test_debug_mode_is_a_word_among_the_special_handlings(api: Api, make_job: Make) -> None:
    job = make_job(special_handling="sj")
    assert post(api(), "set_debug_mode", job_id=job.id, mode=True)["success"]
    assert set_debug(job.id, True)
    job.refresh_from_db()
    assert job.special_handling == "sj,debug" and has(job.special_handling, DEBUG)
    assert post(api(), "set_debug_mode", job_id=job.id, mode="False")["success"]
    job.refresh_from_db()
    assert job.special_handling == "sj" and not has(None, DEBUG)
    ended = make_job(status="failed", special_handling=None)
    for client, number in ((api("user", name="eve"), job.id), (api(), ended.id), (api(), 7)):
        no = post(client, "set_debug_mode", job_id=number, mode=True)
        assert no["success"] is False and str(number) in no["message"] and no["data"] == no["message"], (
            "pbook prints the data"
        )
    set_debug(job.id, False)
    Job.objects.filter(pk=job.id).update(special_handling="debug")
    set_debug(job.id, False)
    job.refresh_from_db()
    assert job.special_handling is None


def test_reports_of_payloads_are_listed_and_single_jobs_not_taken(api: Api, make_task: Make, make_job: Make) -> None:
    task = make_task()
    first, second, deep, failed = (make_job(task_id=task.id, status=s) for s in (*["finished"] * 3, "failed"))
    nested = "[" * 100_000
    for job, report in ((first, {"m": 1}), (second, '{"n": 2}'), (deep, nested), (failed, {"m": 3})):
        JobMetadata.objects.create(id=job.id, metadata=report)
    address = "/api/v1/job/get_metadata_for_analysis_jobs"
    found = api().get(address, {"task_id": task.id}).json()["data"]
    assert found == [
        {"PandaID": first.id, "m": 1},
        {"PandaID": second.id, "n": 2},
        {"PandaID": deep.id, "metadata": nested},
    ]
    assert api().get(address, {"task_id": 7}).json()["success"] is False
    assert post(api(), "submit", jobs="[]")["success"] is False
