"""What becomes of whole tasks when pilots, sites and storage do not do what they should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from brokerage_app.models import Queue, StorageEndpoint, VerdictRecord
from tasks_app.agents import adder, feeder, job_generator, refiner
from tasks_app.agents.watchdogs import lost_jobs, pending, stale_locks
from tasks_app.configured import timeout_limits
from tasks_app.ddm.addresses import storage_path
from tasks_app.dispatch.reports import update_job
from tasks_app.domain.job_timeouts import LOST_HEARTBEAT
from tasks_app.lifecycle import claims
from tasks_app.models import CatalogueFile, Job
from tests.flow.driving import (
    SITE,
    add_dataset,
    add_queue,
    age,
    dataset,
    files,
    jobs,
    parameters,
    reads,
    settle,
    states,
    status,
    submit,
    task,
    wake,
)
from tests.flow.pilot import Pilot, drive, final_report, report, stored

pytestmark = pytest.mark.usefixtures("books")


def task_with_jobs(number: int = 3, name: str = "lab.t", **more: Any) -> int:
    add_dataset(f"{name}.in", number)
    made = submit(parameters(name, reads(f"{name}.in"), **{"nFilesPerJob": 1, **more}))
    settle()
    return made


def until_generated(name: str = "lab.t", **more: Any) -> int:
    """A task after one pass of the job generator."""
    add_dataset(f"{name}.in", 3)
    made = submit(parameters(name, reads(f"{name}.in"), **{"nFilesPerJob": 1, **more}))
    for run in (refiner.run, feeder.run, job_generator.run):
        run()
    return made


def test_a_silent_pilot_loses_its_job_by_the_heartbeat_timeout_and_not_before() -> None:
    made = task_with_jobs(1)
    pilot = Pilot()
    (job,) = pilot.fetch()
    pilot.start(job)
    age(job["PandaID"], timeout_limits.limit("job.heartbeat").total_seconds() - 60)
    lost_jobs.run()
    assert states(made) == {"running": 1}
    age(job["PandaID"], 61)
    assert lost_jobs.run().items == 1
    (lost,) = jobs(made, status="failed")
    assert ("jobdispatcher", lost.dispatcher_error_code) == LOST_HEARTBEAT
    assert "no heartbeat of the running job since" in (lost.dispatcher_error_diag or "")
    drive(pilot)
    assert status(made) == "done"
    assert files(made)[0].attempt == 2


def test_a_job_that_was_handed_out_and_never_started_is_lost_sooner() -> None:
    made = task_with_jobs(1)
    pilot = Pilot()
    (job,) = pilot.fetch()
    age(job["PandaID"], timeout_limits.limit("job.sent").total_seconds() + 1)
    lost_jobs.run()
    drive(pilot)
    assert status(made) == "done"
    assert states(made) == {"failed": 1, "finished": 1}


def test_a_heartbeat_keeps_a_job_alive() -> None:
    made = task_with_jobs(1)
    pilot = Pilot()
    (job,) = pilot.fetch()
    pilot.start(job)
    age(job["PandaID"], timeout_limits.limit("job.heartbeat").total_seconds() + 60)
    assert update_job(report(job, "running")) == "NULL"
    assert lost_jobs.run().items == 0
    assert states(made) == {"running": 1}
    drive_to_end(pilot, job)


def drive_to_end(pilot: Pilot, *running: dict[str, Any]) -> None:
    for job in running:
        pilot.end(job)
    drive(pilot)


def test_a_late_report_of_a_lost_attempt_changes_nothing_and_the_newer_attempt_wins() -> None:
    made = task_with_jobs(1)
    silent, second = Pilot(), Pilot()
    (job,) = silent.fetch()
    silent.start(job)
    age(job["PandaID"], timeout_limits.limit("job.heartbeat").total_seconds() + 1)
    settle()
    (again,) = second.fetch()
    second.start(again)
    before = Job.objects.values().get(pk=job["PandaID"])
    assert update_job(report(job, "running")) == "tobekilled"
    assert silent.end(job, "finished") == "tobekilled"
    assert silent.end(job, "failed") == "NULL"
    adder.run()
    assert Job.objects.values().get(pk=job["PandaID"]) == before
    assert files(made)[0].job_id == again["PandaID"]
    assert not CatalogueFile.objects.filter(lfn__in=stored(job)).exists()
    drive_to_end(second, again)
    assert status(made) == "done"
    assert files(made)[0].attempt == 2


def test_a_task_that_no_site_can_take_waits_with_a_sentence_and_a_verdict_and_is_restored_later() -> None:
    made = until_generated(ramCount=16_000)
    assert status(made) == "pending"
    verdict = VerdictRecord.objects.get(task_id=made)
    assert [(site, code) for site, code, *_ in verdict.skipped] == [(SITE, "low_memory")]
    assert task(made).error_dialog == verdict.sentence
    assert task(made).frozen_time is not None
    Queue.objects.update(max_memory_mb=32_000)
    drive(Pilot())
    assert status(made) == "done"
    assert task(made).frozen_time is None


def test_a_task_without_any_online_site_is_pending() -> None:
    Queue.objects.update(status="offline")
    made = until_generated()
    assert status(made) == "pending"
    assert "offline" in (task(made).error_dialog or "") or "online" in (task(made).error_dialog or "")
    pending.run()
    assert status(made) == "pending", "its wait is not over"
    Queue.objects.update(status="online")
    drive(Pilot())
    assert status(made) == "done"


def test_queued_jobs_stay_near_the_floor_and_every_file_is_processed_in_the_end() -> None:
    floor = settings.JEDI_QUEUE_FLOOR
    made = task_with_jobs(3 * floor)
    assert floor <= states(made)["activated"] <= floor + 1
    assert status(made) == "running"
    drive(Pilot())
    assert status(made) == "done"
    assert states(made) == {"finished": 3 * floor}


def test_jobs_are_spread_over_sites_that_are_equal() -> None:
    add_queue("SITE_B")
    made = task_with_jobs(40)
    found = {site: len([j for j in jobs(made) if j.site == site]) for site in (SITE, "SITE_B")}
    assert min(found.values()) >= 10
    drive(Pilot(), Pilot(site="SITE_B"))
    assert status(made) == "done"


def test_a_claim_whose_holder_died_is_freed_and_the_task_goes_on() -> None:
    add_dataset("lab.in", 2)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    refiner.run()
    ((_, fence),) = claims.claim_tasks("a feeder that dies", ["defined"], 10)
    wake()
    assert feeder.run().items == 0, "the claim holds"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jedi_tasks SET lockedtime = lockedtime - %s * interval '1 second'", [301])
    assert stale_locks.run().items == 1
    assert task(made).fence == fence + 1
    drive(Pilot())
    assert status(made) == "done"


@pytest.mark.parametrize(
    "wrong",
    [
        {"adler32": "0123456789abcdef"},
        {"adler32": "not hex"},
        {"fsize": 2**63 - 1},
        {"nevents": 2**63 - 1},
        {"fsize": -1},
        {"fsize": True},
        {"surl": None},
        {"surl": "x" * 5000},
        {"guid": ["a", "list"]},
        {"nevents": "many"},
    ],
    ids=str,
)
def test_a_report_with_odd_values_ends_its_own_job_and_no_other(wrong: dict[str, Any]) -> None:
    made = task_with_jobs(3, maxAttempt=1)
    pilot = Pilot()
    odd, *good = pilot.fetch(3)
    pilot.start(odd)
    update_job(report(odd, "finished", outputs=stored(odd, **wrong)))
    for job in good:
        pilot.start(job)
        pilot.end(job)
    settle()
    assert {job.status for job in jobs(made, id__in=[job["PandaID"] for job in good])} == {"finished"}
    assert Job.objects.get(pk=odd["PandaID"]).status in ("finished", "failed")
    assert status(made) in ("done", "finished")
    assert dataset(made).files_finished >= 2


@pytest.mark.parametrize(
    "forged",
    [
        "file://{home}/secret_key",
        "file://localhost{home}/secret_key",
        "FILE://{home}/secret_key",
        " file://{home}/secret_key",
        "file://{storage}/%2e%2e/secret_key",
        "file://{storage}/elsewhere/{lfn}",
        "file:///tmp{place}",
        "file://{storage}/../storage{within}",
        "file://evil{place}",
    ],
)
def test_an_output_is_nowhere_on_this_machine_but_in_its_own_place(forged: str) -> None:
    """Another job would be given the file as its input: any file of the machine, by an address that a pilot makes up."""
    made = task_with_jobs(1, maxAttempt=1)
    pilot = Pilot()
    (job,) = pilot.fetch(1)
    pilot.start(job)
    outputs = stored(job)
    lfn = job["outFiles"].split(",")[0]
    place = storage_path(settings.JEDI_STORAGE, job["scopeOut"].split(",")[0], lfn)
    within = str(place).removeprefix(str(settings.JEDI_STORAGE))
    outputs[lfn]["surl"] = forged.format(
        home=settings.JEDI_HOME, storage=settings.JEDI_STORAGE, lfn=lfn, place=place, within=within
    )
    update_job(report(job, "finished", outputs=outputs))
    settle()
    ended = Job.objects.get(pk=job["PandaID"])
    assert (ended.status, ended.ddm_error_code) == ("failed", 201)
    assert "is not the place of a file of that scope and name" in (ended.ddm_error_diag or "")
    assert not CatalogueFile.objects.filter(lfn=lfn).exists()
    assert status(made) == "failed"


@pytest.mark.parametrize("where", ["storage", "endpoint", "described"])
def test_an_output_may_lie_in_its_place_in_any_storage_of_this_machine(where: str) -> None:
    protocols = {"write_wan": [{"endpoint": "file://", "path": "/data/c/"}, {"endpoint": "root://x", "path": "/"}]}
    StorageEndpoint.objects.create(name="B_SE", site_name=SITE, path="/data/b")
    StorageEndpoint.objects.create(name="C_SE", site_name=SITE, data={"arprotocols": protocols})
    root = {"storage": settings.JEDI_STORAGE, "endpoint": Path("/data/b"), "described": Path("/data/c")}[where]
    made = task_with_jobs(1)
    pilot = Pilot()
    (job,) = pilot.fetch(1)
    pilot.start(job)
    outputs = stored(job)
    lfn = job["outFiles"].split(",")[0]
    outputs[lfn]["surl"] = f"file://localhost{storage_path(root, job['scopeOut'].split(',')[0], lfn)}"
    update_job(report(job, "finished", outputs=outputs))
    settle()
    assert status(made) == "done"


def test_an_output_that_nobody_asked_for_is_not_registered() -> None:
    made = task_with_jobs(1)
    pilot = Pilot()
    (job,) = pilot.fetch()
    pilot.start(job)
    outputs = stored(job)
    outputs["stowaway.root"] = next(iter(outputs.values()))
    update_job(report(job, "finished", outputs=outputs))
    settle()
    assert status(made) == "done"
    assert not CatalogueFile.objects.filter(lfn="stowaway.root").exists()


def test_a_final_report_without_a_start_is_taken() -> None:
    made = task_with_jobs(1)
    pilot = Pilot()
    (job,) = pilot.fetch()
    update_job(final_report(job, "finished"))
    settle()
    assert status(made) == "done"
