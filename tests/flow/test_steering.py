"""Commands that steer a task at work: pause and resume while it waits, reassign, avalanche, release, rescue."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from brokerage_app.models import Queue
from tasks_app.agents import commando, feeder, refiner
from tasks_app.lifecycle import task_moves
from tasks_app.models import Command, Dataset, TaskStatusLog
from tasks_app.params.splitrule import SplitRule
from tasks_app.submission import command_queue
from tests.flow.driving import (
    SITE,
    add_dataset,
    add_queue,
    dataset,
    jobs,
    parameters,
    reads,
    settle,
    states,
    status,
    submit,
    task,
)
from tests.flow.pilot import Pilot, drive, failing_on
from tests.flow.test_commands import command, running_task
from tests.flow.test_nuclei import add_nucleus

pytestmark = pytest.mark.usefixtures("books")
LATER = timedelta(minutes=6)


def told(task_id: int) -> list[str]:
    """The reasons in the task's status log, the newest last."""
    return list(TaskStatusLog.objects.filter(task_id=task_id).order_by("id").values_list("reason", flat=True))


# --- pause and resume ---


def test_a_task_paused_while_it_waits_returns_to_what_it_did_before_it_waited() -> None:
    made, pilot = running_task(at_pilot=0)
    task_moves.move_task(made, "pending", by="test", remember=True)
    command(made, "pause")
    assert (status(made), task(made).old_status) == ("paused", "running")
    command(made, "resume")
    assert (status(made), task(made).old_status) == ("running", None)
    drive(pilot)


def test_a_throttled_task_can_be_paused_and_resumed_and_remembers_nothing() -> None:
    made, pilot = running_task(at_pilot=0)
    task_moves.move_task(made, "throttled", by="test", remember=True)
    command(made, "pause")
    command(made, "resume")
    assert (status(made), task(made).old_status) == ("running", None)
    task_moves.move_task(made, "throttled", by="test", remember=True)
    command(made, "resume")
    assert (status(made), task(made).old_status) == ("running", None)
    drive(pilot)
    assert status(made) == "done"


def test_commands_are_obeyed_in_the_order_in_which_a_task_got_them() -> None:
    made, pilot = running_task()
    for name in ("pause", "kill"):
        command_queue.give_command(made, name, by="ada")
    assert commando.run().items == 2
    assert list(Command.objects.order_by("id").values_list("name", "status")) == [("pause", "done"), ("kill", "done")]
    for job in pilot.ran:
        pilot.end(job, "failed")
    settle()
    assert status(made) == "aborted"


def test_a_task_that_is_paused_and_resumed_at_once_goes_on() -> None:
    made, pilot = running_task()
    for name in ("pause", "resume", "pause", "resume"):
        command_queue.give_command(made, name, by="ada")
    assert commando.run().items == 4
    assert set(Command.objects.values_list("status", flat=True)) == {"done"}
    assert (status(made), task(made).old_status, states(made)) == ("running", None, {"running": 2, "activated": 4})
    for job in pilot.ran:
        pilot.end(job, "finished")
    drive(pilot)
    assert status(made) == "done"


@pytest.mark.parametrize("first", ["kill", "finish"])
def test_a_retry_that_follows_the_end_of_a_task_at_once_says_what_to_wait_for(first: str) -> None:
    made, _ = running_task(prodSourceLabel="user")
    command_queue.give_command(made, first, by="ada")
    wait = "wait until it has ended, then retry is accepted"
    with pytest.raises(
        command_queue.CommandRefusedError, match=f"is running, with {first} still to be carried out; {wait}"
    ):
        command_queue.give_command(made, "retry", by="ada")
    commando.run()
    with pytest.raises(command_queue.CommandRefusedError, match=f"is {status(made)}; {wait}"):
        command_queue.give_command(made, "retry", by="ada")
    assert Command.objects.get().status == "done"


# --- finish ---


def test_a_task_told_to_finish_is_finished_though_it_wanted_to_fail_below_its_goal() -> None:
    made, pilot = running_task(failWhenGoalUnreached=True)
    pilot.end(pilot.ran[0], "finished")
    settle()
    command(made, "finish")
    assert not SplitRule.parse(task(made).split_rule).flag("FG")
    pilot.end(pilot.ran[1], "failed")
    settle()
    assert status(made) == "finished"


def test_a_finish_waits_for_jobs_whose_outputs_are_on_the_way() -> None:
    made, pilot = running_task(at_pilot=1)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET jobstatus = 'transferring' WHERE jobstatus = 'running'")
    command(made, "finish", parameters={"soft": True})
    settle_commando()
    assert status(made) == "finishing"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET jobstatus = 'running' WHERE jobstatus = 'transferring'")
    pilot.end(pilot.ran[0], "finished")
    settle()
    assert status(made) == "finished"


def settle_commando() -> None:
    for _ in range(3):
        commando.run()


# --- reassign ---


def test_a_reassigned_task_gets_its_jobs_at_the_other_site() -> None:
    add_queue("SITE_B", status="offline")
    made, pilot = running_task()
    Queue.objects.update(status="online")
    given = command(made, "reassign", parameters={"site": "SITE_B"})
    assert given.answer == "4 queued jobs were closed, 2 running ones were told to stop"
    assert status(made) == "toreassign"
    for job in pilot.ran:
        assert pilot.start(job) == "tobekilled"
        pilot.end(job, "failed")
    settle()
    assert (status(made), task(made).site) == ("running", "SITE_B")
    assert {job.site for job in jobs(made) if job.status == "activated"} == {"SITE_B"}
    drive(Pilot(site="SITE_B"))
    assert (status(made), dataset(made).files_finished) == ("done", 6)
    assert "reassigned to site SITE_B" in told(made)


def test_a_soft_reassignment_lets_running_jobs_end_where_they_are() -> None:
    add_queue("SITE_B")
    made, pilot = running_task(site=SITE)
    command(made, "reassign", parameters={"site": "SITE_B", "mode": "soft"})
    assert (status(made), task(made).site) == ("running", "SITE_B")
    assert states(made) == {"closed": 4, "running": 2}
    for job in pilot.ran:
        pilot.end(job, "finished")
    drive(Pilot(site="SITE_B"))
    assert status(made) == "done"


def test_a_reassignment_may_leave_all_jobs_and_the_state() -> None:
    made, pilot = running_task()
    add_nucleus("NUCLEUS_A")
    task_moves.move_task(made, "pending", by="test", remember=True)
    command(made, "reassign", parameters={"nucleus": "NUCLEUS_A", "mode": "nokill", "back": True})
    assert (task(made).nucleus, states(made)) == ("NUCLEUS_A", {"activated": 4, "running": 2})
    settle()
    assert status(made) == "running", "its outputs have got places at the nucleus, and it is back"
    for job in pilot.ran:
        pilot.end(job, "finished")
    drive(pilot)
    assert status(made) == "done"


def test_a_task_reassigned_before_it_was_fed_is_fed() -> None:
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    add_dataset("lab.in", 2)
    refiner.run()
    assert status(made) == "defined"
    command(made, "reassign", parameters={"site": SITE})
    assert status(made) == "defined"
    drive(Pilot())
    assert status(made) == "done"


def test_a_task_whose_parameters_wait_to_be_refined_is_not_reassigned() -> None:
    parent = submit(parameters("lab.p", reads("lab.in")))
    made = submit(parameters("lab.t", reads("lab.p.out")), parent=parent)
    refiner.run()
    assert (status(made), task(made).old_status) == ("pending", "registered")
    with pytest.raises(
        command_queue.CommandRefusedError, match="will then be registered: it can be reassigned once it makes jobs"
    ):
        command(made, "reassign", parameters={"site": SITE})
    assert status(made) == "pending"


# --- avalanche, release ---


def test_an_avalanche_marks_a_scouting_task_and_leaves_its_state() -> None:
    add_dataset("lab.in", 2)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    refiner.run()
    feeder.run()
    task_moves.move_task(made, "scouting", by="test")
    command(made, "avalanche")
    assert (status(made), task(made).walltime_unit) == ("scouting", "ava")
    assert told(made)[-1] == "scouts skipped by ada: because"
    command(made, "kill")
    settle()


def test_a_release_uses_files_that_are_being_staged() -> None:
    made, pilot = running_task(at_pilot=0)
    with pytest.raises(command_queue.CommandRefusedError, match="is being staged"):
        command(made, "release")
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO jedi_dataset_contents (jeditaskid, datasetid, lfn, type, status, attemptnr, maxattempt, keeptrack)
               SELECT jeditaskid, datasetid, 'lab.staged', 'input', 'staging', 0, 3, 1 FROM jedi_datasets
                WHERE jeditaskid = %s AND type = 'input'""",
            [made],
        )
    assert command(made, "release").answer == "1 file is used as it is"
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jedi_dataset_contents WHERE lfn = 'lab.staged' AND status = 'pending'")
        assert cursor.rowcount == 1
    drive(pilot)


# --- rescue ---


def test_a_task_that_stays_long_in_the_midst_of_a_command_gets_it_again() -> None:
    made, pilot = running_task()
    task_moves.move_task(made, "aborting", by="somebody that died")
    settle_commando()
    assert states(made) == {"activated": 4, "running": 2}
    commando.run(now=timezone.now() + LATER)
    assert states(made) == {"cancelled": 4, "running": 2}
    assert status(made) == "aborting"
    for job in pilot.ran:
        pilot.end(job, "failed")
    settle()
    assert status(made) == "aborted"


def test_a_watchdog_that_only_moves_a_task_to_finishing_is_enough() -> None:
    made, pilot = running_task(at_pilot=1)
    task_moves.move_task(made, "exhausted", by="test", remember=True)
    task_moves.move_task(made, "finishing", by="a watchdog")
    later = timezone.now() + LATER
    commando.run(now=later)
    assert states(made) == {"cancelled": 5, "running": 1}
    # Not at every pass from then on.
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET commandtopilot = NULL WHERE jobstatus = 'running'")
    commando.run(now=later + timedelta(minutes=1))
    assert pilot.start(pilot.ran[0]) == "NULL"
    pilot.end(pilot.ran[0], "finished")
    settle()
    assert status(made) == "finished"


def test_a_retry_that_was_cut_off_is_carried_out_or_taken_back() -> None:
    made, pilot = running_task(files=2, at_pilot=0, maxAttempt=1)
    pilot.plan = lambda job: "failed" if "00001" in job["inFiles"] else "finished"
    drive(pilot)
    task_moves.move_task(made, "toretry", by="somebody that died", remember=True)
    commando.run(now=timezone.now() + LATER)
    assert status(made) == "ready"
    pilot.plan = lambda job: "finished"
    drive(pilot)
    assert status(made) == "done"
    Dataset.objects.filter(task_id=made).exclude(type="input").update(state="closed")


def test_a_cut_off_retry_of_a_task_with_nothing_left_returns_to_where_it_was() -> None:
    add_dataset("lab.p.in", 2)
    parent = submit(parameters("lab.p", reads("lab.p.in"), nFilesPerJob=1, maxAttempt=1))
    made = submit(parameters("lab.c", reads("lab.p.out"), nFilesPerJob=1, noWaitParent=True), parent=parent)
    drive(Pilot(failing_on("lab.p.in.00001")))
    assert status(made) == "finished"
    task_moves.move_task(made, "toretry", by="somebody that died", remember=True)
    commando.run(now=timezone.now() + LATER)
    assert status(made) == "finished"
    assert "no file to try again" in (task(made).error_dialog or "")
