"""Whole tasks: what comes of parameters that stand for themselves."""

from __future__ import annotations

import pytest

from brokerage_app.models import Queue
from jedisite.vocabulary.roles import Caller, Role
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.lifecycle import rights
from tasks_app.models import CatalogueDataset, File, Job, TaskParams
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import submitting
from tests.flow.driving import (
    SITE,
    USER,
    add_dataset,
    add_files,
    add_queue,
    dataset,
    files,
    inputs,
    jobs,
    look_again,
    parameters,
    reads,
    settle,
    states,
    status,
    submit,
    task,
    template,
    wake,
)
from tests.flow.pilot import Pilot, drive
from tests.flow.test_commands import command
from tests.flow.test_retry_rules import rule

pytestmark = pytest.mark.usefixtures("books")
ADA = Caller("ada", frozenset({Role.PRODUCTION}))
GB = 1024**3


def with_jobs(params: dict[str, object]) -> int:
    """A task with the jobs that can be made of it now."""
    made = submit(params)
    refiner.run()
    feeder.run()
    wake()
    job_generator.run()
    return made


@pytest.mark.parametrize(
    ("more", "direct"),
    [({"allowInputWAN": True}, True), ({}, False), ({"allowInputWAN": True, "useLocalIO": 1}, False)],
    ids=["allowed", "not asked for", "copied all the same"],
)
def test_inputs_of_other_sites_are_read_directly_where_task_and_queue_allow_it(
    more: dict[str, object], direct: bool
) -> None:
    add_queue("SITE_B", direct_access_wan=True)
    Queue.objects.filter(pk=SITE).update(status="offline")
    add_dataset("lab.in", 1, size=5 * GB)
    (job,) = jobs(with_jobs(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, **more)))
    assert job.transfer_type == ("direct" if direct else None)
    assert ((job.max_disk_mb or 0) < 1000) is direct, "what is not copied needs no space"


def test_a_command_line_with_its_own_set_up_is_left_as_it_is() -> None:
    add_dataset("lab.in", 1)
    with_jobs(parameters("lab.t", reads("lab.in"), noExecStrCnv=True))
    with_jobs(parameters("lab.u", reads("lab.in")))
    told = {job["taskID"]: job.get("noExecStrCnv") for job in Pilot().fetch(2)}
    assert list(told.values()) == ["True", None]


def test_pilots_leave_a_payload_alone_that_may_write_nothing_for_long() -> None:
    add_dataset("lab.in", 1)
    with_jobs(parameters("lab.t", reads("lab.in"), noLoopingCheck=True))
    with_jobs(parameters("lab.u", reads("lab.in"), walltime=-100))
    with_jobs(parameters("lab.v", reads("lab.in")))
    told = {job["taskID"]: job.get("loopingCheck") for job in Pilot().fetch(3)}
    assert [told[task] for task in sorted(told)] == ["False", "False", None]


def test_a_cloud_that_stands_for_a_vo_goes_with_the_jobs_and_keeps_them_from_no_queue() -> None:
    Queue.objects.update(cloud="DE")
    add_queue("SITE_B", cloud="FR")
    add_dataset("lab.in", 40)
    made = with_jobs(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, cloud="DE", cloudAsVO=True))
    assert {(job.site, job.cloud) for job in jobs(made)} == {(SITE, "DE"), ("SITE_B", "DE")}
    add_dataset("lab.other", 4)
    bound = with_jobs(parameters("lab.u", reads("lab.other"), nFilesPerJob=1, cloud="DE"))
    assert {(job.site, job.cloud) for job in jobs(bound)} == {(SITE, None)}


@pytest.mark.parametrize("again", [True, False])
def test_secondary_files_are_used_again_on_demand_though_their_dataset_still_grows(again: bool) -> None:
    add_dataset("lab.in", 4)
    add_dataset("lab.side", 1, open=True)
    made = submit(
        parameters(
            "lab.t",
            reads("lab.in"),
            reads("lab.side", "SIDE", ratio=1),
            nFilesPerJob=1,
            runUntilClosed=True,
            reuseSecOnDemand=again,
        )
    )
    settle()
    assert [inputs(job.id)[-1] for job in jobs(made)] == ["lab.side.00000"] * (4 if again else 1)
    add_files("lab.side", range(1, 4))
    CatalogueDataset.objects.update(open=False)
    look_again()
    drive(Pilot())
    assert status(made) == "done"
    used = File.objects.filter(task_id=made, status="finished", lfn__startswith="lab.side").values_list(
        "lfn", flat=True
    )
    assert len(set(used)) == (1 if again else 4)


def test_the_newest_database_release_goes_to_every_job() -> None:
    for name in ("v310701", "v310612", "v31080101", "v310901_special"):
        add_dataset(f"ddo.000001.Atlas.Ideal.DBRelease.{name}", 1)
    add_dataset("ddo.000001.Atlas.Ideal.DBRelease.v310702")  # without a file
    add_dataset("lab.in", 2)
    asked = parameters("lab.t", reads("lab.in"), reads("DBR_LATEST", "DBR"), nFilesPerJob=1)
    made = submitting.submit(submitting.check(asked, ADA), by="ada").task_id
    newest = "ddo.000001.Atlas.Ideal.DBRelease.v310701"
    assert [item.get("dataset") for item in TaskParams.objects.get(pk=made).params["jobParameters"]][1] == newest
    settle()
    assert [inputs(job.id)[-1] for job in jobs(made)] == [f"{newest}.00000"] * 2


def test_without_a_database_release_the_newest_is_refused_at_the_door() -> None:
    add_dataset("lab.in", 2)
    with pytest.raises(ParamErrors, match=r"jobParameters\[1\].dataset: DBR_LATEST stands for the newest release"):
        submitting.check(parameters("lab.t", reads("lab.in"), reads("DBR_LATEST", "DBR")), ADA)
    assert not Job.objects.exists()


def test_a_task_that_its_workflow_holds_works_on_what_is_there_until_its_owner_releases_it() -> None:
    add_dataset("lab.in", 2)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, workflowHoldup=True))
    drive(Pilot())
    assert (status(made), states(made)) == ("defined", {"finished": 2})
    assert "its workflow holds the task until the command release" in (task(made).error_dialog or "")
    add_files("lab.in", range(2, 3))
    look_again()
    drive(Pilot())
    assert (status(made), states(made)) == ("defined", {"finished": 3})
    owner = Caller(USER, frozenset({Role.USER}))
    assert rights.refusal(owner, "release", task(made)) is None
    assert command(made, "release").answer == "its workflow holds it no longer"
    settle()
    assert status(made) == "done"
    assert "workflowHoldup" not in TaskParams.objects.get(pk=made).params
    assert "WH" not in (task(made).split_rule or "")


def test_memory_of_retries_takes_the_steps_of_the_task() -> None:
    rule(1305, "memory_xtimes")
    add_dataset("lab.in", 1)
    made = submit(
        parameters("lab.t", reads("lab.in"), nFilesPerJob=1, retryRamOffset=2600, retryRamStep=300, maxAttempt=4)
    )
    settle()
    pilot = Pilot()
    for _ in range(3):
        for job in pilot.fetch(1):
            pilot.end(job, "failed")
        settle()
    assert [job.min_ram_mb for job in jobs(made)] == [900, 2340, 2610, 2880]
    pilot.end(pilot.fetch(1)[0], "finished")
    settle()


def test_a_sandbox_of_data_management_comes_with_every_job() -> None:
    add_dataset("lab.boxes", 2)
    add_dataset("lab.in", 2)
    line = {"type": "constant", "value": "-a lab.boxes.00001 -p true"}
    made = submit(parameters("lab.t", line, reads("lab.in"), nFilesPerJob=1, tarBallViaDDM="lab.boxes:lab.boxes.00001"))
    settle()
    pilot = Pilot()
    got = pilot.fetch(2)
    assert [job["inFiles"].split(",") for job in got] == [[f"lab.in.{n:05d}", "lab.boxes.00001"] for n in range(2)]
    for job in got:
        pilot.end(job, "finished")
    settle()
    assert status(made) == "done"


@pytest.mark.parametrize(
    ("box", "says"),
    [
        ("lab.boxes:other", "tarBallViaDDM: the dataset lab.boxes has no file other"),
        ("lab.nowhere:x", "lab.nowhere does not exist"),
        ("x", "must be dataset:file"),
    ],
)
def test_a_sandbox_that_is_nowhere_breaks_the_task(box: str, says: str) -> None:
    add_dataset("lab.boxes", 1)
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, tarBallViaDDM=box))
    settle()
    assert status(made) == "broken" and says in (task(made).error_dialog or "")


@pytest.mark.parametrize(
    ("more", "pieces"),
    [
        ({"getNumEventsInMetadata": True}, [30, 30, 30, 10, 20, 30, 30, 20]),
        ({}, [100, 100]),
        ({"getNumEventsInMetadata": True, "nEventsPerInputFile": 60}, [30, 30, 30, 30]),
    ],
    ids=["from metadata", "not asked for", "said by the task"],
)
def test_files_are_cut_by_the_events_that_metadata_give(more: dict[str, object], pieces: list[int]) -> None:
    add_dataset("lab.in", 2, events=100)
    made = submit(parameters("lab.t", reads("lab.in"), nEventsPerJob=30, **more))
    settle()
    found = File.objects.filter(task_id=made, type="input").order_by("id")
    assert [(f.end_event - f.start_event + 1) if f.end_event is not None else f.events for f in found] == pieces
    drive(Pilot())
    assert status(made) == "done"


def test_files_that_are_named_may_have_been_made_again() -> None:
    add_dataset("lab.in")
    held = CatalogueDataset.objects.get(name="lab.in")
    for lfn in ("f._000001.root.1", "f._000001.root.3", "f._000002.root.1", "f._000004.root.1"):
        held.files.create(lfn=lfn, scope="lab", guid="", size=1, adler32="1", endpoint="SE", url="file:///x")
    item = reads("lab.in", files=["f._000001.root.1", "f._000002.root"])
    with pytest.raises(ParamErrors, match=r"f\._000002\.root' is not in lab\.in"):
        submitting.submit(submitting.check(parameters("lab.u", item), ADA), by="ada")
    asked = parameters("lab.t", item, nFilesPerJob=1, useInFilesWithNewAttemptNr=True)
    made = submitting.submit(submitting.check(asked, ADA), by="ada").task_id
    settle()
    assert [inputs(job.id) for job in jobs(made)] == [["f._000001.root.3"], ["f._000002.root.1"]]
    drive(Pilot())
    assert status(made) == "done"


def test_a_named_file_of_which_no_attempt_is_there_breaks_the_task() -> None:
    add_dataset("lab.in", 1)
    item = reads("lab.in", files=["lab.in.00000", "f._000002.root.1"])
    made = submit(parameters("lab.t", item, nFilesPerJob=1, useInFilesWithNewAttemptNr=True))
    settle()
    assert status(made) == "broken" and "f._000002.root.1" in (task(made).error_dialog or "")


@pytest.mark.parametrize("may", [True, False])
def test_a_job_ends_well_without_an_output_that_it_need_not_make(may: bool) -> None:
    add_dataset("lab.in", 2)
    item = template("output", "hist.${SN}.root", "lab.t.hist", allowNoOutput=may)
    made = with_jobs(parameters("lab.t", reads("lab.in"), item, nFilesPerJob=1, maxAttempt=1))
    first, second = (pilot := Pilot()).fetch(2)
    assert [job.get("allowNoOutput") for job in (first, second)] == (
        ["hist.000001.root", "hist.000002.root"] if may else [None, None]
    )
    pilot.end(first, "incomplete")
    pilot.end(second)
    settle()
    assert (status(made), states(made)) == (
        ("done", {"finished": 2}) if may else ("finished", {"finished": 1, "failed": 1})
    )
    assert sorted(file.status for file in files(made, "output") if file.lfn.startswith("hist")) == (
        ["finished", "nooutput"] if may else ["failed", "finished"]
    )
    row = dataset(made, "output", "lab.t.hist")
    assert (row.files_finished, row.files_failed) == ((1, 0) if may else (1, 1))
    there = CatalogueDataset.objects.get(name="lab.t.hist").files.values_list("lfn", flat=True)
    assert list(there) == ["hist.000002.root"]


def test_only_outputs_that_were_named_may_be_missing() -> None:
    add_dataset("lab.in", 1)
    item = template("output", "hist.${SN}.root", "lab.t.hist")
    main = template("output", "lab.t.${SN}.root", "lab.t.out", allowNoOutput=True)
    made = with_jobs({**parameters("lab.t"), "maxAttempt": 1, "jobParameters": [reads("lab.in"), item, main]})
    (pilot := Pilot()).end(*pilot.fetch(1), "incomplete")
    settle()
    assert (status(made), states(made)) == ("failed", {"failed": 1})
