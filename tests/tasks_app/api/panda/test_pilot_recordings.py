"""What the real pilots sent, sent to us: our answers are of the shape that they took, and what they do comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from brokerage_app.models import Queue, StorageEndpoint
from tasks_app.agents import adder
from tasks_app.models import Job, JobFile, JobParams
from tests.contract import Exchange, compare, exchanges, send

QUEUE, STORAGE = "LOCAL_Q", "LOCAL_SE"
ENDS = {
    "pilot37_generic": "finished",
    "pilot37_min": "finished",
    "pilot37_min2": "finished",
    "pilot37_minq": "finished",
    "pilot37_defmv": "finished",
    "pilot37_input": "finished",
    "pilot37_multi": "finished",
    "pilot37_worker": "finished",
    "pilot37_oidc": "finished",
    "pilot37_tls": "finished",
    "pilot37_tlstok": "finished",
    "pilot37_teststat": "finished",
    "pilot37_local": "finished",
    "pilot37_hwd": "finished",
    "pilot37_debug": "finished",
    "pilot37_upd500": "finished",
    "pilot37_upderr": "finished",
    "pilot311_generic": "finished",
    "pilot37_fail": (1305, "3"),
    "pilot37_noout": (1165, "0"),
    "pilot37_badtrf": (1149, "200"),
    "pilot37_noddm": (1133, "0"),
    "pilot37_kill": (1144, "0"),
    "pilot37_nullcmd": (1310, "0"),
    "pilot37_nojob": None,
    "pilot37_role": None,
    "pilot37_flaky": "sent",
    "pilot37_detail": "sent",
    "e2e_prun_pilot_pbook": None,
}
"""How the jobs of each recording end: a state, or of a failed one the codes of pilot and payload."""
PLACES = {
    "/pandaqueues.json": "/cache/pandaqueues.json",
    "/ddmendpoints.json": "/cache/ddmendpoints.json",
}
"""Addresses that the recordings had elsewhere; pilots are told them."""
AS_RECORDED = (
    "PandaID",
    "taskID",
    "attemptNr",
    "jobPars",
    "inFiles",
    "outFiles",
    "logFile",
    "logGUID",
    "GUID",
    "fsize",
    "checksum",
    "scopeIn",
    "scopeOut",
    "scopeLog",
    "ddmEndPointIn",
    "ddmEndPointOut",
    "realDatasetsIn",
    "prodDBlocks",
    "prodDBlockToken",
    "dispatchDblock",
    "dispatchDBlockToken",
    "transformation",
    "coreCount",
    "jobsetID",
    "swRelease",
    "processingType",
)
"""What of a job a pilot must read exactly as the recorded server wrote it."""
COLUMNS = {"inFiles": ("scopeIn", "GUID", "fsize", "checksum", "realDatasetsIn"), "outFiles": ("realDatasets",)}


def split(job: dict[str, Any], key: str) -> list[str | None]:
    return [None if value == "NULL" else value for value in str(job.get(key) or "").split(",")] if job.get(key) else []


def store(job: dict[str, Any], label: str) -> None:
    """The job of a recorded answer, in our queue."""
    number = job["PandaID"]
    Job.objects.create(
        id=number,
        task_id=job["taskID"],
        attempt=job["attemptNr"],
        status="activated",
        site=QUEUE,
        prod_source_label=label,
        transformation=job["transformation"],
        processing_type=job.get("processingType"),
        core_count=1,
        special_handling="debug" if job.get("debug") else None,
        jobset_id=job.get("jobsetID"),
        req_id=job.get("reqID"),
        name=job.get("jobName"),
        user="jane doe",
    )
    JobParams.objects.create(id=number, params=job["jobPars"])
    names = split(job, "inFiles")
    columns = [split(job, key) or [None] * len(names) for key in COLUMNS["inFiles"]]
    for lfn, scope, guid, size, checksum, dataset in zip(names, *columns, strict=True):
        JobFile.objects.create(
            job_id=number, type="input", lfn=lfn, scope=scope, guid=guid, size=size, checksum=checksum, dataset=dataset
        )
    scopes = iter(split(job, "scopeOut"))
    for place, lfn in enumerate(split(job, "outFiles")):
        log = lfn == job.get("logFile")
        JobFile.objects.create(
            job_id=number,
            type="log" if log else "output",
            lfn=lfn,
            scope=job["scopeLog"] if log else next(scopes),
            guid=job["logGUID"] if log else None,
            destination_se=split(job, "ddmEndPointOut")[place],
            file_id=place + 1,
        )


def is_job(exchange: Exchange) -> bool:
    answer = exchange.response
    return exchange.path.endswith("/getJob") and isinstance(answer, dict) and answer.get("PandaID") is not None


def faulty(exchange: Exchange) -> bool:
    """Whether the recorded server answered on purpose as none should."""
    answer = exchange.response
    if exchange.status != 200 or not isinstance(answer, dict) or answer.get("StatusCode") not in (0, 20):
        return exchange.method == "POST"
    return exchange.path.endswith("/updateJob") and not isinstance(answer.get("command"), str)


@pytest.mark.parametrize("name", ENDS)
def test_a_recorded_pilot_gets_answers_that_it_understands(tables: None, api: Callable[..., Client], name: str) -> None:
    recorded = [e for e in exchanges(name) if e.path in PLACES or e.path.startswith(("/server/panda/", "/cache/sched"))]
    assert recorded
    described = next((e.response for e in recorded if "schedconfig" in e.path), {})
    endpoints = next((e.response for e in recorded if e.path == "/ddmendpoints.json"), {STORAGE: {}})
    for endpoint in {STORAGE, *endpoints}:
        StorageEndpoint.objects.create(name=endpoint, site_name="LOCALSITE", path="/SE")
    Queue.objects.create(
        name=QUEUE,
        site_name="LOCALSITE",
        data=described,
        storage_id=STORAGE,
        status=described.get("status", "online"),
        catchall=described.get("catchall", ""),
    )
    asked = [e for e in recorded if e.path.endswith("/getJob")]
    for exchange in filter(is_job, asked):
        store(exchange.response, exchange.body["prodSourceLabel"])
    if name in ("pilot37_flaky", "pilot37_detail"):  # a pilot that was answered nonsense would have had a job
        store({"PandaID": 1, "taskID": 1, "attemptNr": 1, "transformation": "x", "jobPars": ""}, "user")
    pilot = api("pilot", site=QUEUE)
    for exchange in recorded:
        agreed(
            exchange,
            send(pilot, replace(exchange, path=PLACES.get(exchange.path, exchange.path), headers=plain(exchange))),
        )
    adder.run()
    ends = {
        job.status
        if job.status != "failed" or not job.pilot_error_code
        else (job.pilot_error_code, job.trans_exit_code)
        for job in Job.objects.all()
    }
    expected = ENDS[name]
    assert ends == ({expected} if expected else set()) or (name.startswith("e2e") and ends == {"finished", (1305, "4")})


def plain(exchange: Exchange) -> dict[str, str]:
    """The headers that say how the body is written: host and token are those of the test."""
    return {key: value for key, value in exchange.headers.items() if key in ("Content-Type", "Accept", "User-Agent")}


def agreed(exchange: Exchange, answer: Any) -> None:
    said = answer.json()
    assert answer.status_code == 200
    if exchange.method == "POST":
        assert type(said["StatusCode"]) is int, exchange.name
        if exchange.path.endswith("/updateJob"):
            assert type(said["command"]) is str, exchange.name
    if not faulty(exchange):
        known = exchange.response
        known = {key: value for key, value in known.items() if value is not None} if isinstance(known, dict) else known
        assert compare(replace(exchange, response=known), answer) == [], exchange.name
    if is_job(exchange):
        told = {key: exchange.response[key] for key in AS_RECORDED if key in exchange.response}
        assert {key: said[key] for key in told} == told
