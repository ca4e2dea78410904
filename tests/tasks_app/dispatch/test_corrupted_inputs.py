"""Pilots name inputs that a job cannot read which merges outputs of ranges of events."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tasks_app.models import Job, JobFile

pytestmark = pytest.mark.django_db
OF_SECRET = {"fence": 3, "job_secret": "hush"}


@pytest.fixture
def job(make_job: Callable[..., Job]) -> Callable[..., int]:
    def make(**changes: Any) -> int:
        number = make_job(**{"status": "running", "event_service": 2, "site": "SITE_A", "attempt": 1, **changes}).id
        for name, type_ in (("z1", "zipinput"), ("z2", "zipinput"), ("z1", "input"), ("z3", "zipinput")):
            JobFile.objects.create(job_id=number, type=type_, lfn=name, status="ready")
        return number

    return make


def corrupted(number: int) -> list[tuple[str, str]]:
    found = JobFile.objects.filter(job_id=number, status="corrupted").order_by("id")
    return list(found.values_list("lfn", "type"))


def say(pilot: Client, name: str, **body: Any) -> None:
    pilot.post(f"/{name}", json.dumps(body), content_type="application/json")


@pytest.mark.parametrize("state", ["running", "failed"])
@pytest.mark.parametrize("way", ["v1", "legacy", "list", "v1 list"])
def test_inputs_that_a_merge_job_cannot_read_are_kept(
    job: Callable[..., int], api: Callable[..., Client], way: str, state: str
) -> None:
    number, other, pilot = job(), job(), api("pilot", site="SITE_A")
    v1 = {"job_id": number, "job_status": state, "attempt_nr": 1, "corrupted_files": "z1,z3,none,"}
    if way == "v1":
        say(pilot, "api/v1/pilot/update_job", **v1)
    elif way == "v1 list":
        say(pilot, "api/v1/pilot/update_jobs_bulk", job_list=json.dumps([v1]))
    else:
        form = {"jobId": str(number), "state": state, "attemptNr": "1", "corruptedFiles": "z1,z3"}
        if way == "legacy":
            pilot.post("/server/panda/updateJob", form)
        else:
            pilot.post("/server/panda/updateJobsInBulk", {"jobList": json.dumps([form])})
    assert corrupted(number) == [("z1", "zipinput"), ("z3", "zipinput")] and corrupted(other) == []
    assert Job.objects.get(pk=number).status == ("running" if state == "running" else "holding")


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "finished"},
        {"site": "SITE_B"},
        {"attempt": 2},
        {"secret_hash": hashlib.sha256(b"hush").digest(), "fence": 3},
    ],
    ids=str,
)
def test_nobody_else_says_so(job: Callable[..., int], api: Callable[..., Client], changes: dict[str, Any]) -> None:
    number = job(**changes)
    said = {"job_id": number, "job_status": "failed", "attempt_nr": 1, "corrupted_files": "z1"}
    say(api("pilot", site="SITE_A"), "api/v1/pilot/update_job", **said)
    assert corrupted(number) == []
    if "secret_hash" in changes:
        say(api("pilot", site="SITE_A"), "api/v1/pilot/update_job", **said, **OF_SECRET)
        assert corrupted(number) == [("z1", "zipinput")]
