"""Scouts: ten chunks run first, are measured and judged, and the rest follows or does not."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from brokerage_app.models import Queue
from tasks_app.agents import adder, commando, feeder, job_generator, post_processor, refiner
from tasks_app.agents.watchdogs import second_look
from tasks_app.dispatch.reports import update_job
from tasks_app.models import CatalogueDataset, ScoutReport, Task, TaskStatusLog
from tasks_app.outcomes.recovery import recover
from tasks_app.submission import command_queue
from tests.flow import driving
from tests.flow.driving import (
    add_dataset,
    add_files,
    dataset,
    jobs,
    look_again,
    reads,
    settle,
    states,
    status,
    submit,
    task,
    template,
)
from tests.flow.pilot import Job, Pilot, drive, failing_on, report, stored

pytestmark = pytest.mark.usefixtures("books")
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
MB = 1024
SCOUTS = {"official": False, "skipScout": False}


def parameters(name: str, *items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return driving.parameters(name, *items, **{**SCOUTS, **more})


def scouting_task(files: int = 15, **more: Any) -> int:
    add_dataset("lab.in", files, size=2**20, events=100)
    made = submit(parameters("lab.t", reads("lab.in"), **{"nFilesPerJob": 1, **more}))
    settle()
    return made


def finish(found: Iterable[Job], seconds: int = 1800, outcome: str = "finished", **measures: Any) -> None:
    """Jobs that ran for so long end, with these measures."""
    for job in found:
        update_job(report(job, "running", start_time=BEGAN))
        update_job(
            report(
                job,
                outcome,
                outputs=stored(job, fsize=2**20) if outcome == "finished" else {},
                measures=measures,
                end_time=BEGAN + timedelta(seconds=seconds),
            )
        )
    adder.run()


def steps(task_id: int) -> list[str]:
    return list(TaskStatusLog.objects.filter(task_id=task_id).order_by("id").values_list("status", flat=True))


def test_ten_jobs_scout_and_the_rest_follows_with_what_they_measured() -> None:
    made = scouting_task()
    scouts = jobs(made)
    assert (status(made), len(scouts), dataset(made).files_to_be_used) == ("scouting", 10, 10)
    assert {(job.current_priority, job.special_handling) for job in scouts} == {(901, "sj")}
    finish(Pilot().fetch(20), max_pss_kb=1500 * MB, cpu_time_s=1500)
    settle()
    seen = task(made)
    assert (seen.status, seen.ram_count, seen.walltime_unit) == ("running", 1650, "kSI2kseconds")
    assert (seen.out_disk_count, seen.out_disk_unit) == (1024, "kB")
    # (1 800 − 600 s) × 10 HS06 × 0.9 ÷ 100 events × 1.5
    assert (seen.cpu_time, seen.cpu_time_unit) == (162, "HS06sPerEvent")
    assert "US=3" in (seen.split_rule or "")
    assert (dataset(made).files_to_be_used, len(jobs(made))) == (15, 15)
    later = jobs(made)[10:]
    assert {(job.special_handling, job.min_ram_mb) for job in later} == {(None, 1485)}
    # int(500 − serial / 5): the more jobs a user has, the later the next ones come.
    assert [job.current_priority for job in later] == [500, 499, 499, 499, 499]
    assert steps(made)[-4:] == ["ready", "scouting", "scouted", "running"]
    (written,) = ScoutReport.objects.filter(task_id=made)
    assert (written.outcome, written.scouts, written.sample) == ("passed", True, 10)
    assert written.detail.startswith("10 of 10 input files of scouts succeeded (all files of the scouts are finished")
    assert written.presets["ram_count"] == 1000 and written.measured["ram_count"] == 1650
    assert written.measured["ram_used"] == 1500
    drive(Pilot())
    assert status(made) == "done"


def test_merge_jobs_get_the_memory_and_the_time_that_those_of_the_scouts_took() -> None:
    spec = {"transPath": "merge", "jobParameters": "${TRN_OUTPUT0} ${OUTPUT0} ${TRN_LOG0}"}
    Queue.objects.update(max_walltime_s=40_000)
    made = scouting_task(30, mergeOutput=True, mergeSpec=spec)
    pilot = Pilot()
    finish(pilot.fetch(20), max_pss_kb=500 * MB)
    settle()
    (first,) = jobs(made, processing_type="pmerge")
    assert (first.min_ram_mb, len(driving.inputs(first.id))) == (1800, 20), "nothing is known of merge jobs yet"
    # 20 000 s for 20 MB, and half as much again
    finish(pilot.fetch(20), seconds=21_000, max_pss_kb=3000 * MB, cpu_time_s=20_000)
    settle()
    seen = task(made)
    assert (seen.merge_ram_count, seen.merge_ram_unit) == (3300, "MB")
    assert (seen.merge_walltime, seen.merge_walltime_unit) == (1500, "kSI2kseconds")
    later = pilot.fetch(20)
    assert len(later) == 20
    finish(later, max_pss_kb=500 * MB)
    settle()
    merges = [job for job in jobs(made, processing_type="pmerge") if job.id != first.id]
    assert {job.min_ram_mb for job in merges} == {2970}
    assert {len(driving.inputs(job.id)) for job in merges} == {26, 14}, "26 MB take 39 000 s and the base"
    drive(pilot)
    assert status(made) == "done"


def test_a_task_no_larger_than_its_scouts_has_none() -> None:
    made = scouting_task(10)
    assert (status(made), len(jobs(made)), dataset(made).files_to_be_used) == ("running", 10, 10)
    assert {job.special_handling for job in jobs(made)} == {None}
    assert "US=1" in (task(made).split_rule or "")
    drive(Pilot())
    assert status(made) == "done"


def test_a_task_that_skips_its_scouts_runs_at_once() -> None:
    made = scouting_task(15, skipScout=True, official=True)
    assert (status(made), len(jobs(made))) == ("running", 15)


def test_scouts_get_ten_jobs_worth_of_files_or_events() -> None:
    add_dataset("lab.pairs", 25)
    pairs = submit(parameters("lab.a", reads("lab.pairs"), nFilesPerJob=2))
    slices = submit(
        parameters("lab.b", template("number", "${FIRSTEVENT}"), noInput=True, nEvents=200, nEventsPerJob=10)
    )
    settle()
    assert [(status(made), len(jobs(made))) for made in (pairs, slices)] == [("scouting", 10), ("scouting", 10)]
    assert dataset(pairs).files_to_be_used == 20
    drive(Pilot())
    assert [(status(made), len(jobs(made))) for made in (pairs, slices)] == [("done", 13), ("done", 20)]


def test_scouts_without_a_size_read_one_file_each() -> None:
    made = scouting_task(15, nFilesPerJob=None)
    assert {job.input_files for job in jobs(made)} == {1}
    drive(Pilot())
    assert status(made) == "done"
    assert sorted(job.input_files for job in jobs(made)) == [1] * 10 + [5]


def test_scouts_that_fail_are_tried_again_as_scouts_and_some_may_fail_for_good() -> None:
    made = scouting_task(15, maxAttempt=2)
    pilot = Pilot(failing_on("lab.in.00001", "lab.in.00002"))
    pilot.work(10)
    settle()
    assert (status(made), states(made)) == ("scouting", {"finished": 8, "failed": 2, "activated": 2})
    assert {job.special_handling for job in jobs(made)} == {"sj"}
    drive(pilot)
    assert status(made) == "finished"
    assert ScoutReport.objects.get(scouts=True).detail.startswith(
        "8 of 10 input files of scouts succeeded, 2 failed permanently"
    )
    assert dataset(made).files_finished == 13


def test_a_task_whose_scouts_all_fail_is_broken_and_keeps_the_rest_of_its_files() -> None:
    made = scouting_task(15, maxAttempt=1)
    drive(Pilot(lambda job: "failed"))
    assert (status(made), len(jobs(made))) == ("broken", 10)
    assert task(made).error_dialog == "no scout job finished, 10 input files failed"
    assert ScoutReport.objects.get(task_id=made).code == "scouts_none_finished"


def test_too_few_scouts_that_succeed_break_a_task_that_asks_for_more() -> None:
    made = scouting_task(15, maxAttempt=1, scoutSuccessRate=8)
    drive(Pilot(failing_on(*(f"lab.in.{n:05d}" for n in range(3)))))
    assert status(made) == "broken"
    assert task(made).error_dialog == "7 of 10 input files of scouts succeeded (70 %), 80 % are needed"


@pytest.mark.parametrize("more", [{}, {"respectLB": True}], ids=["as they come", "in an order of their own"])
def test_half_of_the_scouts_are_enough_after_ten_minutes(more: dict[str, Any]) -> None:
    made = scouting_task(**more)
    now = datetime.now(UTC)
    post_processor.run(now=now)
    pilot = Pilot()
    finish(pilot.fetch(4))
    assert not post_processor.run(now=now + timedelta(minutes=10)).items
    finish(pilot.fetch(1))
    assert not post_processor.run(now=now + timedelta(minutes=19)).items
    assert post_processor.run(now=now + timedelta(minutes=20)).items == 1
    assert (status(made), dataset(made).files_to_be_used) == ("running", 15)
    assert "half of the scouts finished" in ScoutReport.objects.get(task_id=made).detail
    drive(pilot)
    assert status(made) == "done"


def test_a_command_has_scouts_judged_at_once() -> None:
    made = scouting_task()
    pilot = Pilot()
    finish(pilot.fetch(1))
    settle()
    assert status(made) == "scouting"
    Task.objects.filter(pk=made).update(walltime_unit="ava")
    settle()
    assert (status(made), task(made).walltime_unit, len(jobs(made))) == ("running", "kSI2kseconds", 15)
    assert "a command asked for it" in ScoutReport.objects.get(task_id=made).detail


def test_scouts_that_are_not_what_was_declared_exhaust_the_task_until_somebody_looks() -> None:
    Queue.objects.update(max_memory_mb=16_000)
    made = scouting_task(40, ramUnit="MBPerCore")
    finish(Pilot().fetch(10), max_pss_kb=8000 * MB)
    settle()
    seen = task(made)
    assert (seen.status, seen.old_status, seen.ram_count) == ("exhausted", "scouting", 8800)
    assert seen.error_dialog == "scouts need 8800 MB a core, 1000 MB were declared, the limit is 4000 MB"
    assert (dataset(made).files_to_be_used, len(jobs(made))) == (40, 10)
    assert "US=3" in (seen.split_rule or "")
    command_queue.give_command(made, "retry", by="ada", reason="it is so")
    commando.run()
    drive(Pilot())
    assert (status(made), dataset(made).files_finished, len(jobs(made))) == ("done", 40, 40)


def test_scouts_of_a_growing_input_get_no_more_than_their_share() -> None:
    add_dataset("lab.in", 12, open=True)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, runUntilClosed=True))
    settle()
    assert (status(made), len(jobs(made)), dataset(made).files_to_be_used) == ("scouting", 10, 10)
    add_files("lab.in", range(12, 30))
    look_again()
    settle()
    assert (status(made), len(jobs(made)), dataset(made).files_to_be_used) == ("scouting", 10, 10)
    pilot = Pilot()
    finish(pilot.fetch(10))
    settle()
    CatalogueDataset.objects.update(open=False)
    look_again()
    drive(pilot)
    assert (status(made), dataset(made).files_finished) == ("done", 30)
    assert steps(made).count("scouting") == 1


def test_a_pause_while_scouting_ends_in_scouting() -> None:
    made = scouting_task()
    for name in ("pause", "resume"):
        command_queue.give_command(made, name, by="ada")
        commando.run()
    assert status(made) == "scouting"
    drive(Pilot())
    assert status(made) == "done"


def finished_while_scouting(done: int, files: int = 15, **more: Any) -> int:
    """A task that was told to finish when so many of its scouts had succeeded."""
    made = scouting_task(files, **more)
    finish(Pilot().fetch(done))
    settle()
    assert status(made) == "scouting"
    command_queue.give_command(made, "finish", by="ada")
    settle()
    assert status(made) == "finished"
    return made


def released(made: int) -> tuple[int, int, int]:
    row = dataset(made)
    return row.files, row.files_to_be_used, row.files_used


def test_a_task_that_was_finished_while_it_scouted_makes_a_lost_output_again_without_scouts() -> None:
    made = finished_while_scouting(1, scoutSuccessRate=8)
    assert (released(made), task(made).progress) == ((15, 15, 15), 6)
    recover(made, ["lab.t.000001.root"], by="olga")
    settle()
    assert (status(made), released(made), states(made)["activated"]) == ("running", (15, 15, 15), 1)
    drive(Pilot())
    assert (status(made), dataset(made).files_finished, len(jobs(made))) == ("finished", 1, 11)
    assert steps(made).count("scouting") == 1 and not ScoutReport.objects.filter(scouts=True).exists()


def test_a_task_that_was_finished_while_it_scouted_scouts_again_when_it_is_tried_again() -> None:
    made = finished_while_scouting(3)
    recover(made, ["lab.t.000001.root"], by="olga")
    drive(Pilot())
    command_queue.give_command(made, "retry", by="ada")
    settle()
    assert (status(made), released(made), states(made)["activated"]) == ("scouting", (15, 10, 10), 7)
    drive(Pilot())
    assert (status(made), dataset(made).files_finished) == ("done", 15)
    assert ScoutReport.objects.filter(scouts=True).count() == 1


def ended_while_scouting_what_grows(command: str) -> int:
    """A task that was ended by a command when two of its scouts had succeeded and more of its input had come."""
    add_dataset("lab.in", 12, open=True)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, runUntilClosed=True))
    settle()
    finish(Pilot().fetch(2))
    add_files("lab.in", range(12, 40))
    look_again()
    settle()
    command_queue.give_command(made, command, by="ada")
    settle()
    return made


@pytest.mark.parametrize(("command", "ended"), [("kill", "aborted"), ("finish", "finished")])
def test_a_task_that_scouted_a_growing_input_scouts_again_when_it_is_tried_again(command: str, ended: str) -> None:
    made = ended_while_scouting_what_grows(command)
    assert status(made) == ended
    command_queue.give_command(made, "retry", by="ada")
    settle()
    assert (status(made), released(made), states(made)["activated"]) == ("scouting", (40, 10, 10), 8)
    drive(Pilot())
    assert (status(made), dataset(made).files_finished) == ("done", 40)


@pytest.mark.parametrize(("command", "ended", "processed"), [("kill", "done", 40), ("finish", "finished", 2)])
def test_a_lost_output_of_a_task_that_scouted_a_growing_input_brings_back_only_what_was_not_given_up(
    command: str, ended: str, processed: int
) -> None:
    made = ended_while_scouting_what_grows(command)
    recover(made, ["lab.t.000001.root"], by="olga")
    settle()
    assert states(made)["activated"] == (9 if command == "kill" else 1), (
        "an aborted task scouts on, a finished one has ended"
    )
    drive(Pilot())
    assert (status(made), dataset(made).files_finished) == (ended, processed)


def measured(made: int) -> list[tuple[str, int]]:
    return list(ScoutReport.objects.filter(task_id=made).order_by("id").values_list("outcome", "finished_jobs"))


def test_a_running_task_is_measured_from_its_first_job_on_and_again_at_five() -> None:
    made = scouting_task(8)
    pilot, now = Pilot(), datetime.now(UTC)
    second_look.run(now=now)
    assert measured(made) == []
    finish(pilot.fetch(2), max_pss_kb=1200 * MB)
    second_look.run(now=now)
    assert (measured(made), task(made).ram_count) == ([("measured", 2)], 1320)
    assert task(made).assessment_time == now
    finish(pilot.fetch(4), max_pss_kb=2400 * MB)
    second_look.run(now=now + timedelta(minutes=9))
    assert (len(measured(made)), task(made).walltime_unit) == (1, None)
    second_look.run(now=now + timedelta(minutes=10))
    assert (measured(made), task(made).ram_count) == ([("measured", 2), ("measured", 6)], 2640)
    second_look.run(now=now + timedelta(minutes=30))
    assert len(measured(made)) == 2
    drive(pilot)
    assert status(made) == "done"


def test_the_second_look_exhausts_a_task_that_grew_too_large() -> None:
    Queue.objects.update(max_memory_mb=16_000)
    add_dataset("lab.in", 40)
    more = {"ramUnit": "MBPerCore", "skipScout": True, "official": True, "nFilesPerJob": 1}
    made = submit(parameters("lab.t", reads("lab.in"), **more))
    refiner.run()
    feeder.run()
    job_generator.run(jobs_a_task=5)
    finish(Pilot().fetch(5), max_pss_kb=8000 * MB)
    second_look.run(now=datetime.now(UTC))
    assert (status(made), task(made).old_status) == ("exhausted", "running")
    assert measured(made) == [("exhausted", 5)]
    assert "the limit is 4000 MB" in (task(made).error_dialog or "")
