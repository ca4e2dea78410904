"""Whole tasks from submission to their final state, and what their books say then."""

from __future__ import annotations

import pytest
from django.db.transaction import atomic

from jedisite.identity.callers import Caller, Role
from tasks_app.dispatch.reports import update_job
from tasks_app.lifecycle import serials
from tasks_app.models import CatalogueDataset, JobParams, JobRetryHistory, PlannedOutput, TaskStatusLog
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import submitting
from tests.flow.driving import (
    add_dataset,
    dataset,
    files,
    inputs,
    jobs,
    parameters,
    reads,
    settle,
    states,
    status,
    submit,
    task,
    template,
)
from tests.flow.pilot import Job, Pilot, always, drive, failing_on, report

pytestmark = pytest.mark.usefixtures("books")


def counters(task_id: int, type: str = "input") -> tuple[int, int, int, int]:
    """(files, used, finished, failed) of a dataset."""
    row = dataset(task_id, type)
    return row.files, row.files_used, row.files_finished, row.files_failed


def test_a_task_with_an_input_dataset_is_done() -> None:
    add_dataset("lab.in", 10)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=4))
    drive(Pilot())
    assert status(made) == "done"
    assert states(made) == {"finished": 3}
    assert [len(inputs(job.id)) for job in jobs(made)] == [4, 4, 2]
    assert counters(made) == (10, 10, 10, 0)
    assert counters(made, "output") == (3, 3, 3, 0)
    assert task(made).progress == 100
    assert not task(made).error_dialog
    output = CatalogueDataset.objects.get(name="lab.t.out")
    assert not output.open
    assert output.files.count() == 3
    passed = list(TaskStatusLog.objects.filter(task_id=made).order_by("id").values_list("status", flat=True))
    assert passed == ["registered", "defined", "ready", "running", "prepared", "done"]


def test_a_task_without_input_gets_its_events_in_slices_and_a_seed_a_job() -> None:
    made = submit(
        parameters(
            "lab.gen",
            template("number", "--first ${FIRSTEVENT} --events ${MAXEVENTS} --seed ${RNDMSEED}"),
            noInput=True,
            nEvents=35,
            nEventsPerJob=10,
        )
    )
    drive(Pilot())
    assert status(made) == "done"
    lines = [JobParams.objects.get(pk=job.id).params for job in jobs(made)]
    words = [line.split()[1:6:2] for line in lines]
    assert words == [["1", "10", "1"], ["11", "10", "2"], ["21", "10", "3"], ["31", "5", "4"]]


def test_a_seed_of_a_failed_job_is_given_again_and_no_two_finished_jobs_share_one() -> None:
    made = submit(
        parameters("lab.gen", template("number", "--seed ${RNDMSEED}"), noInput=True, nEvents=60, nEventsPerJob=10)
    )
    failed: list[int] = []

    def plan(job: Job) -> str:
        if len(failed) < 2:
            failed.append(job["PandaID"])
            return "failed"
        return "finished"

    drive(Pilot(plan))
    assert status(made) == "done"
    seeds = [inputs(job.id, "random_seed")[0] for job in jobs(made, status="finished")]
    assert sorted(seeds, key=int) == ["1", "2", "3", "4", "5", "6"]


def test_files_that_always_fail_leave_the_task_finished_with_an_honest_summary() -> None:
    add_dataset("lab.in", 6)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=3))
    drive(Pilot(failing_on("lab.in.00001", "lab.in.00004")))
    assert status(made) == "finished"
    assert states(made) == {"finished": 4, "failed": 6}
    assert counters(made) == (6, 6, 4, 2)
    by_name = {f.lfn: f for f in files(made)}
    for name in ("lab.in.00001", "lab.in.00004"):
        assert (by_name[name].status, by_name[name].attempt, by_name[name].max_attempt) == ("ready", 3, 3)
        assert by_name[name].failed_attempt == 3
    assert by_name["lab.in.00000"].attempt == 1
    assert task(made).error_dialog == "6 attempts failed: 6 × exe:65 (the last: the payload ended with 65)"


def test_the_summary_of_errors_quotes_the_last_job_that_says_something() -> None:
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=3))
    said = iter(("held 2100 MB, its limit is 2000 MB", "held 4079 MB, its limit is 4000 MB", ""))
    pilot = Pilot()
    for words in said:
        settle()
        (job,) = pilot.fetch(1)
        update_job(report(job, "failed", errors={"pilot_error_code": 1235, "pilot_error_diag": words}))
    settle()
    assert task(made).error_dialog == (
        "3 attempts failed: 3 × pilot:1235 (the last: held 4079 MB, its limit is 4000 MB); ask for more memory than that "
        "(ramCount), or reduce what the payload needs"
    )


def test_files_with_the_number_of_their_task_in_the_name_count_from_one() -> None:
    add_dataset("lab.in", 2)
    first, second = (
        submit(
            parameters(
                name,
                reads("lab.in"),
                template("output", "--out=hello.$JEDITASKID.${SN}.txt", f"{name}.txt"),
                nFilesPerJob=1,
            )
        )
        for name in ("lab.one", "lab.two")
    )
    drive(Pilot())
    for made in (first, second):
        assert status(made) == "done"
        names = {name for job in jobs(made) for name in inputs(job.id, "output") if "hello" in name}
        assert names == {f"hello.{made}.000001.txt", f"hello.{made}.000002.txt"}


def test_numbers_run_on_where_files_of_an_ended_task_have_the_same_names_in_the_scope() -> None:
    add_dataset("lab.in", 2)

    def say_hello(name: str) -> int:
        hello = template("output", "--out=hello.${SN}.txt", f"{name}.txt")
        return submit(parameters(name, reads("lab.in"), hello, nFilesPerJob=1))

    first = say_hello("lab.one")
    drive(Pilot())
    elsewhere, second = say_hello("other.one"), say_hello("lab.two")
    drive(Pilot())
    names = {
        made: sorted(n for job in jobs(made) for n in inputs(job.id, "output") if "hello" in n)
        for made in (first, elsewhere, second)
    }
    assert names[first] == names[elsewhere] == ["hello.000001.txt", "hello.000002.txt"]
    assert names[second] == ["hello.000003.txt", "hello.000004.txt"]


def test_a_task_whose_files_another_one_is_making_is_refused_at_the_door() -> None:
    add_dataset("lab.in", 2)
    caller = Caller("ada", frozenset({Role.USER}))

    def ask(name: str, file: str) -> submitting.Submitted:
        hello = template("output", f"--out={file}", f"user.ada.{name}.txt")
        params = parameters(f"user.ada.{name}", reads("lab.in"), hello, nFilesPerJob=1, official=False)
        return submitting.submit(submitting.check(params, caller), by="ada")

    first = ask("one", "hello.${SN}.txt").task_id
    ask("mine", "hello.$JEDITASKID.${SN}.txt")
    with pytest.raises(ParamErrors, match=f"Task {first}, which is registered, makes files of the same names"):
        ask("at.once", "hello.${SN}.txt")
    settle()
    assert not PlannedOutput.objects.exists(), "of a refined task its own rows say what it makes"
    with pytest.raises(ParamErrors) as refused:
        ask("two", "hello.${SN}.txt")
    (fault,) = refused.value.errors
    assert fault.field == "jobParameters[1].value"
    assert fault.message == (
        f"Task {first}, which is running, makes files of the same names (hello.${{SN}}.txt); put $JEDITASKID into the name."
    )
    assert ask("mine.too", "hello.$JEDITASKID.${SN}.txt").is_new and ask("three", "hello.${SN}.text").is_new
    drive(Pilot())
    assert ask("two", "hello.${SN}.txt").is_new
    with pytest.raises(serials.NamesTakenError, match="which is registered, makes files of the same names"), atomic():
        serials.go_on_after_others(task(first))


def test_a_task_whose_file_is_there_already_is_refused_at_the_door() -> None:
    caller = Caller("ada", frozenset({Role.USER}))

    def ask(name: str, dataset: str, file: str = "hello.txt") -> submitting.Submitted:
        made = template("output", f"--out={file}", dataset)
        params = parameters(name, made, noInput=True, nEvents=1, nEventsPerJob=1, official=False)
        return submitting.submit(submitting.check(params, caller), by="ada")

    ask("user.ada.one", "user.ada.one.txt")
    drive(Pilot())
    for place in ("user.ada.one.txt", "user.ada.two.txt"):
        with pytest.raises(ParamErrors, match=r"A file 'hello\.txt' already exists") as refused:
            ask("user.ada.two", place)
        assert refused.value.errors[0].field == "jobParameters[0].value"
    assert ask("user.ada.two", "user.ada.two.txt", "other.txt").is_new
    assert ask("user.ada.three", "user.ada.one.txt", "hello.$JEDITASKID.txt").is_new


def test_an_input_that_only_the_site_itself_names_is_unknown() -> None:
    caller = Caller("ada", frozenset({Role.USER}))
    params = parameters("user.ada.one", reads("pseudo_dataset"), official=False)
    with pytest.raises(ParamErrors, match="pseudo_dataset") as refused:
        submitting.submit(submitting.check(params, caller), by="ada")
    assert [fault.field for fault in refused.value.errors] == ["jobParameters[0].dataset"]


def test_each_attempt_names_its_outputs_anew_and_remembers_the_one_before() -> None:
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=3))
    drive(Pilot(always("failed")))
    first, second, third = jobs(made)
    assert [inputs(job.id, "output") for job in (first, second, third)] == [
        [f"lab.t.{serial:06d}.root"] for serial in (1, 2, 3)
    ]
    assert [job.attempt for job in (first, second, third)] == [1, 2, 3]
    links = JobRetryHistory.objects.filter(task_id=made).order_by("id")
    assert list(links.values_list("old_job_id", "new_job_id", "origin_job_id")) == [
        (first.id, second.id, first.id),
        (second.id, third.id, first.id),
    ]


def test_a_task_whose_every_job_fails_has_failed() -> None:
    add_dataset("lab.in", 3)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=2))
    drive(Pilot(always("failed")))
    assert status(made) == "failed"
    assert states(made) == {"failed": 6}
    assert counters(made) == (3, 3, 0, 3)


def test_a_task_that_needed_a_second_attempt_is_done_and_says_so() -> None:
    add_dataset("lab.in", 2)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    drive(Pilot(lambda job: "failed" if job["attemptNr"] == 1 and "00001" in job["inFiles"] else "finished"))
    assert status(made) == "done"
    assert states(made) == {"finished": 2, "failed": 1}
    assert "1 attempt failed" in (task(made).error_dialog or "")
    assert "all files were processed in the end" in (task(made).error_dialog or "")


def test_a_file_that_fails_in_company_is_tried_again_with_its_company() -> None:
    add_dataset("lab.in", 8)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=4, maxAttempt=2))
    drive(Pilot(failing_on("lab.in.00000")))
    assert status(made) == "finished"
    assert counters(made) == (8, 8, 4, 4)
    assert [inputs(job.id) for job in jobs(made, status="failed")] == [[f"lab.in.{n:05d}" for n in range(4)]] * 2


def test_an_unknown_dataset_breaks_the_task_with_its_name_as_the_reason() -> None:
    made = submit(parameters("lab.t", reads("lab.nowhere"), nFilesPerJob=1))
    settle()
    assert status(made) == "broken"
    assert "lab.nowhere does not exist" in (task(made).error_dialog or "")
    assert TaskStatusLog.objects.filter(task_id=made, status="broken").count() == 1


def test_a_task_that_asks_for_a_step_that_the_site_does_not_offer_is_broken_with_the_reason() -> None:
    add_dataset("lab.data", 2)
    made = submit(parameters("lab.t", reads("lab.data"), nFilesPerJob=1, registerEsFiles=True))
    settle()
    assert status(made) == "broken"
    assert "registerEsFiles: This asks for files of single events" in (task(made).error_dialog or "")


def test_a_task_of_a_thousand_million_ranges_is_broken_with_the_number() -> None:
    made = submit(parameters("lab.t", noInput=True, nEvents=1_000_000_000, nEventsPerJob=1))
    settle()
    assert status(made) == "broken"
    assert "200\u202f000 pieces of work, not 1\u202f000\u202f000\u202f000" in (task(made).error_dialog or "")


def test_an_empty_dataset_breaks_the_task() -> None:
    add_dataset("lab.empty")
    made = submit(parameters("lab.t", reads("lab.empty"), nFilesPerJob=1))
    settle()
    assert status(made) == "broken"
    assert "empty" in (task(made).error_dialog or "")


def test_wrong_parameters_break_the_task_and_the_reason_names_the_field() -> None:
    made = submit({**parameters("lab.t", reads("lab.in")), "nFilesPerJob": "many"})
    settle()
    assert status(made) == "broken"
    assert "nFilesPerJob" in (task(made).error_dialog or "")


def test_one_bad_task_does_not_hold_up_the_others_of_its_pass() -> None:
    add_dataset("lab.in", 2)
    bad = submit(parameters("lab.bad", reads("lab.nowhere"), nFilesPerJob=1), priority=900)
    good = submit(parameters("lab.good", reads("lab.in"), nFilesPerJob=1), priority=100)
    drive(Pilot())
    assert (status(bad), status(good)) == ("broken", "done")


def test_a_job_that_reports_success_without_an_output_fails_with_its_own_code() -> None:
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=1))
    drive(Pilot(always("incomplete")))
    assert status(made) == "failed"
    (job,) = jobs(made)
    assert (job.status, job.ddm_error_code) == ("failed", 201)
    assert "lab.t.000001.root" in (job.ddm_error_diag or "")
    assert "ddm:201" in (task(made).error_dialog or "")
    stored = CatalogueDataset.objects.get(name="lab.t.out")
    assert not stored.files.exists()
    assert CatalogueDataset.objects.get(name="lab.t.log").files.count() == 1
