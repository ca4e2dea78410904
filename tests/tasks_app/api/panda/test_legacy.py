"""The legacy calls of PanDA's pilots: what a job looks like to them, whose reports are taken, how refusals look."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from brokerage_app.models import Queue, StorageEndpoint
from jedisite.identity import callers
from tasks_app.agents import adder
from tasks_app.dispatch import unwalled
from tasks_app.explaining import why_job
from tasks_app.models import CatalogueFile, Job
from tests.flow.driving import SITE, add_dataset, parameters, reads, settle, status, submit
from tests.flow.pilot import Pilot, drive

FORM = "application/x-www-form-urlencoded"
Call = Callable[..., dict[str, Any]]


@pytest.fixture
def old(api: Callable[..., Client]) -> Call:
    """Makes a legacy call as a pilot of a site, with a form as pilot 3.7 sends it, or packed JSON as 3.11 does."""
    clients: dict[str, Client] = {}

    def call(name: str, *, site: str = SITE, packed: bool = False, **body: Any) -> dict[str, Any]:
        if site not in clients:
            clients[site] = api("pilot", site=site, name=f"pilot of {site}")
        data, kind = urlencode(body), FORM
        if packed:
            data, kind = gzip.compress(json.dumps(body).encode(), mtime=0), "application/json"
        answer = clients[site].generic("POST", f"/server/panda/{name}", data, content_type=kind)
        assert answer.status_code == 200
        said: dict[str, Any] = answer.json()
        assert isinstance(said["StatusCode"], int)
        return said

    return call


def task_of(files: int) -> int:
    add_dataset("lab.in", files)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=2))
    settle()
    return made


def xml_of(job: dict[str, Any], **changes: Any) -> str:
    said = {"guid": "", "fsize": 14, "adler32": "28f204fa", "surl": "root://se.example//x", **changes}
    return json.dumps(dict.fromkeys(job["outFiles"].split(","), said))


@pytest.mark.parametrize("packed", [False, True], ids=["form", "packed JSON"])
def test_a_job_goes_from_the_queue_to_its_registered_outputs(books: None, old: Call, packed: bool) -> None:
    StorageEndpoint.objects.create(name="LAB_SE", site_name=SITE)
    Queue.objects.filter(pk=SITE).update(storage="LAB_SE")
    made = task_of(2)
    asks = {"siteName": SITE, "prodSourceLabel": "unified", "mem": "24105.55859375", "node": "vm", "worker_id": "77"}
    job = old("getJob", packed=packed, computingElement=SITE, allowOtherCountry=False, diskSpace=0, **asks)
    assert job["StatusCode"] == 0
    assert not {"jobSecret"} & set(job)
    assert job["transformation"] == f"{settings.JEDI_TRANSFORM_URL}/run_command"
    ins, outs = job["inFiles"].split(","), job["outFiles"].split(",")
    assert (len(ins), len(outs), outs[-1]) == (2, 2, job["logFile"])
    aligned_in = (
        "GUID",
        "fsize",
        "checksum",
        "scopeIn",
        "realDatasetsIn",
        "prodDBlocks",
        "prodDBlockToken",
        "dispatchDblock",
        "dispatchDBlockToken",
    )
    aligned_out = ("realDatasets", "destinationDblock", "destinationDBlockToken", "dispatchDBlockTokenForOut")
    assert [len(job[key].split(",")) for key in aligned_in] == [2] * len(aligned_in)
    assert [len(job[key].split(",")) for key in aligned_out] == [2] * len(aligned_out)
    assert (job["ddmEndPointIn"], job["scopeOut"], job["scopeLog"]) == ("LAB_SE,LAB_SE", "lab", "lab")
    assert job["ddmEndPointOut"] == job["fileDestinationSE"] and "NULL" not in job["ddmEndPointOut"]
    stored = Job.objects.get()
    assert (stored.secret_hash, stored.worker_id, stored.worker_node) == (None, "77", "vm")

    said = {
        "jobId": job["PandaID"],
        "attemptNr": job["attemptNr"],
        "siteName": SITE,
        "node": "vm",
        "xml": "",
        "metaData": "",
    }
    ok = {"StatusCode": 0, "command": "NULL"}
    begun = round(time.time() - 60, 4)
    more = {"startTime": str(begun), "coreCount": "1", "cpuConsumptionUnit": "s+AMD EPYC+AVX2"}
    for state in ("starting", "running", "running", "holding", "gone fishing"):
        assert old("updateJob", packed=packed, state=state, **said, **more) == ok
    final = (
        said
        | more
        | {
            "state": "finished",
            "xml": xml_of(job),
            "endTime": str(begun + 6.5),
            "pilotErrorCode": "0",
            "transExitCode": "0",
            "pilotTiming": "0|0|2|0|0|0",
            "cpuConsumptionTime": "seven",
            "maxRSS": "-3",
            "nEvents": "12.0",
        }
    )
    assert [old("updateJob", packed=packed, **final) for _ in range(2)] == [ok, ok]
    adder.run()
    stored.refresh_from_db()
    assert (stored.status, stored.cpu_time_s, stored.max_rss_kb, stored.events) == ("finished", None, None, 12)
    assert stored.start_time is not None and stored.start_time.timestamp() == pytest.approx(begun, abs=0.01)
    kept = CatalogueFile.objects.filter(lfn__in=outs)
    assert {(f.size, f.adler32, f.url) for f in kept} == {(14, "28f204fa", "root://se.example//x")}
    assert len({f.guid for f in kept}) == 2 and all(f.guid for f in kept)
    settle()
    assert status(made) == "done"
    assert old("getJob", packed=packed, **asks) == {"StatusCode": 20, "errorDialog": "no jobs in PanDA"}


def test_errors_of_a_failed_job_are_kept_and_a_second_final_report_changes_nothing(books: None, old: Call) -> None:
    task_of(2)
    job = old("getJob", siteName=SITE)
    said = {"jobId": job["PandaID"], "attemptNr": 1}
    old("updateJob", state="running", **said)
    log = json.dumps({job["logFile"]: json.loads(xml_of(job))[job["logFile"]] | {"guid": job["logGUID"]}})
    errors = {"pilotErrorCode": "-1305", "pilotErrorDiag": "Failed to execute payload", "transExitCode": "3"}
    for diag in ("", "said again"):
        assert old("updateJob", state="failed", xml=log, exeErrorDiag=diag, **errors, **said)["command"] == "NULL"
        adder.run()
    stored = Job.objects.get(pk=job["PandaID"])
    assert (stored.status, stored.pilot_error_code, stored.trans_exit_code) == ("failed", -1305, "3")
    assert (stored.pilot_error_diag, stored.exe_error_diag) == ("Failed to execute payload", None)
    assert CatalogueFile.objects.filter(lfn=job["logFile"], guid=job["logGUID"]).exists()
    drive(Pilot())


def test_several_jobs_come_as_a_list(books: None, old: Call) -> None:
    task_of(6)
    said = old("getJob", siteName=SITE, prodSourceLabel="ANY", nJobs=2)
    assert [job["StatusCode"] for job in said["jobs"]] == [0, 0]
    assert len({job["PandaID"] for job in said["jobs"]}) == 2
    for job in said["jobs"]:
        old("updateJob", jobId=job["PandaID"], attemptNr=1, state="finished", xml=xml_of(job))
    drive(Pilot())


def test_commands_reach_the_pilot_as_texts(books: None, old: Call) -> None:
    task_of(2)
    job = old("getJob", siteName=SITE)
    said = {"jobId": job["PandaID"], "state": "running"}
    assert old("updateJob", attemptNr=1, **said)["command"] == "NULL"
    assert old("updateJob", attemptNr=2, **said) == {"StatusCode": 0, "command": "badattemptnr,tobekilled"}
    Job.objects.update(command_to_pilot="tobekilled", task_buffer_error_code=100)
    assert old("updateJob", attemptNr=1, **said) == {"StatusCode": 0, "command": "tobekilled"}
    old("updateJob", jobId=job["PandaID"], state="failed", attemptNr=1, pilotErrorCode=1144)
    adder.run()
    assert old("updateJob", attemptNr=1, **said) == {"StatusCode": 0, "command": "tobekilled"}, "it is over"
    drive(Pilot())


def test_nobody_reports_on_a_job_of_another_site_or_of_a_pilot_with_a_secret(books: None, old: Call) -> None:
    task_of(4)
    bare = old("getJob", siteName=SITE)
    pilot = Pilot()
    (guarded,) = pilot.fetch()
    before = list(Job.objects.order_by("id").values())
    refused = {"StatusCode": 60, "errorDialog": "the job is not yours"}
    for state in ("running", "finished", "failed"):
        for number, site in ((guarded["PandaID"], SITE), (bare["PandaID"], "SITE_B"), (1, SITE)):
            said = old("updateJob", site=site, jobId=number, attemptNr=1, state=state, xml=xml_of(bare))
            assert said == refused, (state, number, site)
        assert old("updateJob", jobId=bare["PandaID"], state=state) == refused, "it must say which attempt"
    assert list(Job.objects.order_by("id").values()) == before
    assert old("getJob", site="SITE_B", siteName=SITE)["StatusCode"] == 60
    old("updateJob", jobId=bare["PandaID"], attemptNr=1, state="failed")
    pilot.end(guarded)
    drive(pilot)


@pytest.mark.parametrize(
    ("call", "body", "word"),
    [
        ("getJob", {}, "siteName"),
        ("getJob", {"siteName": SITE, "nJobs": 0}, "nJobs"),
        ("getJob", {"siteName": ["a"]}, "siteName"),
        ("updateJob", {}, "jobId"),
        ("updateJob", {"jobId": "six"}, "jobId"),
        ("updateJob", {"jobId": 1, "state": {}}, "state"),
        ("updateJob", {"jobId": 1, "attemptNr": 10**9}, "attemptNr"),
        ("updateJob", {"jobId": 1, "xml": "{"}, "xml"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_by_name(tables: None, old: Call, call: str, body: Any, word: str) -> None:
    said = old(call, packed=True, **body)
    assert said["StatusCode"] == 50 and word in said["errorDialog"]


def test_whoever_is_not_a_pilot_hears_so_in_json(tables: None, api: Callable[..., Client]) -> None:
    asked = {"/server/panda/getJob": {"siteName": SITE}, "/server/panda/updateJob": {"jobId": 1}}
    for address, body in asked.items():
        for role, code in (("anonymous", 70), ("user", 60), ("administrator", 60)):
            answer = api(role).post(address, body)
            assert (answer.status_code, answer.json()["StatusCode"]) == (200, code)


def test_without_the_database_the_answer_is_still_one_that_pilots_read(
    tables: None, api: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = api("pilot", site=SITE)
    ask = {"siteName": SITE}
    assert client.post("/server/panda/getJob", ask).json()["StatusCode"] == 20
    with monkeypatch.context() as patch:
        connection.close()
        patch.setitem(connection.settings_dict, "PORT", 1)
        for known in (True, False):
            if not known:
                callers._known.clear()
            for address, body in (("getJob", ask), ("updateJob", {"jobId": 1, "state": "running"})):
                said = client.post(f"/server/panda/{address}", body).json()
                assert said["StatusCode"] == 30 and "database" in said["errorDialog"]
    connection.close()


def test_at_a_queue_without_walls_pandas_pilots_get_jobs_of_administrators_only(
    books: None, old: Call, api: Callable[..., Client]
) -> None:
    """They cannot say it themselves."""
    task_of(4)
    User.objects.create_user("boss", is_superuser=True)
    hers, his = Job.objects.order_by("id")
    Job.objects.filter(pk=his.pk).update(user="boss")
    assert unwalled.note(SITE, "bwrap is not installed") and not unwalled.note("NOWHERE", "")
    assert [old("getJob", siteName=SITE).get("PandaID") for _ in range(2)] == [his.pk, None]
    asked = {"site_name": SITE, "prod_source_label": ""}
    newer = api("pilot", site=SITE).post("/api/v1/pilot/acquire_jobs", asked, content_type="application/json").json()
    assert not newer["success"]
    assert unwalled.note(SITE, "")
    assert old("getJob", siteName=SITE)["PandaID"] == hers.pk


def test_at_a_queue_whose_payloads_reach_no_channel_pandas_pilots_get_no_job_that_takes_ranges(
    books: None, old: Call, api: Callable[..., Client]
) -> None:
    """Merge jobs, clones and fine-grained jobs take none from that pilot. Our own pilots get all."""
    task_of(12)
    numbers = list(Job.objects.order_by("id").values_list("id", flat=True))
    for job, kind in zip(numbers, (1, 2, 4, 5, 6, 0), strict=True):
        Job.objects.filter(pk=job).update(event_service=kind)
    unwalled.note_channel(SITE, "its pilots are PanDA's")
    (gate,) = (one for one in why_job.why(Job.objects.get(pk=numbers[0]))["gates"] if one["name"] == "turn")
    assert gate["code"] == "job_without_channel" and "its pilots are PanDA's" in gate["sentence"]
    assert [old("getJob", siteName=SITE).get("PandaID") for _ in range(4)] == [*(numbers[i] for i in (1, 4, 5)), None]
    asked = {"site_name": SITE, "prod_source_label": ""}
    pilot = api("pilot", site=SITE)
    newer = pilot.post("/api/v1/pilot/acquire_jobs", asked, content_type="application/json").json()
    assert not newer["success"]
    ours = {**asked, "with_secret": True}
    own = pilot.post("/api/v1/pilot/acquire_jobs", ours, content_type="application/json").json()
    assert own["data"]["jobs"][0]["PandaID"] == numbers[0]
    unwalled.note_channel(SITE, "")
    assert old("getJob", siteName=SITE)["PandaID"] == numbers[2]
