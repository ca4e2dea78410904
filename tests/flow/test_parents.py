"""Tasks that read what another task makes."""

from __future__ import annotations

from collections import Counter

import pytest

from jedisite.identity.callers import Caller, Role
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.ddm import data_management
from tasks_app.ddm.base import SITE
from tasks_app.domain.states import JOB_FINAL
from tasks_app.explaining.why_task import why
from tasks_app.models import CatalogueDataset, Task, TaskStatusLog
from tasks_app.submission import command_queue, submitting
from tasks_app.web.commands import command_buttons
from tests.flow.driving import (
    add_dataset,
    add_files,
    agents_turn,
    dataset,
    inputs,
    jobs,
    look_again,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
)
from tests.flow.pilot import Pilot, always, drive, failing_on

pytestmark = pytest.mark.usefixtures("books")
ADA = Caller("ada", frozenset({Role.PRODUCTION}))


def parent(**more: object) -> int:
    add_dataset("lab.in", 10)
    return submit(parameters("lab.p", reads("lab.in"), nFilesPerJob=1, maxAttempt=1, **more))


def child(of: int, **more: object) -> int:
    return submit(parameters("lab.c", reads("lab.p.out"), **{"nFilesPerJob": 3, "nChunksToWait": 1, **more}), parent=of)


def test_a_child_that_does_not_wait_uses_each_file_once_as_the_dataset_grows() -> None:
    first = parent()
    second = child(first, noWaitParent=True)
    slow = Pilot()
    seen = set()
    for _ in range(40):
        agents_turn()
        slow.work(2)
        seen.add((status(first), dataset(second).files if status(second) not in ("registered", "pending") else 0))
        if status(second) == "done":
            break
    assert (status(first), status(second)) == ("done", "done"), task(second).error_dialog
    assert any(state == "running" and files for state, files in seen), "the child began while its parent ran"
    used = Counter(name for job in jobs(second) for name in inputs(job.id))
    assert used == Counter({f"lab.p.{n:06d}.root": 1 for n in range(1, 11)})
    assert [len(inputs(job.id)) for job in jobs(second)] == [3, 3, 3, 1]


def test_a_task_that_names_only_the_dataset_gets_all_files_of_the_task_that_makes_it() -> None:
    first = parent()
    agents_turn()
    second = submit(parameters("lab.c", reads("lab.p.out"), nFilesPerJob=3))
    settle_without_pilots()
    assert status(second) == "defined"
    assert task(second).error_dialog == "lab.p.out has no files yet; it may still get some"
    drive(Pilot())
    assert (status(first), status(second)) == ("done", "done"), task(second).error_dialog
    assert sum(len(inputs(job.id)) for job in jobs(second)) == 10


def test_a_task_that_names_only_the_dataset_is_finished_as_a_child_when_the_maker_is_and_done_when_it_runs_again() -> (
    None
):
    first = parent()
    agents_turn()
    second = submit(parameters("lab.c", reads("lab.p.out"), nFilesPerJob=3))
    drive(Pilot(failing_on("lab.in.00003")))
    assert (status(first), status(second)) == ("finished", "finished")
    said = (
        f"9 of 9 input files were processed; task {first}, which makes lab.p.out, is only finished. Retry that one, and once it "
        "is done, run this one again (Run again on its page, prun with the same --outDS, or incexec)"
    )
    assert task(second).error_dialog == said
    last = TaskStatusLog.objects.filter(task_id=second).latest("id")
    assert (last.status, last.reason) == ("finished", said)
    assert last.status == "finished" and said in why(task(second))["blocked_by"]["sentence"]
    command_queue.give_command(first, "retry", by="ada")
    drive(Pilot())
    command_queue.give_command(second, "incexec", by="ada")
    drive(Pilot())
    assert (status(first), status(second), task(second).error_dialog) == ("done", "done", None)
    assert sum(len(inputs(job.id)) for job in jobs(second)) == 10


def test_a_task_that_is_submitted_when_the_maker_of_its_input_had_ended_is_done_and_says_that_some_is_missing() -> None:
    first = parent()
    drive(Pilot(failing_on("lab.in.00003")))
    second = submit(parameters("lab.c", reads("lab.p.out"), nFilesPerJob=3))
    drive(Pilot())
    assert (status(first), status(second)) == ("finished", "done")
    assert f"task {first}, which makes lab.p.out, is only finished. Retry that one" in (task(second).error_dialog or "")
    third = submit(parameters("lab.again", reads("lab.in"), nFilesPerJob=1, maxAttempt=1))
    drive(Pilot())
    assert (status(third), task(third).error_dialog) == ("done", None), "nobody here has made lab.in"


def test_of_several_tasks_that_made_an_input_the_last_one_counts() -> None:
    first = parent()
    drive(Pilot(failing_on("lab.in.00003")))
    again = submit(parameters("lab.p", reads("lab.in"), nFilesPerJob=1))
    drive(Pilot())
    second = submit(parameters("lab.c", reads("lab.p.out"), nFilesPerJob=3))
    drive(Pilot())
    assert [status(one) for one in (first, again, second)] == ["finished", "done", "done"]
    assert task(second).error_dialog is None


def test_a_task_that_takes_none_of_the_files_names_the_dataset_and_what_left_them_out() -> None:
    add_dataset("lab.in", 10)
    first = submit(parameters("lab.p", {**reads("lab.in"), "include": "nothing.*"}, nFilesPerJob=1))
    settle_without_pilots()
    assert status(first) == "broken"
    said = "include 'nothing.*' takes none of the 10 files of lab.in, such as lab.in.00000 and lab.in.00001"
    assert said in (task(first).error_dialog or "")


def test_a_task_whose_files_are_all_skipped_is_told_so_in_the_words_of_its_client() -> None:
    add_dataset("lab.in", 10)
    item = {**reads("lab.in"), "value": "${IN/T}", "exclude": r"\.log\.tgz(\.\d+)*$", "offset": 12}
    for name, kind, key in (("lab.p", "panda-client-1.6.0-jedi-run", "--nSkipFiles"), ("lab.q", "own", "offset")):
        made = submit(parameters(name, item, processingType=kind))
        settle_without_pilots()
        assert task(made).error_dialog == f"{key} 12 leaves out every file: lab.in has only 10 files"
    used = submit(parameters("lab.r", item | {"offset": 0}, nFiles=10))
    settle_without_pilots()
    assert status(used) != "broken"


def test_a_child_waits_for_its_parent_with_a_sentence_and_then_is_done() -> None:
    first = parent()
    second = child(first)
    settle_without_pilots()
    assert status(second) == "pending"
    assert f"parent task {first}" in (task(second).error_dialog or "")
    drive(Pilot())
    assert (status(first), status(second)) == ("done", "done")
    assert sum(len(inputs(job.id)) for job in jobs(second)) == 10


def settle_without_pilots() -> None:
    for _ in range(5):
        agents_turn()
    # The pending watchdog has just sent the child to look again.
    from tasks_app.agents import refiner

    refiner.run()


def test_a_child_that_waits_for_a_parent_that_fails_is_aborted_and_names_it() -> None:
    first = parent()
    second = child(first)
    drive(Pilot(always("failed")))
    assert status(first) == "failed"
    assert status(second) == "aborted"
    assert f"parent task {first} is failed" in (task(second).error_dialog or "")


def test_a_child_that_is_submitted_after_its_parent_failed_is_broken_and_names_it() -> None:
    first = parent()
    drive(Pilot(always("failed")))
    second = child(first)
    settle()
    assert (status(first), status(second)) == ("failed", "broken")
    assert f"parent task {first} is failed" in (task(second).error_dialog or "")


def test_a_child_that_is_submitted_right_after_a_retry_of_its_failed_parent_waits_for_it() -> None:
    first = parent()
    drive(Pilot(always("failed")))
    command_queue.give_command(first, "retry", by="ada")
    raw = parameters("lab.c", reads("lab.p.out"), nFilesPerJob=3, parent_tid=first, taskName="lab.c.task")
    submitting.submit(submitting.check(raw, ADA), by="ada")
    second = Task.objects.latest("id").id
    refiner.run()
    assert (status(first), status(second)) in {("failed", "pending"), ("failed", "registered")}
    drive(Pilot())
    assert (status(first), status(second)) == ("done", "done")


def test_an_input_of_a_task_that_failed_is_said_to_be_that_whether_its_container_or_its_dataset_is_read() -> None:
    first = parent()
    drive(Pilot(always("failed")))
    data_management().delete(["lab.p.out"], by=SITE)
    of_dataset = submit(parameters("lab.c", reads("lab.p.out")))
    settle()
    CatalogueDataset.objects.create(name="lab.p.out/", scope="lab")
    of_container = submit(parameters("lab.d", reads("lab.p.out/")))
    settle()
    assert (status(first), status(of_dataset), status(of_container)) == ("failed", "broken", "broken")
    why = f"task {first}, which makes it, has failed"
    assert task(of_dataset).error_dialog == f"the dataset lab.p.out does not exist in the local catalogue; {why}"
    assert task(of_container).error_dialog == f"The input lab.p.out/ contains no datasets: {why}."


def test_a_child_that_began_before_its_parent_was_killed_is_aborted_with_it() -> None:
    first = parent()
    second = child(first, noWaitParent=True, nFilesPerJob=1)
    pilot = Pilot()
    for _ in range(6):
        agents_turn()
        pilot.work(1)
    command_queue.give_command(first, "kill", by="ada")
    drive(pilot)
    assert (status(first), status(second)) == ("aborted", "aborted")
    assert all(job.status in JOB_FINAL for job in jobs(second))


def test_a_child_of_a_partly_finished_parent_is_finished_not_done() -> None:
    first = parent()
    second = child(first, noWaitParent=True)
    drive(Pilot(lambda job: "failed" if job["inFiles"] == "lab.in.00003" else "finished"))
    assert (status(first), status(second)) == ("finished", "finished")
    assert sum(len(inputs(job.id)) for job in jobs(second)) == 9


def test_a_task_that_runs_until_its_dataset_closes_takes_files_that_come_later() -> None:
    add_dataset("lab.growing", 2, open=True)
    made = submit(parameters("lab.t", reads("lab.growing"), nFilesPerJob=1, nChunksToWait=1, runUntilClosed=True))
    drive(Pilot())
    assert status(made) == "defined"
    add_files("lab.growing", range(2, 5))
    look_again()
    drive(Pilot())
    assert status(made) == "defined"
    assert "lab.growing has so far are processed" in (task(made).error_dialog or "")
    assert dataset(made).files_finished == 5
    close("lab.growing")
    look_again()
    settle()
    assert status(made) == "done"


def test_the_wait_for_files_that_fill_a_job_does_not_keep_more_files_away() -> None:
    add_dataset("lab.growing", 2, open=True)
    made = submit(parameters("lab.t", reads("lab.growing"), nFilesPerJob=3, runUntilClosed=True))
    for _ in range(3):
        agents_turn()
    assert not jobs(made)
    job_generator.run()  # finds too few files, and looks again in a while
    add_files("lab.growing", range(2, 5))
    look_again()
    feeder.run()
    assert dataset(made).files == 5


def close(name: str) -> None:
    from tasks_app.ddm import data_management
    from tasks_app.ddm.base import SITE

    data_management().close([name], by=SITE)


def test_a_task_whose_parent_makes_none_of_its_input_says_why_it_is_not_done_and_is_done_with_it() -> None:
    first = parent()
    add_dataset("lab.own", 2)
    second = submit(parameters("lab.c", reads("lab.own"), nFilesPerJob=1, noWaitParent=True), parent=first)
    settle()
    pilot = Pilot()
    for job in pilot.fetch(12):
        pilot.start(job)
        if job["taskID"] == second:
            pilot.end(job)
    settle()
    assert (status(first), status(second)) == ("running", "finished")
    said = "it is finished and not done only because its parent task, which makes none of its input, was running "
    "at that time; once"
    assert said in (task(second).error_dialog or "")
    with pytest.raises(
        command_queue.CommandRefusedError,
        match=f"its parent task {first} is running; once that is done, it is done too",
    ):
        command_queue.give_command(second, "retry", by="ada")
    for job in pilot.ran:
        if job["taskID"] == first:
            pilot.end(job)
    drive(pilot)
    assert (status(first), status(second), len(jobs(second))) == ("done", "done", 2)
    assert task(second).error_dialog is None and dataset(second, "output").status == "done"
    offered = command_buttons.buttons(task(second), ADA)
    assert "retry" not in [act.name for act in offered.possible] and "incexec" in [act.name for act in offered.possible]


def test_a_task_that_is_done_with_its_parent_still_tells_which_attempts_failed() -> None:
    first = parent()
    add_dataset("lab.own", 2)
    second = submit(parameters("lab.c", reads("lab.own"), nFilesPerJob=1, noWaitParent=True), parent=first)
    settle()
    pilot = Pilot()
    failed = False
    for _ in range(4):
        for job in pilot.fetch(12):
            pilot.start(job)
            if job["taskID"] == second:
                pilot.end(job, "finished" if failed else "failed")
                failed = True
        settle()
    assert (status(first), status(second)) == ("running", "finished")
    before = (task(second).error_dialog or "").partition(". ")[2]
    assert before.startswith("1 attempt failed")
    for job in pilot.ran:
        if job["taskID"] == first:
            pilot.end(job)
    drive(pilot)
    assert (status(first), status(second)) == ("done", "done")
    assert task(second).error_dialog == before
