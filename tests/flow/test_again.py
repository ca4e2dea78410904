"""Tasks that run again: retry with its qualifiers and limits, incremental execution, resubmission, children."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection

from brokerage_app.grid.configuring import set_value
from jedisite.identity.callers import Caller, Role
from tasks_app.agents import commando, refiner
from tasks_app.audit import flow_invariants
from tasks_app.lifecycle import rights, task_moves
from tasks_app.models import Command, Dataset, Job, JobArchive, OutputTemplate, Task, TaskParams
from tasks_app.params.faults import ParamErrors
from tasks_app.params.splitrule import SplitRule
from tasks_app.submission import command_queue, known_names, parameter_changes, sandboxes, submitting
from tests.flow.driving import (
    SITE,
    add_dataset,
    add_files,
    agents_turn,
    dataset,
    files,
    give_sandbox,
    inputs,
    jobs,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
    template,
)
from tests.flow.pilot import Pilot, drive, failing_on, inputs_of
from tests.flow.test_commands import command, running_task

pytestmark = pytest.mark.usefixtures("books")
ADA = Caller("ada", frozenset({Role.PRODUCTION}))
AGAIN = "1 file is tried again; each file without an attempt left gets 1 more attempt"


def finished_task(*failing: str, name: str = "lab.t", number: int = 4, **more: Any) -> int:
    """A task with one file a job, of which those named failed for good."""
    add_dataset(f"{name}.in", number)
    made = submit(parameters(name, reads(f"{name}.in"), **{"nFilesPerJob": 1, "maxAttempt": 1, **more}))
    drive(Pilot(failing_on(*failing)))
    return made


def run_again(task_id: int, pilot: Pilot | None = None, **changes: Any) -> Command:
    given = command(task_id, "incexec", parameters={"changes": changes} if changes else None)
    assert given.status == "done", given.answer
    drive(pilot or Pilot())
    return given


def used(task_id: int, after: int = 0) -> Counter[str]:
    return Counter(name for job in jobs(task_id) if job.id > after for name in inputs(job.id))


def last_job(task_id: int) -> int:
    return max((job.id for job in jobs(task_id)), default=0)


# --- retry ---


@pytest.mark.parametrize(("given", "then"), [(0, (4, 2)), (2, (3, 2))])
def test_a_retry_gives_as_many_attempts_more_as_a_new_file_has(given: int, then: tuple[int, int]) -> None:
    made = finished_task("lab.t.in.00001", maxAttempt=given, maxFailure=1)
    assert status(made) == "finished"
    command(made, "retry")
    limits = {f.lfn: (f.max_attempt, f.max_failure) for f in files(made)}
    assert limits["lab.t.in.00001"] == then
    assert limits["lab.t.in.00000"] == (given or 3, 1)


def test_a_task_that_was_taken_with_no_failure_at_all_is_tried_and_counted() -> None:
    """As tasks may have been before that was refused: its files would never be tried, nor booked as failed."""
    add_dataset("lab.t.in", 2)
    made = submit(parameters("lab.t", reads("lab.t.in"), nFilesPerJob=1))
    refiner.run()
    row = TaskParams.objects.get(pk=made)
    row.params["maxFailure"] = 0
    row.save()
    settle()
    assert jobs(made) and [f.max_failure for f in files(made) if f.type == "input"] == [None, None]
    command(made, "kill")
    settle()
    assert status(made) == "aborted" and flow_invariants.find() == []


NO_STEP = "retryRamMax: It has no effect without retryRamStep or retryRamOffset"


def refused(made: int, changes: dict[str, Any]) -> str:
    """What the door says of running again with these changes."""
    with pytest.raises(command_queue.CommandRefusedError) as caught:
        command(made, "incexec", parameters={"changes": changes} if changes else None)
    assert status(made) == "finished" and not Command.objects.filter(task_id=made, name="incexec").exists()
    return str(caught.value)


def older_task() -> int:
    """A finished task with parameters that did not go together, and were taken all the same."""
    made = finished_task("lab.t.in.00001")
    row = TaskParams.objects.get(pk=made)
    row.params |= {"retryRamMax": 4000, "altStageOut": "on"}
    row.save()
    return made


@pytest.mark.parametrize("changes", [{}, {"nFilesPerJob": 2}])
def test_a_task_runs_again_with_parameters_that_a_new_one_would_be_refused_with(changes: dict[str, Any]) -> None:
    made = older_task()
    said = run_again(made, **changes).answer or ""
    assert "it keeps what it was submitted with, though a new task would be refused with that: " in said
    assert NO_STEP in said and "altStageOut" in said
    assert status(made) == "done"


def test_changes_that_do_not_go_with_what_a_task_was_submitted_with_are_refused_alone() -> None:
    made = older_task()
    said = refused(made, {"retryRamStep": 5000})
    assert said.startswith(f"the changes do not fit task {made}: ")
    assert "below retryRamStep (5000)" in said and "altStageOut" not in said
    assert status(made) == "finished"


def test_a_task_whose_parameters_cannot_be_read_any_more_is_not_broken_by_running_again() -> None:
    made = finished_task("lab.t.in.00001")
    row = TaskParams.objects.get(pk=made)
    row.params["maxFailure"] = 0
    row.save()
    assert f"task {made} cannot run again as it is: maxFailure: " in refused(made, {})
    assert status(made) == "finished"
    run_again(made, maxFailure=2)
    assert status(made) == "done"


@pytest.mark.parametrize("again", ["retry", "incexec"])
def test_a_failed_task_is_retried_or_runs_again(again: str) -> None:
    made = finished_task(*(f"lab.t.in.{n:05d}" for n in range(4)))
    assert status(made) == "failed"
    command(made, again)
    drive(Pilot())
    assert status(made) == "done"


def test_a_retry_leaves_masters_alone_that_are_done() -> None:
    add_dataset("lab.a", 2)
    add_dataset("lab.b", 2)
    made = submit(parameters("lab.t", reads("lab.a,lab.b", expand=True), nFilesPerJob=1, maxAttempt=1))
    drive(Pilot(failing_on("lab.b.00001")))
    before = last_job(made)
    command(made, "retry")
    assert (dataset(made, name="lab.a").status, dataset(made, name="lab.b").status) == ("done", "ready")
    drive(Pilot())
    assert (status(made), used(made, before)) == ("done", Counter(["lab.b.00001"]))


def test_jobs_of_any_master_get_the_secondary_files_of_failed_jobs_again() -> None:
    for name, number in (("lab.a", 2), ("lab.b", 2), ("lab.s", 4)):
        add_dataset(name, number)
    items = (reads("lab.a,lab.b"), reads("lab.s", "IN2", ratio=1))
    made = submit(parameters("lab.t", *items, nFilesPerJob=1, maxAttempt=1))
    drive(Pilot(failing_on("lab.b.00000", "lab.b.00001")))
    assert status(made) == "finished"
    last = last_job(made)
    command(made, "retry")
    drive(Pilot())
    assert status(made) == "done"
    assert used(made, last) == Counter(("lab.b.00000", "lab.s.00002", "lab.b.00001", "lab.s.00003"))


def test_priority_is_reset_unless_it_is_kept() -> None:
    made = finished_task("lab.t.in.00001")
    Task.objects.filter(pk=made).update(current_priority=900)
    command(made, "retry", parameters={"keep": True})
    assert task(made).current_priority == 900
    drive(Pilot(failing_on("lab.t.in.00001")))
    drive(Pilot(failing_on("lab.t.in.00001")))
    assert status(made) == "finished"
    command(made, "retry")
    assert task(made).current_priority == 500
    drive(Pilot())


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("TASK_MAX_ATTEMPT_user", "1", "it was tried 1 time"),
        ("MAX_JOB_FAILURE_RATE_user", "0.2", "of the jobs failed"),
        ("MAX_FAILED_HEP_SCORE_RATE_user", "0.4", "40 % of the HS23 hours went to failed jobs, and 40 % are allowed"),
        ("MAX_FAILED_HEP_SCORE_HOURS_user", "20", "failed jobs took 20 HS23 hours, and 20 are allowed"),
        ("MIN_CPU_EFFICIENCY_user", "60", "the median CPU efficiency is 50 %, below 60 %"),
    ],
)
def test_a_task_at_a_hard_limit_is_exhausted(key: str, value: str, sentence: str) -> None:
    """Five jobs of an hour on one core of 10 HS23, of which two failed; the others used half of their core."""
    made = finished_task("lab.t.in.00001")
    command(made, "retry")
    drive(*[Pilot(failing_on("lab.t.in.00001"))])
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jobs SET starttime = now() - interval '1 hour', endtime = now(), actualcorecount = 1,
                      cpuconsumptiontime = 1800 WHERE jeditaskid = %s""",
            [made],
        )
    command_queue.give_command(made, "retry", by="ada")
    set_value("retry_task", key, value, by="ada")
    commando.run()
    assert status(made) == "exhausted"
    assert sentence in (task(made).error_dialog or "")
    command(made, "retry", parameters={"transcend": True})
    drive(Pilot())
    assert status(made) == "done"


def test_a_task_with_files_tried_too_often_stays_where_it_is() -> None:
    made = finished_task("lab.t.in.00001")
    given = command_queue.give_command(made, "retry", by="ada")
    set_value("retry_task", "JOB_MAX_ATTEMPT_managed", "1", by="ada")
    set_value("retry_task", "JOB_MAX_ATTEMPT_user", "1", by="ada")
    commando.run()
    given.refresh_from_db()
    assert (given.status, status(made)) == ("refused", "finished")
    assert "1 attempt already" in given.answer


def test_an_exhausted_task_that_ran_goes_on_as_it_was_and_no_file_is_touched() -> None:
    made, pilot = running_task()
    pilot.end(pilot.ran[0], "finished")
    settle()
    task_moves.move_task(made, "exhausted", by="test", remember=True, error_dialog="nothing moved for days")
    before = list(Dataset.objects.filter(task_id=made).order_by("id").values())
    assert command(made, "retry").answer == "it is running again"
    now = task(made)
    assert (now.status, now.old_status, now.frozen_time, now.error_dialog, now.attempt) == (
        "running",
        None,
        None,
        None,
        0,
    )
    assert list(Dataset.objects.filter(task_id=made).order_by("id").values()) == before
    pilot.end(pilot.ran[1], "finished")
    drive(pilot)
    assert status(made) == "done"


@pytest.mark.parametrize(("unit", "back"), [(None, "scouting"), ("kSI2kseconds", "running")])
def test_an_exhausted_task_of_known_wall_time_scouts_no_more(unit: str | None, back: str) -> None:
    made, pilot = running_task(at_pilot=0)
    task_moves.move_task(made, "exhausted", by="test", old_status="scouting", walltime_unit=unit)
    command(made, "retry")
    assert status(made) == back
    task_moves.move_task(made, "running", by="test") if back == "scouting" else None
    drive(pilot)


def test_a_retry_of_a_running_task_gives_its_failed_files_more_attempts() -> None:
    made, pilot = running_task(maxAttempt=1)
    pilot.end(pilot.ran[0], "failed")
    settle()
    assert (status(made), dataset(made).files_failed) == ("running", 1)
    assert command(made, "retry").answer == "1 file is tried again, with 1 more attempt"
    assert (status(made), dataset(made).files_failed) == ("running", 0)
    pilot.end(pilot.ran[1], "finished")
    drive(pilot)
    assert status(made) == "done"


def test_more_attempts_are_refused_where_no_file_lacks_them() -> None:
    made, pilot = running_task()
    with pytest.raises(
        command_queue.CommandRefusedError, match=f"task {made} has no file that has used up its attempts"
    ):
        command_queue.give_command(made, "increase_attempts", by="ada", parameters={"attempts": 2})
    Task.objects.filter(pk=made).update(prod_source_label="managed")
    with pytest.raises(command_queue.CommandRefusedError, match="only tasks with the label user"):
        command_queue.give_command(made, "retry", by="ada")
    command(made, "kill")
    for job in pilot.ran:
        pilot.end(job, "failed")
    settle()


def test_a_task_that_runs_again_numbers_its_files_behind_those_of_others() -> None:
    first = finished_task("lab.t.in.00001", name="lab.t")
    second = submit(parameters("lab.t", reads("lab.t.in"), nFilesPerJob=1))
    drive(Pilot())
    assert status(second) == "done"
    command(first, "retry")
    drive(Pilot())
    assert status(first) == "done"
    names = [name for t in (first, second) for job in jobs(t) for name in inputs(job.id, "output")]
    assert len(set(names)) == len(names)
    assert OutputTemplate.objects.filter(task_id=first).first() is not None


# --- incremental execution ---


def test_a_dataset_that_is_added_is_processed_and_the_old_one_is_not_again() -> None:
    made = finished_task()
    add_dataset("lab.more", 3)
    before = last_job(made)
    run_again(made, dsForIN="lab.more")
    assert (status(made), task(made).attempt) == ("done", 1)
    assert used(made, before) == Counter(f"lab.more.{n:05d}" for n in range(3))
    assert TaskParams.objects.get(pk=made).params["dsForIN"] == "lab.more"


def test_a_dataset_that_is_added_may_be_written_with_its_scope() -> None:
    made = finished_task()
    add_dataset("lab.more", 3)
    changes = {"dsForIN": "lab:lab.more"}
    known_names.check_changes({"changes": changes}, [task(made)])
    before = last_job(made)
    run_again(made, **changes)
    assert used(made, before) == Counter(f"lab.more.{n:05d}" for n in range(3))
    assert TaskParams.objects.get(pk=made).params["dsForIN"] == "lab.more"


def test_files_that_came_to_the_dataset_are_processed() -> None:
    made = finished_task()
    add_files("lab.t.in", range(4, 7))
    before = last_job(made)
    run_again(made)
    assert used(made, before) == Counter(f"lab.t.in.{n:05d}" for n in (4, 5, 6))
    assert (dataset(made).files, dataset(made).files_finished) == (7, 7)


def test_a_dataset_that_is_taken_away_is_left_alone_and_one_that_comes_back_goes_on() -> None:
    add_dataset("lab.a", 2)
    add_dataset("lab.b", 2)
    made = submit(parameters("lab.t", reads("lab.a", expand=True), dsForIN="lab.b", nFilesPerJob=1, maxAttempt=1))
    drive(Pilot(failing_on("lab.b.00001", "lab.a.00001")))
    assert status(made) == "finished"
    before = last_job(made)
    run_again(made, dsForIN=None)
    assert (dataset(made, name="lab.b").status, status(made)) == ("removed", "done")
    assert used(made, before) == Counter(["lab.a.00001"])
    before = last_job(made)
    run_again(made, dsForIN="lab.b")
    assert used(made, before) == Counter(["lab.b.00001"])
    assert status(made) == "done"


def test_fewer_files_a_job_hold_from_now_on() -> None:
    made = finished_task("lab.t.in.00001", number=12, nFilesPerJob=4)
    before = last_job(made)
    run_again(made, nFilesPerJob=2)
    assert SplitRule.parse(task(made).split_rule).get_int("NF") == 2
    assert [len(inputs(job.id)) for job in jobs(made) if job.id > before] == [2, 2]
    assert status(made) == "done"


def test_what_was_measured_stays_and_memory_follows_the_change() -> None:
    made = finished_task("lab.t.in.00001")
    Task.objects.filter(pk=made).update(ram_count=1700, walltime=77, walltime_unit="kSI2kseconds")
    command(made, "incexec")
    settle()
    assert (task(made).ram_count, task(made).walltime) == (1700, 77)
    drive(Pilot(failing_on("lab.t.in.00001")))
    drive(Pilot(failing_on("lab.t.in.00001")))
    assert status(made) == "finished"
    run_again(made, ramCount=900)
    assert (task(made).ram_count, task(made).walltime) == (900, 77)


def test_what_was_changed_on_a_task_and_where_it_was_sent_stays_unless_the_changes_say_otherwise() -> None:
    made = submit(parameters("lab.t", reads("lab.t.in"), nFilesPerJob=1, coreCount=1, goal=100))
    add_dataset("lab.t.in", 2)
    settle()
    needs = {"coreCount": 4, "goal": 50, "cpuEfficiency": 70, "baseWalltime": 9, "ramCount": 700}
    parameter_changes.change_attributes(made, needs, by="operator", reason="test")
    resource = task(made).resource_type
    command(made, "reassign", parameters={"site": SITE})
    settle()
    assert (task(made).site, resource) == (SITE, "MCORE")
    command(made, "kill")
    drive(Pilot())
    assert status(made) == "aborted"

    def again(changes: dict[str, Any]) -> Task:
        command(made, "incexec", parameters={"changes": changes})
        settle()
        found = task(made)
        command(made, "kill")
        drive(Pilot())
        return found

    now = again({"nFilesPerJob": 2})
    assert (now.core_count, now.goal, now.cpu_efficiency, now.base_walltime, now.ram_count) == (4, 500, 70, 9, 700)
    assert (now.site, now.resource_type) == (SITE, resource)
    assert again({"cloud": "DE"}).site == SITE
    assert (task(made).cloud, again({"excludedSite": "SITE_B"}).site) == ("DE", None)


def test_more_files_of_the_same_dataset() -> None:
    add_dataset("lab.t.in", 6)
    made = submit(parameters("lab.t", reads("lab.t.in"), nFilesPerJob=1, nFiles=2))
    drive(Pilot())
    assert (status(made), dataset(made).files) == ("done", 2)
    run_again(made, nFiles=5)
    assert (status(made), dataset(made).files, dataset(made).files_finished) == ("done", 5, 5)


def test_lost_files_are_taken_again_by_an_incremental_execution_only() -> None:
    made = finished_task("lab.t.in.00001")
    lose(made, "lab.t.in.00001")
    said = "1 input file is lost, and all others were processed; nothing to retry. To have it looked up, run it again"
    with pytest.raises(command_queue.CommandRefusedError, match=said):
        command(made, "retry")
    run_again(made)
    assert (status(made), dataset(made).files_finished) == ("done", 4)


def lose(task_id: int, lfn: str) -> None:
    """What the feeder does with a file that has vanished."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jedi_dataset_contents SET status = 'lost' WHERE jeditaskid = %s AND lfn = %s", [task_id, lfn]
        )
        cursor.execute(
            """UPDATE jedi_datasets SET nfiles = nfiles - 1, nfilestobeused = nfilestobeused - 1, nfilesmissing = 1,
                      nfilesused = nfilesused - 1, nfilesfailed = nfilesfailed - 1 WHERE jeditaskid = %s AND type = 'input'""",
            [task_id],
        )


def test_events_that_were_asked_for_in_addition_are_made() -> None:
    made = submit(
        parameters("lab.t", template("number", "--seed ${RNDMSEED}"), noInput=True, nEvents=40, nEventsPerJob=10)
    )
    drive(Pilot())
    assert len(jobs(made)) == 4
    run_again(made, nEvents=60)
    assert (status(made), len(jobs(made))) == ("done", 6)
    seeds = [inputs(job.id, "random_seed") for job in jobs(made)]
    assert len({name for names in seeds for name in names}) == 6


@pytest.mark.parametrize(
    ("first", "changes", "events"),
    [
        ({"nFiles": 5, "nEventsPerJob": 10}, {"nEvents": 100}, [range(n, n + 10) for n in range(0, 100, 10)]),
        (
            {"nEvents": 15, "nEventsPerJob": 10},
            {"nEvents": 30},
            [range(10), range(10, 15), range(15, 20), range(20, 30)],
        ),
        ({"nEvents": 50}, {"nEvents": 80}, [range(50), range(50, 80)]),
    ],
    ids=["files before", "a short last range", "one range"],
)
def test_each_event_of_a_task_without_input_is_made_once_however_its_numbers_change(
    first: dict[str, int], changes: dict[str, int], events: list[range]
) -> None:
    made = submit(parameters("lab.t", noInput=True, **first))
    drive(Pilot())
    run_again(made, **changes)
    ranges = [f for f in files(made, "pseudo_input") if f.start_event is not None]
    assert [range(f.start_event, f.end_event + 1) for f in ranges] == events
    assert [f.first_event for f in ranges] == [some.start + 1 for some in events]
    assert (status(made), {f.status for f in files(made, "pseudo_input")}) == ("done", {"finished"})


@pytest.mark.parametrize(
    ("first", "changes", "number"),
    [
        ({"nFiles": 1}, {"nFiles": 3}, 3),
        ({"nFiles": 2}, {"nFiles": 3}, 3),
        ({"nEvents": 30}, {"nFiles": 3, "nEvents": None}, 3),
    ],
    ids=["one", "more", "events before"],
)
def test_a_task_without_input_gets_the_jobs_that_it_is_to_have_when_it_runs_again(
    first: dict[str, int], changes: dict[str, Any], number: int
) -> None:
    made = submit(parameters("lab.t", noInput=True, nEventsPerJob=10, **first))
    drive(Pilot())
    run_again(made, **changes)
    assert status(made) == "done"
    assert sum(f.start_event is None for f in files(made, "pseudo_input")) == number


def test_changes_that_do_not_go_together_change_nothing() -> None:
    made = finished_task("lab.t.in.00001")
    before = TaskParams.objects.get(pk=made).params
    assert "nFilesPerJob" in refused(made, {"nFilesPerJob": -1})
    assert TaskParams.objects.get(pk=made).params == before


def test_changes_that_ask_for_what_the_site_does_not_offer_leave_the_task_as_it_was() -> None:
    made = finished_task("lab.t.in.00001")
    said = refused(made, {"registerEsFiles": True})
    assert "files of single events in data management, which this site does not offer" in said
    assert "registerEsFiles" not in TaskParams.objects.get(pk=made).params
    with pytest.raises(ParamErrors, match="registerEsFiles: This asks for"):
        submitting.submit(submitting.check(again_params(registerEsFiles=True), ADA), by="ada")


def test_a_task_that_was_killed_before_it_was_refined_runs_whole() -> None:
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    command(made, "kill")
    settle()
    assert status(made) == "aborted"
    add_dataset("lab.in", 2)
    run_again(made)
    assert (status(made), dataset(made).files_finished) == ("done", 2)


def test_a_task_that_is_done_stays_so_with_its_times_when_no_file_is_new() -> None:
    made = finished_task()
    before, rows = task(made), len(jobs(made))
    sentence = f"task {made} is done, and has processed every input file that it selects: nothing runs"
    with pytest.raises(command_queue.CommandRefusedError, match=sentence):
        command(made, "incexec", parameters={"changes": {"nFilesPerJob": 2}})
    (late,) = command_queue.queue_commands([before], "incexec", by="ada", reason="given to many at once")
    commando.run()
    late.refresh_from_db()
    assert (late.status, late.answer) == ("refused", sentence)
    settle()
    after = task(made)
    assert (after.status, after.start_time, after.end_time, after.attempt) == (
        "done",
        before.start_time,
        before.end_time,
        0,
    )
    assert len(jobs(made)) == rows
    add_files("lab.t.in", [7])
    run_again(made)
    assert (status(made), dataset(made).files_finished) == ("done", 5)


@pytest.mark.parametrize(
    ("first", "changes"),
    [
        ({"nFiles": 2}, {"nEvents": 1}),
        ({"nFiles": 2}, {"nFiles": 1, "nFilesPerJob": 1}),
        ({"nFiles": 2, "nEventsPerFile": 10, "nEventsPerJob": 5}, {"nEvents": 12}),
        ({"noInput": True, "nEvents": 50, "nEventsPerJob": 10}, {"nEvents": 30}),
        ({"noInput": True, "nEvents": 50, "nEventsPerJob": 10}, {"nFiles": 3}),
        ({"noInput": True, "nFiles": 3}, {"nFiles": 2, "nFilesPerJob": 1}),
    ],
    ids=[
        "events beside files",
        "fewer files",
        "fewer ranges",
        "fewer events",
        "fewer files than ranges",
        "fewer records",
    ],
)
def test_a_task_that_is_done_keeps_its_times_when_other_numbers_make_no_work(
    first: dict[str, Any], changes: dict[str, int]
) -> None:
    add_dataset("lab.t.in", 4, events=10)
    items = () if first.get("noInput") else (reads("lab.t.in"),)
    made = submit(parameters("lab.t", *items, **{"nFilesPerJob": 1, **first}))
    drive(Pilot())
    before, rows = task(made), len(jobs(made))
    assert before.status == "done"
    with pytest.raises(command_queue.CommandRefusedError, match=f"task {made} is done, and .*: nothing runs"):
        command(made, "incexec", parameters={"changes": changes})
    (late,) = command_queue.queue_commands(
        [before], "incexec", by="ada", reason="to many", parameters={"changes": changes}
    )
    commando.run()
    late.refresh_from_db()
    after = task(made)
    assert (late.status, after.status, len(jobs(made))) == ("refused", "done", rows)
    assert (after.start_time, after.end_time, after.attempt) == (before.start_time, before.end_time, 0)


def test_a_task_that_is_done_runs_again_on_inputs_that_are_added() -> None:
    made = finished_task()
    add_dataset("lab.more", 1)
    run_again(made, dsForIN="lab.t.in,lab.more")
    assert (status(made), len(jobs(made))) == ("done", 5)


def test_a_task_that_makes_its_input_itself_runs_again_only_when_it_is_to_make_more() -> None:
    made = submit(parameters("lab.t", noInput=True, nEvents=4, nEventsPerJob=2))
    drive(Pilot())
    assert status(made) == "done"
    with pytest.raises(
        command_queue.CommandRefusedError, match="and its numbers of files and events give no further work"
    ):
        command(made, "incexec", parameters={"changes": {"nEvents": 4}})
    run_again(made, nEvents=6)
    assert (status(made), len(jobs(made))) == ("done", 3)


# --- by submitting again ---


def again_params(**changes: Any) -> dict[str, Any]:
    wishes = {"nFilesPerJob": 1, "maxAttempt": 1, "uniqueTaskName": True, **changes}
    return parameters("user.ada.t", reads("lab.t.in"), **wishes)


def again(**changes: Any) -> submitting.Submitted:
    return submitting.submit(submitting.check(again_params(**changes), ADA), by="ada")


def test_a_task_that_is_done_and_is_submitted_again_says_that_nothing_runs() -> None:
    add_dataset("lab.t.in", 2)
    first = again()
    drive(Pilot())
    before = task(first.task_id)
    second = again(nFilesPerJob=2)
    assert (second.task_id, second.decision.code) == (first.task_id, 3)
    assert second.decision.sentence == (
        f"The task {first.task_id} of the name 'user.ada.t' is done, and has processed every input file that it selects: "
        f"nothing runs. jediTaskID={first.task_id}"
    )
    settle()
    after = task(first.task_id)
    assert (after.status, after.end_time, Command.objects.count()) == ("done", before.end_time, 0)
    add_files("lab.t.in", [5])
    assert "is being run again" in again().decision.sentence


def test_a_task_submitted_again_runs_again_with_what_may_be_changed() -> None:
    add_dataset("lab.t.in", 4)
    first = again()
    drive(Pilot(failing_on("lab.t.in.00001")))
    assert (first.is_new, status(first.task_id)) == (True, "finished")
    second = again(nFilesPerJob=3, cliParams="prun again", processingType="other")
    assert (second.task_id, second.decision.code) == (first.task_id, 3)
    with pytest.raises(submitting.SubmissionRefusedError, match="was submitted already and waits"):
        again()
    drive(Pilot())
    assert status(first.task_id) == "done"
    stored = TaskParams.objects.get(pk=first.task_id).params
    assert (stored["nFilesPerJob"], stored["cliParams"], stored["processingType"]) == (3, "prun again", "test")
    assert Task.objects.count() == 1


COMMAND = [
    {"type": "constant", "value": "-a jobO.old.tar.gz"},
    {"type": "constant", "value": '-p "', "padding": False},
    {"type": "constant", "value": "python3%20count.py"},
]


def with_command(*items: dict[str, Any], **more: Any) -> submitting.Submitted:
    """As prun submits: the command is a list of items."""
    params = again_params(**more)
    given = [*(items or COMMAND), *params["jobParameters"]]
    return submitting.submit(submitting.check({**params, "jobParameters": given}, ADA), by="ada")


def test_another_command_under_the_name_of_a_task_that_has_ended_is_refused(settings: Any, tmp_path: Path) -> None:
    settings.JEDI_SANDBOXES = tmp_path
    for name in ("jobO.old.tar.gz", "jobO.new.tar.gz"):
        give_sandbox(name)
    add_dataset("lab.t.in", 1)
    add_dataset("lab.t.more", 1)
    made = with_command().task_id
    drive(Pilot())
    other = {"type": "constant", "value": "echo%20NEWCODE"}
    with pytest.raises(submitting.SubmissionRefusedError) as no:
        with_command(*COMMAND[:-1], other, cliParams="prun --exec 'echo NEWCODE'")
    said = no.value.decision
    assert (said.code, said.task_id) == (2, made) and f"jediTaskID={made}" in said.sentence
    assert "which is done, was submitted with another command" in said.sentence
    assert "give the new task another taskName" in said.sentence
    assert "cliParams" not in TaskParams.objects.get(pk=made).params
    assert not Command.objects.exists()
    # The folder of the command is another one: the task keeps the old, unless fixedSandbox says otherwise.
    archive = {"type": "constant", "value": "-a jobO.new.tar.gz"}
    kept = with_command(archive, *COMMAND[1:], dsForIN="lab.t.in,lab.t.more", coreCount=2)
    assert (kept.task_id, kept.decision.code) == (made, 3)
    assert (
        "keeps its own coreCount." in kept.decision.sentence
        and "; use fixedSandbox to change it." in kept.decision.sentence
    )
    drive(Pilot())
    assert dataset(made, name="lab.t.more").files_finished == 1, "a dataset more is taken over"
    new = with_command(archive, *COMMAND[1:], fixedSandbox="jobO.new.tar.gz")
    assert new.decision.code == 3 and "sandbox" not in new.decision.sentence


def as_prun(parent_id: int, uuid: str, **more: Any) -> submitting.Submitted:
    """As prun --parentTaskID submits: names of the sandbox and of the container of the input are new each time."""
    params = again_params(
        nFilesPerJob=3, processingType="panda-client-2.2.0-jedi-run", dsForIN="lab.p.out", parent_tid=parent_id
    )
    wishes = {"exclude": r"\.log\.tgz(\.\d+)*$", "consolidate": f"user.ada.{uuid}/", **more}
    read = template("input", '-i "${IN/T}"', "lab.p.out", **wishes)
    if not sandboxes.find(f"jobO.{uuid}.tar.gz"):
        give_sandbox(f"jobO.{uuid}.tar.gz", content=uuid.encode())
    line = [{"type": "constant", "value": f"-a jobO.{uuid}.tar.gz"}, *COMMAND[1:], read, params["jobParameters"][-1]]
    return submitting.submit(submitting.check({**params, "jobParameters": line}, ADA), by="ada")


def test_the_same_prun_with_a_parent_runs_again_on_what_the_parent_has_made_since(
    settings: Any, tmp_path: Path
) -> None:
    settings.JEDI_SANDBOXES = tmp_path
    add_dataset("lab.in", 12)
    first = submit(parameters("lab.p", reads("lab.in"), nFilesPerJob=1, maxAttempt=1))
    drive(Pilot(failing_on("lab.in.00002", "lab.in.00007")))
    made = as_prun(first, "cf1e111a-8ec4-42b9-9d7e-ac1cb6bfea24")
    drive(Pilot())
    assert (status(first), status(made.task_id), dataset(made.task_id).files_finished) == ("finished", "finished", 10)
    command(first, "retry", parameters={"sole": True})
    drive(Pilot())
    assert (status(first), status(made.task_id)) == ("done", "finished")
    with pytest.raises(submitting.SubmissionRefusedError, match="other inputs"):
        as_prun(first, "49151b36-a70a-43b6-a7ed-cf993157e08a", exclude="x")
    with pytest.raises(submitting.SubmissionRefusedError, match="other inputs"):
        as_prun(first, "0b7b2a4e-6d5f-4a55-9e0d-0f5a2f6c1a11", expand=True)
    again = as_prun(first, "49151b36-a70a-43b6-a7ed-cf993157e08a")
    assert (again.task_id, again.decision.code) == (made.task_id, 3)
    before = last_job(made.task_id)
    drive(Pilot())
    assert (status(made.task_id), dataset(made.task_id).files_finished) == ("done", 12)
    assert sum(used(made.task_id, before).values()) == 2
    assert dataset(made.task_id).container_name is None, "there is no such container"
    assert "nothing runs" in as_prun(first, "71f7fe7a-7af8-4601-bc8e-d90e59d51f6a").decision.sentence


def test_the_name_of_a_task_that_broke_before_it_had_a_job_is_free() -> None:
    add_dataset("lab.t.in")
    broken = again().task_id
    settle()
    assert status(broken) == "broken"
    with pytest.raises(command_queue.CommandRefusedError, match="submit it again, under the same name only if"):
        command_queue.give_command(broken, "retry", by="ada")
    add_files("lab.t.in", [1])
    made = again()
    assert made.is_new
    drive(Pilot())
    assert status(made.task_id) == "done"
    assert again().task_id == made.task_id, "the newest of the name that has made something"


@pytest.mark.parametrize("archived", [False, True])
def test_the_name_of_a_broken_task_that_had_jobs_is_taken(archived: bool) -> None:
    add_dataset("lab.t.in", 1)
    made = again().task_id
    settle()
    task_moves.move_task(made, "tobroken", by="test", reason="no more")
    settle()
    assert (status(made), len(jobs(made)) > 0) == ("broken", True)
    if archived:
        JobArchive.objects.bulk_create(JobArchive(id=job.id, task_id=made, status=job.status) for job in jobs(made))
        Job.objects.all().delete()
    with pytest.raises(submitting.SubmissionRefusedError, match=r"is broken: give another taskName\. jedi"):
        again()


def test_nobody_changes_the_code_of_others_by_submitting_under_the_name_of_their_task() -> None:
    get_user_model().objects.create_user("ada")
    add_dataset("lab.t.in", 1)
    ours = again(useSecrets=True)
    settle()
    wishes: dict[str, Any] = {"uniqueTaskName": True, "fixedSandbox": "evil.tar.gz", "nFilesPerJob": 1, "maxAttempt": 1}
    for caller, more in (
        (Caller("eve", frozenset({Role.USER})), {"official": True, "userName": "eve"}),
        (Caller("eve", frozenset({Role.PRODUCTION})), {"official": True}),
        (Caller("eve", frozenset({Role.PRODUCTION})), {"official": False, "userName": "ada"}),
    ):
        for _ in range(2):
            params = parameters("user.ada.t", reads("lab.t.in"), **wishes, **more)
            with pytest.raises(
                ParamErrors, match=r"you may not command it|only ada can change their code|Official tasks"
            ):
                submitting.submit(submitting.check(params, caller), by="eve", allow_active=True)
            drive(Pilot())
    assert status(ours.task_id) == "done"
    eve = Caller("eve", frozenset({Role.PRODUCTION}))
    no = rights.refusal(eve, "incexec", task(ours.task_id), {"changes": {"fixedSandbox": "evil.tar.gz"}})
    assert no and "only ada" in no
    for caller, changes in ((eve, {"nFiles": 5}), (ADA, {"fixedSandbox": "new.tar.gz"})):
        assert rights.refusal(caller, "incexec", task(ours.task_id), {"changes": changes}) is None
    assert Task.objects.count() == 1


def test_a_task_submitted_again_gets_no_priority_that_a_new_one_would_not_get() -> None:
    add_dataset("lab.t.in", 1)
    user = Caller("ada", frozenset({Role.USER}))

    def submitted() -> int:
        params = again_params(currentPriority=99_999, official=False, log=None)
        params["jobParameters"][-1] = template("output", "user.ada.t.${SN}.root", "user.ada.t.out")
        return submitting.submit(submitting.check(params, user), by="ada").task_id

    made = submitted()
    drive(Pilot(failing_on("lab.t.in.00000")))
    assert submitted() == made
    drive(Pilot())
    assert task(made).current_priority == 1000


def test_a_task_that_runs_is_changed_in_place_where_that_is_allowed() -> None:
    add_dataset("lab.t.in", 4)
    first = again()
    settle()
    with pytest.raises(submitting.SubmissionRefusedError, match="is running: give another taskName"):
        again(nFilesPerJob=2)
    params = parameters("user.ada.t", reads("lab.t.in"), nFilesPerJob=2, nGBPerJob=7, ramCount=700, uniqueTaskName=True)
    done = submitting.submit(submitting.check(params, ADA), by="ada", allow_active=True)
    now = task(first.task_id)
    assert (done.task_id, done.decision.code, now.ram_count) == (now.id, 5, 700)
    assert SplitRule.parse(now.split_rule).get_int("NG") == 7
    drive(Pilot())
    assert status(now.id) == "done"


def test_a_user_has_so_many_active_tasks() -> None:
    for number in range(3):
        submit(parameters(f"lab.{number}", reads("lab.none")))
    params = submitting.check(parameters("lab.x", reads("lab.none"), waitInput=True), ADA)
    with pytest.raises(submitting.SubmissionRefusedError, match="You have 3 active tasks, and at most 2 are allowed"):
        submitting.submit(params, by="ada", most_active=2)
    assert submitting.submit(params, by="ada", most_active=3).is_new


def test_two_tasks_that_came_at_once_under_a_name_that_is_unique() -> None:
    first = submit(parameters("lab.t", reads("lab.none"), uniqueTaskName=True))
    second = submit(parameters("lab.t", reads("lab.none"), uniqueTaskName=True))
    refiner.run()
    assert (status(first), status(second)) == ("defined", "toabort")
    assert f"task {first} of ada has the same name" in (task(second).error_dialog or "")
    settle()


# --- children ---


def chain(**more: Any) -> list[int]:
    add_dataset("lab.in", 4)
    first = submit(parameters("lab.a", reads("lab.in"), nFilesPerJob=1, maxAttempt=1))
    second = submit(parameters("lab.b", reads("lab.a.out"), nFilesPerJob=1, **more), parent=first)
    third = submit(parameters("lab.c", reads("lab.b.out"), nFilesPerJob=1, **more), parent=second)
    return [first, second, third]


@pytest.mark.parametrize("waits", [True, False])
def test_children_follow_a_parent_that_is_tried_again(waits: bool) -> None:
    tasks = chain(noWaitParent=not waits)
    drive(Pilot(failing_on("lab.in.00002")))
    assert [status(t) for t in tasks] == ["finished", "finished", "finished"]
    assert command(tasks[0], "retry").answer == f"{AGAIN}; 1 child task follows"
    drive(Pilot())
    assert [status(t) for t in tasks] == ["done", "done", "done"]
    assert [dataset(t).files_finished for t in tasks] == [4, 4, 4]
    assert [len(jobs(t)) for t in tasks] == [5, 4, 4]


def test_a_sole_retry_leaves_the_children_alone() -> None:
    tasks = chain()
    drive(Pilot(failing_on("lab.in.00002")))
    assert command(tasks[0], "retry", parameters={"sole": True}).answer == AGAIN
    drive(Pilot())
    assert [status(t) for t in tasks] == ["done", "finished", "finished"]
    assert [len(jobs(t)) for t in tasks] == [5, 3, 3]


def test_children_that_are_hopeless_or_read_nothing_of_the_parent_are_left_alone() -> None:
    tasks = chain()
    add_dataset("lab.other", 1)
    beside = submit(parameters("lab.d", reads("lab.other"), nFilesPerJob=1), parent=tasks[0])
    drive(Pilot(failing_on("lab.in.00002")))
    task_moves.move_task(tasks[1], "toincexec", by="test")
    task_moves.move_task(tasks[1], "toabort", by="test")
    settle()
    assert status(tasks[1]) == "aborted"
    command(tasks[0], "retry")
    drive(Pilot())
    assert [status(t) for t in tasks] == ["done", "aborted", "finished"]
    assert Command.objects.get(task_id=beside).answer == "left alone: it is finished"
    assert not Command.objects.filter(task_id=tasks[1]).exists()


def test_a_child_at_work_takes_what_its_parent_makes_in_addition() -> None:
    tasks = chain(noWaitParent=True)[:2]
    pilot, held = Pilot(failing_on("lab.in.00002")), []
    while status(tasks[0]) != "finished":
        agents_turn()
        for job in pilot.fetch(10):
            pilot.start(job)
            if inputs_of(job)[0].startswith("lab.in"):
                pilot.end(job)
            else:
                held.append(job)
    command(tasks[0], "retry")
    settle()
    follows = Command.objects.get(task_id=tasks[1])
    assert follows.answer == f"1 input grows with the outputs of task {tasks[0]}"
    for job in held:
        pilot.end(job)
    drive(Pilot())
    assert [status(t) for t in tasks] == ["done", "done"]
    assert (dataset(tasks[1]).files_finished, task(tasks[1]).attempt) == (4, 0)
