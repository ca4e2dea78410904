"""Lost outputs: the jobs that made them are found and their inputs are processed again."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from jedisite.vocabulary.roles import Caller, Role
from tasks_app.agents import commando
from tasks_app.ddm import data_management
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.base import SITE
from tasks_app.ddm.local_files import file_url
from tasks_app.explaining.queries import facts_of
from tasks_app.explaining.rules.answers import first_no
from tasks_app.explaining.rules.gates import walk
from tasks_app.inputs import nothing_new
from tasks_app.models import CatalogueDataset, Command, File, JobRetryHistory, RetryNote, RetryRule, Task, TaskStatusLog
from tasks_app.outcomes import recovery_chains
from tasks_app.outcomes.missing import missing_outputs
from tasks_app.outcomes.recovery import recover
from tasks_app.outcomes.recovery_plans import CannotRecoverError, Recovery
from tasks_app.outcomes.remaking import recover_as_task
from tasks_app.submission import command_queue
from tests.flow.balance import assert_books_balance
from tests.flow.driving import (
    add_dataset,
    add_files,
    dataset,
    files,
    inputs,
    jobs,
    look_again,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
    template,
)
from tests.flow.pilot import Pilot, drive, failing_on
from tests.flow.test_commands import command

pytestmark = pytest.mark.usefixtures("books")


def done_task(files: int = 6, **more: object) -> int:
    add_dataset("lab.in", files)
    made = submit(parameters("lab.t", reads("lab.in"), **{"nFilesPerJob": 2, **more}))
    drive(Pilot())
    assert status(made) == "done"
    return made


def outputs(name: str = "lab.t.out") -> list[str]:
    return [f.lfn for page in data_management().list_files(name) for f in page]


def counters(task_id: int, type: str = "input") -> tuple[int, int, int, int]:
    """(files, used, finished, missing) of a dataset."""
    row = dataset(task_id, type)
    return row.files, row.files_used, row.files_finished, row.files_missing


def test_a_lost_output_of_a_done_task_is_made_again_from_the_same_inputs() -> None:
    made = done_task()
    found = recover(made, ["lab:lab.t.000002.root"], by="olga", reason="a disk broke")
    assert isinstance(found, Recovery)
    assert (status(made), counters(made), counters(made, "output")) == ("ready", (6, 4, 4, 0), (3, 3, 2, 1))
    assert outputs() == ["lab.t.000001.root", "lab.t.000003.root"]
    assert CatalogueDataset.objects.get(name="lab.t.out").open
    drive(Pilot())
    assert (status(made), counters(made), counters(made, "output")) == ("done", (6, 6, 6, 0), (3, 4, 3, 1))
    assert outputs() == ["lab.t.000001.root", "lab.t.000003.root", "lab.t.000004.root"]
    old, new = jobs(made)[1], jobs(made)[3]
    assert inputs(new.id) == inputs(old.id) == ["lab.in.00002", "lab.in.00003"]
    assert JobRetryHistory.objects.filter(old_job_id=old.id, new_job_id=new.id).exists()
    log = list(TaskStatusLog.objects.filter(task_id=made).order_by("id").values_list("status", "by", "reason"))
    assert ("toincexec", "olga", "1 lost output is made again: a disk broke") in log


def test_a_dataset_that_is_gone_is_back_in_its_container_when_its_lost_files_are_made_again() -> None:
    add_dataset("lab.in", 2)
    wanted = parameters("lab.t", reads("lab.in"))
    wanted["jobParameters"][-1]["container"] = "lab.results/"
    made = submit(wanted)
    drive(Pilot())
    data_management().delete(["lab.t.out"], by=SITE)
    recover(made, ["lab.t.000001.root"], by="olga")
    assert data_management().constituents("lab.results/") == ["lab.t.out"]
    drive(Pilot())
    assert (status(made), data_management().describe("lab.results/").files) == ("done", 1)


def test_the_way_of_a_task_that_runs_again_for_lost_files() -> None:
    made = done_task(2)
    before = task(made).start_time
    recover(made, ["lab.t.000001.root"], by="olga")
    drive(Pilot())
    assert task(made).start_time > before, "as after a retry: that of the present attempt"
    log = list(TaskStatusLog.objects.filter(task_id=made).order_by("id").values_list("status", flat=True))
    assert log[log.index("done") + 1 :] == ["toincexec", "rerefine", "ready", "running", "prepared", "done"]


def test_a_dry_run_says_what_would_happen_and_changes_nothing() -> None:
    made = done_task()
    said = StringIO()
    call_command("recover_lost_files", str(made), "--files", "lab.t.000002.root", "--dry-run", stdout=said)
    job = jobs(made)[1]
    assert said.getvalue().splitlines() == [
        "1 lost: lab.t.000002.root",
        f"1 job made them: {job.id}",
        "2 inputs are processed again: lab.in.00002, lab.in.00003",
        "what is made again gets new names: tasks that failed on the lost files take it when they are run again (incexec), "
        "not when they are retried",
        f"task {made}, which is done, runs again",
        "nothing was changed",
    ]
    assert (status(made), counters(made), len(outputs())) == ("done", (6, 6, 6, 0), 3)


def test_the_task_is_found_by_the_dataset_of_its_outputs(tmp_path: object) -> None:
    made = done_task()
    listed = tmp_path / "lost"  # type: ignore[operator]
    listed.write_text("lab.t.000001.root\nlab.t.000003.root\n")
    call_command("recover_lost_files", "--dataset", "lab.t.out", "--from-file", str(listed), stdout=StringIO())
    assert counters(made) == (6, 2, 2, 0)
    drive(Pilot())
    assert status(made) == "done"
    with pytest.raises(CommandError, match=r"no task makes the dataset lab\.none"):
        call_command("recover_lost_files", "--dataset", "lab.none", "--files", "x")
    with pytest.raises(CommandError, match="give the number or name of a task, or --dataset"):
        call_command("recover_lost_files", "--files", "x")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["lab.t.000001.root", "lab.t.000009.root"], r"has not made lab\.t\.000009\.root"),
        (["other:lab.t.000001.root"], r"has not made lab\.t\.000001\.root"),
        (["lab.in.00000"], r"has not made lab\.in\.00000"),
        (["lab.t.000001.log.tgz"], "is a log file: only outputs are made again"),
        ([], "no lost file was named"),
    ],
)
def test_names_that_the_task_did_not_make_are_named_and_nothing_is_half_done(names: list[str], sentence: str) -> None:
    made = done_task(2)
    with pytest.raises(CannotRecoverError, match=sentence):
        recover(made, names, by="olga")
    assert (status(made), counters(made), outputs()) == ("done", (2, 2, 2, 0), ["lab.t.000001.root"])


def test_a_file_is_recovered_once() -> None:
    made = done_task()
    recover(made, ["lab.t.000001.root"], by="olga")
    with pytest.raises(CannotRecoverError, match="is known to be lost"):
        recover(made, ["lab.t.000001.root"], by="olga")
    drive(Pilot())
    assert status(made) == "done"
    recover(made, ["lab.t.000004.root"], by="olga")
    drive(Pilot())
    assert (status(made), counters(made)) == ("done", (6, 6, 6, 0))


def test_all_outputs_of_a_job_are_made_again_so_that_no_event_is_there_twice() -> None:
    add_dataset("lab.in", 4)
    wanted = parameters("lab.t", reads("lab.in"), nFilesPerJob=2)
    wanted["jobParameters"].append(template("output", "lab.t.${SN}.txt", "lab.t.text"))
    made = submit(wanted)
    drive(Pilot())
    found = recover(made, ["lab.t.000001.txt"], by="olga")
    assert [o.lfn for o in found.also_lost] == ["lab.t.000001.root"]
    drive(Pilot())
    assert (outputs(), outputs("lab.t.text")) == (
        ["lab.t.000002.root", "lab.t.000003.root"],
        ["lab.t.000002.txt", "lab.t.000003.txt"],
    )
    assert len(outputs("lab.t.log")) == 3, "the log of the first job is kept"


def test_an_input_without_attempts_gets_some_more_and_a_seed_is_used_again() -> None:
    made = submit(
        parameters(
            "lab.gen",
            template("number", "--seed ${RNDMSEED}"),
            noInput=True,
            nEvents=20,
            nEventsPerJob=10,
            maxAttempt=1,
        )
    )
    drive(Pilot())
    found = recover(made, ["lab.gen.000002.root"], by="olga")
    again = "1 part of its work, which reads no file, is done again, with the same 1 random seed"
    assert again in found.sentences() and "pseudo_lfn" not in "".join(found.sentences())
    drive(Pilot())
    assert status(made) == "done"
    assert [inputs(job.id, "random_seed") for job in jobs(made)] == [["1"], ["2"], ["2"]]


@pytest.mark.parametrize(("more", "attempts"), [({"maxAttempt": 2}, 4), ({"disableAutoRetry": True}, 3), ({}, 5)])
def test_an_input_without_attempts_gets_as_many_as_its_task_gives_a_file(more: dict[str, Any], attempts: int) -> None:
    made = done_task(2, **more)
    File.objects.filter(task_id=made, type="input").update(attempt=2, max_attempt=2)
    recover(made, ["lab.t.000001.root"], by="olga")
    assert {file.max_attempt for file in files(made)} == {attempts}


def test_a_running_task_takes_the_inputs_up_again_as_it_goes_on() -> None:
    add_dataset("lab.in", 3)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    settle()
    pilot = Pilot()
    for job in pilot.fetch(1):
        pilot.start(job)
        pilot.end(job)
    settle()
    before = status(made)
    recover(made, ["lab.t.000001.root"], by="olga")
    assert (status(made), counters(made)) == (before, (3, 2, 0, 0))
    drive(pilot)
    assert (status(made), counters(made)) == ("done", (3, 3, 3, 0))


def test_a_finished_task_does_not_try_again_what_had_failed_for_good() -> None:
    add_dataset("lab.in", 2)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=1))
    drive(Pilot(failing_on("lab.in.00001")))
    assert status(made) == "finished"
    recover(made, ["lab.t.000001.root"], by="olga")
    drive(Pilot())
    assert status(made) == "finished"
    assert [inputs(job.id) for job in jobs(made)] == [["lab.in.00000"], ["lab.in.00001"], ["lab.in.00000"]]


def test_inputs_that_are_gone_as_well_are_named() -> None:
    made = done_task(2)
    data_management().remove("lab.in", ["lab.in.00001"], by=SITE)
    with pytest.raises(CannotRecoverError, match=r"lab\.in\.00001 of lab\.in are lost as well"):
        recover(made, ["lab.t.000001.root"], by="olga")
    assert status(made) == "done"


def chain_of(length: int, files: int = 2, **more: Any) -> list[int]:
    """Tasks each of which reads what the one before has made, all done; none is a parent."""
    add_dataset("lab.in", files, events=10)
    made = []
    for number in range(length):
        read = f"lab.t{number - 1}.out" if number else "lab.in"
        given = more if number == length - 1 else {}
        made.append(submit(parameters(f"lab.t{number}", reads(read), **{"nFilesPerJob": 1, **given})))
        drive(Pilot())
    assert [status(one) for one in made] == ["done"] * length
    return made


def finish_chain(tasks: list[int]) -> None:
    for _ in tasks:
        drive(Pilot())
        look_again()
    drive(Pilot())
    assert [status(one) for one in tasks] == ["done"] * len(tasks)


def test_inputs_that_are_gone_as_well_are_made_again_first() -> None:
    first, second, third = tasks = chain_of(3)
    data_management().remove("lab.t0.out", ["lab.t0.000002.root"], by=SITE)
    data_management().remove("lab.t1.out", ["lab.t1.000002.root"], by=SITE)
    found = recover(third, ["lab.t2.000002.root"], by="olga")
    assert [(one.task_id, [o.lfn for o in one.lost]) for one in (found, *found.makers)] == [
        (third, ["lab.t2.000002.root"]),
        (second, ["lab.t1.000002.root"]),
        (first, ["lab.t0.000002.root"]),
    ]
    assert {"1 of them lost as well, and made again first: lab.t1.000002.root"} <= set(found.sentences())
    assert [counters(one) for one in tasks] == [(2, 1, 1, 0), (1, 1, 1, 1), (1, 1, 1, 1)]
    assert_books_balance()
    finish_chain(tasks)
    for number, one in enumerate(tasks):
        assert outputs(f"lab.t{number}.out") == [f"lab.t{number}.000001.root", f"lab.t{number}.000003.root"]
        assert counters(one)[:3] == (2, 2, 2)
    assert inputs(jobs(first)[-1].id) == ["lab.in.00001"]
    assert inputs(jobs(third)[-1].id) == ["lab.t1.000003.root"]


def test_all_that_was_made_of_a_part_of_a_lost_input_is_made_again_so_that_no_event_is_there_twice() -> None:
    _, second = tasks = chain_of(2, nEventsPerJob=1, nEventsPerFile=2)
    assert len(outputs("lab.t1.out")) == 4, "each input was read by two jobs"
    data_management().remove("lab.t0.out", ["lab.t0.000002.root"], by=SITE)
    of_it = [job.id for job in jobs(second) if inputs(job.id) == ["lab.t0.000002.root"]]
    lost, also = (f"lab.t1.{number:06d}.root" for number in (3, 4))
    found = recover(second, [lost], by="olga")
    assert (found.jobs, [o.lfn for o in found.also_lost]) == (of_it, [also])
    finish_chain(tasks)
    assert len(outputs("lab.t1.out")) == 4 and not {lost, also} & set(outputs("lab.t1.out"))


def test_what_a_job_made_beside_a_lost_input_is_read_again_in_its_new_form() -> None:
    add_dataset("lab.in", 2)
    wanted = parameters("lab.t0", reads("lab.in"), nFilesPerJob=1)
    wanted["jobParameters"].append(template("output", "lab.t0.${SN}.more", "lab.t0.out"))
    first = submit(wanted)
    drive(Pilot())
    second = submit(parameters("lab.t1", reads("lab.t0.out"), nFilesPerJob=1))
    drive(Pilot())
    (job,) = [job for job in jobs(second) if inputs(job.id) == ["lab.t0.000002.root"]]
    (lost,) = [f.lfn for f in files(second, "output") if f.job_id == job.id]
    data_management().remove("lab.t0.out", ["lab.t0.000002.root"], by=SITE)
    found = recover(second, [lost], by="olga")
    assert (len(found.jobs), len(found.gone), len(found.makers[0].also_lost)) == (2, 2, 1)
    finish_chain([first, second])
    assert (len(outputs("lab.t0.out")), len(outputs("lab.t1.out"))) == (4, 4)


@pytest.mark.parametrize("merging", [False, True])
def test_what_was_made_of_a_file_that_others_have_replaced_since_is_made_again_with_it(merging: bool) -> None:
    """Else the task would read both, since all that is new in the dataset is taken."""
    add_dataset("lab.in", 3, events=10)
    spec = {"transPath": "merge", "jobParameters": "--in ${TRN_OUTPUT0/L} --out ${OUTPUT0} --logs ${TRN_LOG0/L}"}
    more = {"mergeOutput": True, "mergeSpec": spec, "nFilesPerMergeJob": 1} if merging else {}
    first = submit(parameters("lab.t0", reads("lab.in"), nFilesPerJob=1, **more))
    drive(Pilot())
    second = submit(parameters("lab.t1", reads("lab.t0.out"), nFilesPerJob=1))
    drive(Pilot())
    a, b, c = sorted(outputs("lab.t0.out"))
    data_management().remove("lab.t0.out", [a], by=SITE)
    recover(first, [a], by="olga")
    drive(Pilot())
    assert status(first) == status(second) == "done", "its reader had ended, and has its events"
    data_management().remove("lab.t0.out", [b], by=SITE)
    made_of = {inputs(job.id)[0]: job.id for job in jobs(second)}
    (lost,) = [f.lfn for f in files(second, "output") if f.job_id == made_of[b]]
    found = recover(second, [lost], by="olga")
    assert found.jobs == sorted([made_of[a], made_of[b]]) and sorted(file.lfn for file in found.gone) == [a, b]
    finish_chain([first, second])
    read = [row.lfn for row in files(second) if row.status == "finished"]
    assert len(outputs("lab.t1.out")) == 3 and sorted(read) == sorted(outputs("lab.t0.out")) and c in read


@pytest.mark.parametrize("merging", [False, True])
def test_a_task_that_looks_at_its_inputs_again_takes_what_is_new_and_not_what_replaces_what_it_had(
    merging: bool,
) -> None:
    add_dataset("lab.in", 2, events=10)
    spec = {"transPath": "merge", "jobParameters": "--in ${TRN_OUTPUT0/L} --out ${OUTPUT0} --logs ${TRN_LOG0/L}"}
    more = {"mergeOutput": True, "mergeSpec": spec, "nFilesPerMergeJob": 1} if merging else {}
    first = submit(parameters("lab.t0", reads("lab.in"), nFilesPerJob=1, **more))
    drive(Pilot())
    second = submit(parameters("lab.t1", reads("lab.t0.out"), nFilesPerJob=1))
    drive(Pilot())
    a, _ = sorted(outputs("lab.t0.out"))
    data_management().remove("lab.t0.out", [a], by=SITE)
    recover(first, [a], by="olga")
    drive(Pilot())
    assert nothing_new.why_nothing_new(task(second), {}), "it has the events of all files"
    add_files("lab.in", [2], events=10)
    command_queue.give_command(first, "incexec", by="ada")
    drive(Pilot())
    assert len(outputs("lab.t0.out")) == 3
    command_queue.give_command(second, "incexec", by="ada")
    drive(Pilot())
    assert len(outputs("lab.t1.out")) == 3 and dataset(second).files_finished == 3


def test_a_file_in_the_place_of_one_that_cannot_be_read_is_taken() -> None:
    add_dataset("lab.in", 2)
    first = submit(parameters("lab.p", reads("lab.in"), nFilesPerJob=1))
    drive(Pilot())
    given = parameters("lab.c", reads("lab.p.out"), nFilesPerJob=1, nChunksToWait=1, noWaitParent=True)
    second = submit(given, parent=first)
    settle()
    pilot = Pilot()
    found = pilot.fetch(2)
    for job in found:
        pilot.start(job)
    recover(first, ["lab.p.000001.root"], by="olga")
    maker = Pilot()
    for job in maker.fetch(1):
        maker.start(job)
        maker.end(job)
    settle()
    look_again()
    settle()
    assert len(files(second)) == 2, "the old one may still end well"
    for job in found:
        pilot.end(job, "failed" if "lab.p.000001.root" in job["inFiles"] else "finished")
    for _ in range(3):
        drive(Pilot(failing_on("lab.p.000001.root")))
        look_again()
    assert status(first) == "done" and status(second) in ("done", "finished")
    assert sorted(f.lfn for f in files(second) if f.status == "finished") == ["lab.p.000002.root", "lab.p.000003.root"]


def test_a_lost_file_that_nobody_has_replaced_takes_nothing_with_it() -> None:
    first, second = chain_of(2, files=3)
    a, b, _ = sorted(outputs("lab.t0.out"))
    data_management().remove("lab.t0.out", [a, b], by=SITE)
    recover(first, [a], by="olga")
    settle()
    fail = Pilot(lambda job: "failed")
    while queued := fail.fetch(10):
        for job in queued:
            fail.start(job)
            fail.end(job, "failed")
        settle()
    assert status(first) == "finished"
    made_of = {inputs(job.id)[0]: job.id for job in jobs(second)}
    (lost,) = [f.lfn for f in files(second, "output") if f.job_id == made_of[b]]
    assert recover(second, [lost], by="olga").jobs == [made_of[b]]
    for _ in range(2):
        drive(Pilot())
        look_again()
    drive(Pilot())
    assert len(outputs("lab.t1.out")) == 3, "what was made of the file that is gone for good is still there"


def test_what_stands_in_the_way_of_a_chain_is_said_and_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = tasks = chain_of(3)
    for number in (0, 1):
        data_management().remove(f"lab.t{number}.out", [f"lab.t{number}.000001.root"], by=SITE)

    def refused(sentence: str, **more: Any) -> None:
        with pytest.raises(CannotRecoverError, match=sentence):
            recover(third, ["lab.t2.000001.root"], by="olga", **more)
        assert [status(one) for one in tasks] == ["done"] * 3

    refused(f"task {first}, which made them, is ada's", may=lambda owner: owner.id != first)
    monkeypatch.setattr(recovery_chains, "DEEPEST", 1)
    refused(rf"1 steps of making back: recover lab\.t0\.000001\.root of task {first} first")
    monkeypatch.setattr(recovery_chains, "DEEPEST", 2)
    assert len(recover(third, ["lab.t2.000001.root"], by="olga", dry_run=True).makers) == 2
    Task.objects.filter(pk=second).update(status="prepared")
    with pytest.raises(CannotRecoverError, match=f"task {second} is prepared"):
        recover(third, ["lab.t2.000001.root"], by="olga")
    Task.objects.filter(pk=second).update(status="done")
    recover(third, ["lab.t2.000001.root"], by="olga")
    finish_chain(tasks)


def test_inputs_that_the_task_names_cannot_be_replaced() -> None:
    add_dataset("lab.in", 2)
    first = submit(parameters("lab.t0", reads("lab.in"), nFilesPerJob=1))
    drive(Pilot())
    second = submit(parameters("lab.t1", reads("lab.t0.out", files=["lab.t0.000001.root"]), nFilesPerJob=1))
    drive(Pilot())
    data_management().remove("lab.t0.out", ["lab.t0.000001.root"], by=SITE)
    with pytest.raises(CannotRecoverError, match="are named by the task"):
        recover(second, ["lab.t1.000001.root"], by="olga")
    recover(first, ["lab.t0.000001.root"], by="olga")
    drive(Pilot())


BOSS = Caller("boss", frozenset({Role.USER, Role.PRODUCTION}))


def test_a_new_task_makes_lost_outputs_again_in_datasets_of_its_own(make_user: Callable[..., Any]) -> None:
    make_user("ada")
    made = done_task()
    would = recover_as_task(made, ["lab.t.000002.root"], caller=BOSS, dry_run=True)
    assert (would.task_id, len(outputs()), Task.objects.count()) == (None, 3, 1)
    assert would.sentences()[-1] == f"the task lab.t.remade1 makes them again; task {made} stays done"
    new = recover_as_task(made, ["lab.t.000002.root"], caller=BOSS, reason="a disk broke").task_id
    assert new is not None
    drive(Pilot())
    assert (status(made), status(new), task(new).name, task(new).user) == ("done", "done", "lab.t.remade1", "ada")
    assert outputs() == ["lab.t.000001.root", "lab.t.000003.root"]
    assert outputs("lab.t.out.remade1") == ["lab.t.remade1.000001.root"]
    assert inputs(jobs(new)[0].id) == ["lab.in.00002", "lab.in.00003"]
    assert counters(made) == (6, 6, 6, 0) and counters(made, "output") == (3, 3, 2, 1)
    last = TaskStatusLog.objects.filter(task_id=made).latest("id")
    assert (last.by, last.reason) == ("boss", f"1 lost output is made again by task {new}: a disk broke")
    again = recover_as_task(made, ["lab.t.000001.root"], caller=BOSS)
    drive(Pilot())
    assert (again.name, outputs("lab.t.out.remade2")) == ("lab.t.remade2", ["lab.t.remade2.000001.root"])


def test_what_another_task_cannot_do_is_refused(make_user: Callable[..., Any]) -> None:
    make_user("ada")
    made = submit(parameters("lab.gen", noInput=True, nEvents=20, nEventsPerJob=10))
    drive(Pilot())
    with pytest.raises(CannotRecoverError, match="recover without a new task"):
        recover_as_task(made, ["lab.gen.000002.root"], caller=BOSS)
    _, second = tasks = chain_of(2, nEventsPerJob=1, nEventsPerFile=2)
    with pytest.raises(CannotRecoverError, match=r"other jobs have read parts of lab\.t0\.000001\.root"):
        recover_as_task(second, ["lab.t1.000001.root"], caller=BOSS)
    data_management().remove("lab.t0.out", ["lab.t0.000001.root"], by=SITE)
    with pytest.raises(CannotRecoverError, match="are lost as well: recover without a new task"):
        recover_as_task(second, ["lab.t1.000001.root"], caller=BOSS)
    recover(second, ["lab.t1.000001.root"], by="olga")
    finish_chain(tasks)


def test_a_new_task_is_asked_for_through_the_api(api: Callable[..., Client], make_user: Callable[..., Any]) -> None:
    make_user("ada")
    made = done_task(2)
    address, body = f"/api/v2/tasks/{made}/lost-files/", {"files": ["lab.t.000001.root"], "new_task": True}
    reply = api("production").post(address, body, content_type="application/json")
    assert (reply.status_code, reply.json()["runs_again"]) == (202, False), reply.json()
    assert task(reply.json()["new_task_id"]).name == "lab.t.remade1"
    drive(Pilot())


def test_an_aborted_task_that_runs_again_for_a_lost_file_processes_what_was_left() -> None:
    add_dataset("lab.in", 6)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=2))
    settle()
    pilot = Pilot()
    for job in pilot.fetch(1):
        pilot.start(job)
        pilot.end(job)
    settle()
    command_queue.give_command(made, "kill", by="ada")
    settle()
    assert (status(made), counters(made)) == ("aborted", (6, 2, 2, 0))
    recover(made, outputs(), by="olga")
    drive(Pilot())
    assert (status(made), counters(made)) == ("done", (6, 6, 6, 0))


def test_a_killed_task_in_its_last_moments_is_refused() -> None:
    made = done_task(2)
    Task.objects.filter(pk=made).update(status="prepared")
    with pytest.raises(CannotRecoverError, match="is prepared: its lost files cannot be recovered now"):
        recover(made, ["lab.t.000001.root"], by="olga")
    Task.objects.filter(pk=made).update(status="done")


def test_a_child_that_has_processed_a_lost_file_does_not_read_the_one_in_its_place() -> None:
    add_dataset("lab.in", 4)
    first = submit(parameters("lab.p", reads("lab.in"), nFilesPerJob=1))
    drive(Pilot())
    second = submit(
        parameters("lab.c", reads("lab.p.out"), nFilesPerJob=1, nChunksToWait=1, noWaitParent=True), parent=first
    )
    settle()
    pilot = Pilot()
    (job,) = pilot.fetch(1)
    pilot.start(job)
    from tasks_app.agents import commando

    command_queue.give_command(second, "pause", by="ada")
    commando.run()
    File.objects.filter(task_id=second, lfn="lab.p.000004.root")
    found = recover(first, ["lab.p.000001.root", "lab.p.000004.root"], by="olga")
    assert found.readers == {}, "all files have jobs"
    command_queue.give_command(second, "resume", by="ada")
    commando.run()
    pilot.end(job)
    drive(pilot)
    look_again()
    drive(pilot)
    assert (status(first), task(first).attempt) == ("done", 1)
    assert status(second) == "done"
    assert dataset(second).files_finished == 4, "those that were made again hold what it had already"


def test_a_child_that_waits_for_more_loses_pending_files() -> None:
    add_dataset("lab.in", 4)
    first = submit(parameters("lab.p", reads("lab.in"), nFilesPerJob=1))
    second = submit(parameters("lab.c", reads("lab.p.out"), nFilesPerJob=1, noWaitParent=True), parent=first)
    settle()
    pilot = Pilot()
    for job in pilot.fetch(2):
        pilot.start(job)
        pilot.end(job)
    settle()
    look_again()
    settle()
    assert {f.status for f in files(second)} == {"pending"}
    found = recover(first, ["lab.p.000001.root"], by="olga")
    assert found.readers == {second: 1}
    assert sorted(f.status for f in files(second)) == ["lost", "pending"]
    drive(pilot)
    look_again()
    drive(pilot)
    assert (status(first), status(second)) == ("done", "done")
    row = dataset(second)
    assert (row.files, row.files_finished, row.files_missing) == (4, 4, 1)


def test_the_owner_recovers_lost_files_over_the_api_and_others_may_not(api: Callable[..., Client]) -> None:
    made = done_task(2)
    address = f"/api/v2/tasks/{made}/lost-files/"
    body = {"files": ["lab.t.000001.root"], "reason": "a disk broke"}
    refused = api("user", name="eve").post(address, body, "application/json")
    assert refused.status_code == 403
    unknown = api("user", name="ada").post(address, {"files": ["x"]}, "application/json")
    assert (unknown.status_code, unknown.json()["detail"]) == (409, f"Task {made} has not made x.")
    empty = api("user", name="ada").post(address, {"files": []}, "application/json")
    assert (empty.status_code, [e["field"] for e in empty.json()["errors"]]) == (422, ["files"])
    tried = api("user", name="ada").post(address, {**body, "dry_run": True}, "application/json")
    assert (tried.status_code, status(made)) == (202, "done")
    answer = api("production").post(address, body, "application/json")
    assert answer.json() == {**tried.json(), "dry_run": False}
    assert answer.json()["inputs"] == ["lab.in.00000", "lab.in.00001"]
    assert status(made) == "ready"
    drive(Pilot())
    assert status(made) == "done"


def test_pbook_has_those_outputs_made_again_that_data_management_has_no_more(api: Callable[..., Client]) -> None:
    made = done_task(4)

    def ask(client: Client, **more: object) -> dict[str, Any]:
        address = "/api/v1/file_server/upload_file_recovery_request"
        answer: dict[str, Any] = client.post(address, {"task_id": made, **more}, "application/json").json()
        return answer

    owner = api("user", name="ada")
    page = {"logFileURL": f"http://testserver/tasks/{made}/"}
    assert ask(owner) == {"success": True, "message": f"no output of task {made} is lost", "data": page}
    data_management().remove("lab.t.out", ["lab.t.000002.root"], by=SITE)
    assert ask(api("user", name="eve"))["success"] is False
    tried = ask(owner, dry_run=True)
    assert tried["data"] == page and "1 lost: lab.t.000002.root" in tried["message"] and status(made) == "done"
    assert "1 lost: lab.t.000002.root" in ask(owner)["message"] and status(made) == "ready"
    drive(Pilot())
    assert status(made) == "done" and outputs() == ["lab.t.000001.root", "lab.t.000003.root"]


ADDRESSES: dict[str, Callable[[Path], str]] = {
    "ours": file_url,
    "without a host": lambda place: place.as_uri(),
    "of PanDA's pilot": lambda place: f"file://localhost/{place.parents[4]}//{place.relative_to(place.parents[4])}",
}


@pytest.mark.parametrize("said", ADDRESSES.values(), ids=ADDRESSES)
def test_pbook_has_those_outputs_made_again_that_are_gone_from_the_storage(
    api: Callable[..., Client], settings: Any, tmp_path: Path, said: Callable[[Path], str]
) -> None:
    settings.JEDI_STORAGE = tmp_path / "storage"
    made = done_task(6)
    kept, lost, _elsewhere = File.objects.filter(task_id=made, type="output").order_by("lfn")
    for file in (kept, lost):
        place = storage_path(settings.JEDI_STORAGE.resolve(), file.scope or "", file.lfn)
        File.objects.filter(pk=file.pk).update(surl=said(place))
        place.parent.mkdir(parents=True)
        place.write_bytes(b"x")
    place.unlink()
    hidden = settings.JEDI_STORAGE.rename(tmp_path / "elsewhere")
    assert missing_outputs(made, 10) == [], "a storage that is not mounted says nothing of its files"
    hidden.rename(settings.JEDI_STORAGE)
    assert missing_outputs(made, 10) == [lost.lfn]
    address = "/api/v1/file_server/upload_file_recovery_request"
    answer = api("user", name="ada").post(address, {"task_id": made}, "application/json").json()
    assert f"1 lost: {lost.lfn}" in answer["message"] and status(made) == "ready"


def test_a_lost_file_that_was_merged_is_made_again_from_the_inputs_of_all_that_was_in_it() -> None:
    add_dataset("lab.in", 4)
    spec = {"transPath": "merge", "jobParameters": "--in ${TRN_OUTPUT0/L} --out ${OUTPUT0} --logs ${TRN_LOG0/L}"}
    made = submit(
        parameters("lab.m", reads("lab.in"), nFilesPerJob=1, mergeOutput=True, mergeSpec=spec, nFilesPerMergeJob=2)
    )
    drive(Pilot())
    assert status(made) == "done"
    merged = outputs("lab.m.out")
    assert len(merged) == 2
    found = recover(made, merged[:1], by="olga")
    assert (len(found.jobs), len(found.inputs)) == (3, 2), "the merge job and the two whose files it merged"
    assert counters(made) == (4, 2, 2, 0)
    drive(Pilot())
    assert (status(made), counters(made)) == ("done", (4, 4, 4, 0))
    assert len(outputs("lab.m.out")) == 2 and merged[0] not in outputs("lab.m.out")


def test_of_a_task_with_lost_files_answer_advice_and_act_say_to_run_it_again() -> None:
    made = done_task(6)
    reader = submit(parameters("lab.c", reads("lab.t.out"), nFilesPerJob=1, maxAttempt=1))
    failing = Pilot(failing_on("lab.t.000002.root", "lab.t.000003.root"))
    drive(failing)
    assert status(reader) == "finished"
    recover(made, ["lab.t.000002.root"], by="olga")
    drive(Pilot())
    said = (
        f"task {reader} is finished, and 1 of its unprocessed files is lost: lab.t.000002.root. A retry would ask for it again; "
        "to read what is made in its place, and to have all others tried again, run it again with incexec"
    )
    with pytest.raises(command_queue.CommandRefusedError, match=f"^{said}$"):
        command_queue.give_command(reader, "retry", by="ada")
    blocked = first_no(walk(facts_of(task(reader), timezone.now(), {}, None)))
    assert blocked is not None and blocked.code == "task_reads_lost"
    assert (blocked.sentence, blocked.advice.partition(" once")[0]) == (said, "Run the task again (incexec)")
    waiting = Command.objects.create(task_id=reader, name="retry", owner="ada")
    commando.run()
    waiting.refresh_from_db()
    assert (waiting.status, waiting.answer, status(reader)) == ("refused", said, "finished"), (
        "when it was given before, too"
    )
    command(reader, "incexec")
    drive(Pilot())
    read = {name for job in jobs(reader, status="finished") for name in inputs(job.id)}
    assert (status(reader), read) == ("done", {f"lab.t.00000{number}.root" for number in (1, 3, 4)})


def test_a_retry_says_that_a_rule_limits_the_attempts() -> None:
    add_dataset("lab.in", 2)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=3))
    failing = Pilot(failing_on("lab.in.00001"))
    RetryRule.objects.all().delete()
    RetryRule.objects.create(error_source="exe", error_code=65, action="no_retry")
    drive(failing)
    note = RetryNote.objects.get(task_id=made)
    answer = command(made, "retry").answer or ""
    assert answer.endswith(f"gets 3 more attempts, or fewer where a retry rule limits them: {note.detail}"), answer
