"""Tasks with a preprocessing step: one job finds out what the task reads, then the task is refined again."""

from __future__ import annotations

from typing import Any

import pytest

from brokerage_app.grid import configured
from brokerage_app.models import GdpConfig, Queue
from tasks_app.dispatch.reports import update_job
from tasks_app.models import CatalogueDataset, Dataset, JobParams, TaskParams, TaskStatusLog
from tasks_app.submission import command_queue
from tests.flow.driving import (
    add_dataset,
    agents_turn,
    dataset,
    files,
    inputs,
    jobs,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
)
from tests.flow.pilot import Job, Pilot, drive, final_report, replace

pytestmark = pytest.mark.usefixtures("books")

SPEC = {
    "prodSourceLabel": "panda",
    "jobParameters": "-p find.sh --sourceURL ${SURL}",
    "transPath": "preprocess_command",
}


def two_steps(**more: Any) -> int:
    add_dataset("lab.in", 6)
    item = reads("%%INDS%%", files="%%INLFNLIST%%")
    return submit(
        parameters(
            "lab.t", item, **{"nFilesPerJob": 1, "preproSpec": SPEC, "sourceURL": "https://cache.example", **more}
        )
    )


def first_job(pilot: Pilot) -> Job:
    settle()
    (got,) = pilot.fetch(10)
    pilot.start(got)
    return got


def end_with(got: Job, results: dict[str, Any]) -> None:
    update_job(replace(final_report(got, "finished"), metadata={"results": results}))


@pytest.mark.parametrize("label", ["panda", "user"])
def test_what_the_step_finds_completes_the_parameters(label: str) -> None:
    made = two_steps(preproSpec={**SPEC, "prodSourceLabel": label})
    pilot = Pilot()
    got = first_job(pilot)
    assert status(made) == "preprocessing"
    assert (got["transformation"], got["prodSourceLabel"]) == ("preprocess_command", label)
    assert got["jobPars"] == "-p find.sh --sourceURL https://cache.example"
    assert got["outFiles"] == got["logFile"] == "prepro.lab.t.000001.log.tgz"
    settle()
    assert status(made) == "preprocessing"
    end_with(got, {"INDS": "lab.in", "INLFNLIST": ["lab.in.00001", "lab.in.00004"]})
    drive(pilot)
    assert status(made) == "done"
    runs = jobs(made, id__gt=got["PandaID"], prod_source_label="user")
    assert sorted(name for job in runs for name in inputs(job.id)) == ["lab.in.00001", "lab.in.00004"]
    passed = list(TaskStatusLog.objects.filter(task_id=made).order_by("id").values_list("status", flat=True))
    assert passed == [
        "registered",
        "topreprocess",
        "preprocessing",
        "registered",
        "defined",
        "ready",
        "running",
        "prepared",
        "done",
    ]
    assert "UP=2" in (task(made).split_rule or "")
    raw = TaskParams.objects.get(task_id=made).params
    assert "%%INDS%%" in str(raw), "the marks stay, so that the step can be repeated"
    assert sorted(CatalogueDataset.objects.get(name="lab.t.log").files.values_list("lfn", flat=True)) == [
        "lab.t.000001.log.tgz",
        "lab.t.000002.log.tgz",
        "prepro.lab.t.000001.log.tgz",
    ]
    assert {len(inputs(job.id, "log")) for job in runs} == {1}
    assert dataset(made, "pp_input").status == "done"


def test_the_step_is_tried_three_times_and_then_the_task_has_failed() -> None:
    made = two_steps()
    drive(Pilot(lambda job: "failed"))
    assert status(made) == "failed"
    assert [job.status for job in jobs(made)] == ["failed"] * 3
    assert [(f.attempt, f.status) for f in files(made, "pseudo_input")] == [(3, "ready")]
    dialog = task(made).error_dialog or ""
    assert "preprocessing step failed 3 times" in dialog
    assert "exe:65" in dialog
    assert not Dataset.objects.filter(task_id=made, type="input").exists()


def test_a_second_attempt_of_the_step_is_as_good_as_the_first() -> None:
    made = two_steps()
    pilot = Pilot()
    pilot.end(first_job(pilot), "failed")
    got = first_job(pilot)
    end_with(got, {"INDS": "lab.in", "INLFNLIST": "lab.in.00000"})
    drive(pilot)
    assert status(made) == "done"
    assert len(jobs(made, prod_source_label="panda")) == 2


def test_a_name_that_was_not_found_breaks_the_task_with_that_name() -> None:
    made = two_steps()
    pilot = Pilot()
    end_with(first_job(pilot), {"INDS": "lab.in"})
    settle()
    assert status(made) == "broken"
    assert "%%INLFNLIST%% is used, but the preprocessing step did not find it" in (task(made).error_dialog or "")


@pytest.mark.parametrize("said", [None, [], "text", {"results": 3}, {"results": {"INDS": {"a": 1}}}])
def test_a_report_that_says_nothing_useful_breaks_the_task(said: Any) -> None:
    made = two_steps()
    pilot = Pilot()
    update_job(replace(final_report(first_job(pilot), "finished"), metadata=said))
    settle()
    assert status(made) == "broken"
    assert "did not find it" in (task(made).error_dialog or "")


def test_a_task_that_is_killed_meanwhile_is_aborted() -> None:
    made = two_steps()
    pilot = Pilot()
    got = first_job(pilot)
    command_queue.give_command(made, "kill", by="ada")
    agents_turn()
    pilot.end(got, "failed")
    settle()
    assert status(made) == "aborted"


def test_a_failed_step_can_be_retried() -> None:
    made = two_steps()
    drive(Pilot(lambda job: "failed"))
    assert status(made) == "failed"
    command_queue.give_command(made, "incexec", by="ada")
    pilot = Pilot()
    got = first_job(pilot)
    assert status(made) == "preprocessing"
    end_with(got, {"INDS": "lab.in", "INLFNLIST": "lab.in.00000"})
    drive(pilot)
    assert status(made) == "done"


def test_a_step_that_no_site_takes_waits_and_says_why() -> None:
    made = two_steps(includedSite=["ELSEWHERE"])
    settle()
    assert status(made) == "pending"
    assert "the preprocessing job has no site" in (task(made).error_dialog or "")


def test_the_step_goes_by_the_rules_of_the_broker_of_the_task() -> None:
    Queue.objects.update(type="analysis", capability="")
    key = "JOB_BROKER_user"
    GdpConfig.objects.create(app="jedi", component="brokerage", key=key, value="production", type="str", vo="lab")
    configured.forget()
    made = two_steps()
    settle()
    assert not jobs(made) and "the queue takes only analysis jobs" in (task(made).error_dialog or "")
    Queue.objects.update(type="unified")
    configured.forget()
    assert first_job(Pilot()) and status(made) == "preprocessing"
    configured.forget()


def test_preprocessing_and_build_go_together() -> None:
    spec = {"archiveName": "sources.1.tar.gz", "jobParameters": "-i ${IN} -o ${OUT}"}
    made = two_steps(buildSpec=spec)
    pilot = Pilot()
    end_with(first_job(pilot), {"INDS": "lab.in", "INLFNLIST": ["lab.in.00002", "lab.in.00003"]})
    drive(pilot)
    assert status(made) == "done"
    lines = [JobParams.objects.get(pk=job.id).params for job in jobs(made)]
    assert lines[0].startswith("-p find.sh") and lines[1].startswith("-i sources.1.tar.gz -o panda.")
    assert len(lines) == 4
