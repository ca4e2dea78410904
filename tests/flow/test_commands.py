"""Commands of users on tasks at work: kill, finish, pause, resume, retry."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from django.utils import timezone

from brokerage_app.cases.case import grid_of
from tasks_app.agents import commando, feeder, refiner
from tasks_app.domain.states import TASK_MOVES, TaskStatus
from tasks_app.domain.task_commands import COMMAND_ACCEPTED_IN, MORE_ATTEMPTS_IN, TaskCommand
from tasks_app.explaining.queries import facts_of
from tasks_app.explaining.rules.answers import first_no
from tasks_app.explaining.rules.gates import walk
from tasks_app.generation import task_turns, throttle
from tasks_app.generation.generation_pass import GenerationPass
from tasks_app.inputs import feeding_turns
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import Command, JobStatusLog, Task
from tasks_app.submission import assignment, command_queue, refining_turns
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
    wake,
)
from tests.flow.pilot import Pilot, drive, failing_on

pytestmark = pytest.mark.usefixtures("books")


def running_task(files: int = 6, at_pilot: int = 2, name: str = "lab.t", **more: object) -> tuple[int, Pilot]:
    """A task with one job a file, of which some run at a pilot."""
    add_dataset(f"{name}.in", files)
    made = submit(parameters(name, reads(f"{name}.in"), **{"nFilesPerJob": 1, **more}))
    settle()
    pilot = Pilot()
    for job in pilot.fetch(at_pilot):
        pilot.start(job)
    return made, pilot


def command(task_id: int, name: str, **more: object) -> Command:
    given = command_queue.give_command(task_id, name, by="ada", reason="because", **more)
    commando.run()
    given.refresh_from_db()
    return given


def test_a_kill_cancels_queued_jobs_at_once_and_tells_pilots_to_stop() -> None:
    made, pilot = running_task()
    given = command(made, "kill")
    assert (given.status, given.answer) == ("done", "4 queued jobs were cancelled, 2 running ones were told to stop")
    assert states(made) == {"cancelled": 4, "running": 2}
    assert status(made) == "aborting"
    assert pilot.start(pilot.ran[0]) == "tobekilled"


def test_a_killed_task_is_aborted_only_when_no_job_is_open() -> None:
    made, pilot = running_task()
    command(made, "kill")
    settle()
    assert status(made) == "aborting"
    pilot.end(pilot.ran[0], "failed")
    settle()
    assert status(made) == "aborting"
    pilot.end(pilot.ran[1], "finished")
    settle()
    assert status(made) == "aborted"
    assert states(made) == {"cancelled": 5, "finished": 1}
    assert dataset(made).files_finished == 1


def test_a_killed_job_that_fails_is_cancelled_and_counts_as_no_failure() -> None:
    made, pilot = running_task(files=2)
    command(made, "kill")
    for job in pilot.ran:
        pilot.end(job, "failed")
    settle()
    assert states(made) == {"cancelled": 2}
    assert status(made) == "aborted"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("kill", "the task was killed by ada: because"),
        ("finish", "the task was finished early by ada: because"),
        ("reassign", "the task was reassigned by ada: because"),
    ],
)
def test_jobs_that_end_with_a_command_to_their_task_say_who_gave_it_and_why(name: str, said: str) -> None:
    made, pilot = running_task(files=2, at_pilot=1)
    command(made, name)
    pilot.end(pilot.ran[0], "failed")
    settle()
    ended = [job for job in jobs(made) if job.status in ("cancelled", "closed")]
    assert len(ended) == 2 and {job.task_buffer_error_diag for job in ended} == {said}
    reasons = JobStatusLog.objects.filter(job_id__in=[job.id for job in ended], status__in=("cancelled", "closed"))
    assert set(reasons.values_list("reason", flat=True)) == {said}


def test_a_task_can_be_killed_before_it_has_any_dataset() -> None:
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    command(made, "kill")
    settle()
    assert status(made) == "aborted"
    assert not jobs(made)


def test_a_hard_finish_stops_running_jobs_and_keeps_what_is_done() -> None:
    made, pilot = running_task()
    pilot.end(pilot.ran[0], "finished")
    settle()
    given = command(made, "finish")
    assert given.answer == "4 queued jobs were cancelled, 1 running one was told to stop"
    pilot.end(pilot.ran[1], "failed")
    settle()
    assert status(made) == "finished"
    row = dataset(made)
    assert (row.files, row.files_finished, row.files_failed, row.files_used) == (6, 1, 5, 6)


def test_a_soft_finish_lets_running_jobs_end() -> None:
    made, pilot = running_task()
    given = command(made, "finish", parameters={"soft": True})
    assert given.answer.startswith(
        "4 queued jobs were cancelled; no input has been processed yet: the task will end failed"
    )
    assert pilot.start(pilot.ran[0]) == "NULL"
    for job in pilot.ran:
        pilot.end(job, "finished")
    settle()
    assert status(made) == "finished"
    assert dataset(made).files_finished == 2


def test_a_task_told_to_finish_makes_no_more_jobs() -> None:
    made, pilot = running_task()
    command(made, "finish", parameters={"soft": True})
    before = len(jobs(made))
    pilot.end(pilot.ran[0], "failed")
    settle()
    assert len(jobs(made)) == before
    pilot.end(pilot.ran[1], "finished")
    settle()
    assert status(made) == "finished"


def test_a_paused_task_gives_no_jobs_to_pilots_and_goes_on_when_resumed() -> None:
    made, pilot = running_task()
    assert command(made, "pause").answer == "4 queued jobs are held back"
    assert status(made) == "paused"
    assert not pilot.fetch(10)
    for job in pilot.ran:
        pilot.end(job, "failed")
    settle()
    assert states(made) == {"throttled": 4, "failed": 2}
    assert command(made, "resume").answer == "4 jobs are queued again"
    assert status(made) == "running"
    drive(pilot)
    assert status(made) == "done"


def test_a_paused_task_can_be_killed() -> None:
    made, _ = running_task(at_pilot=0)
    command(made, "pause")
    command(made, "kill")
    settle()
    assert status(made) == "aborted"
    assert states(made) == {"cancelled": 6}


def test_a_pause_holds_against_an_agent_that_was_at_work_on_the_task() -> None:
    waiting = submit(parameters("lab.p", reads("lab.none"), nFilesPerJob=1))
    made = submit(parameters("lab.t", reads("lab.none2"), nFilesPerJob=1), parent=waiting)
    ((task_id, fence),) = [
        claim for claim in claims.claim_tasks("a slow refiner", ["registered"], 10) if claim[0] == made
    ]
    command(made, "pause")
    with pytest.raises(claims.LostClaimError):
        refining_turns.refine_task(task_id, fence, queues_and_shares=assignment.Policy.read())
    assert status(made) == "paused"


def generation_pass() -> GenerationPass:
    now = timezone.now()
    return replace(GenerationPass.of(grid_of([]), now), throttle=throttle.decide(now, "true"))


def test_a_pause_during_feeding_or_generation_stands() -> None:
    for name, state, turn in (
        ("lab.a", "defined", lambda t, f: feeding_turns.feed_task(t, f, now=timezone.now(), portion=50_000)),
        ("lab.b", "ready", lambda t, f: task_turns.take_turn(Task.objects.get(pk=t), f, generation_pass(), 10)),
    ):
        add_dataset(f"{name}.in", 2)
        made = submit(parameters(name, reads(f"{name}.in"), nFilesPerJob=1))
        refiner.run()
        if state == "ready":
            wake()
            feeder.run()
        ((task_id, fence),) = claims.claim_tasks("a slow agent", [state], 10)
        assert task_id == made
        command(made, "pause")
        with pytest.raises(claims.LostClaimError):
            turn(task_id, fence)
        assert (status(made), jobs(made)) == ("paused", [])


def test_a_retry_runs_exactly_the_failed_files_again_and_then_the_task_is_done() -> None:
    made, pilot = running_task(at_pilot=0, maxAttempt=2)
    pilot.plan = failing_on("lab.t.in.00001", "lab.t.in.00003")
    drive(pilot)
    assert status(made) == "finished"
    before = {job.id for job in jobs(made)}
    assert command(made, "retry").answer == (
        "2 files are tried again; each file without an attempt left gets 2 more attempts"
    )
    assert [(f.attempt, f.max_attempt) for f in files(made)] == [(1, 2), (2, 4), (1, 2), (2, 4), (1, 2), (1, 2)]
    assert (status(made), task(made).attempt, task(made).error_dialog) == ("ready", 1, None)
    pilot.plan = failing_on()
    drive(pilot)
    assert status(made) == "done"
    again = [job for job in jobs(made) if job.id not in before]
    assert Counter(name for job in again for name in inputs(job.id)) == Counter(["lab.t.in.00001", "lab.t.in.00003"])
    assert dataset(made).files_finished == 6
    serials = [inputs(job.id, "output")[0] for job in jobs(made)]
    assert len(set(serials)) == len(serials)


def test_an_aborted_task_can_be_tried_again_whole() -> None:
    made, pilot = running_task(at_pilot=1)
    command(made, "kill")
    pilot.end(pilot.ran[0], "finished")
    settle()
    assert status(made) == "aborted"
    assert (command(made, "retry").answer or "").startswith("5 files are tried again; ")
    drive(pilot)
    assert status(made) == "done"


def test_a_task_told_to_finish_early_can_be_tried_again_whole() -> None:
    made, pilot = running_task(at_pilot=1)
    command(made, "finish")
    pilot.end(pilot.ran[0], "finished")
    settle()
    assert status(made) == "finished"
    assert [(f.attempt, f.max_attempt) for f in files(made) if f.status == "ready"] == [(1, 1)] * 5, (
        "attempts that were made"
    )
    assert (command(made, "retry").answer or "").startswith("5 files are tried again; ")
    assert [(f.attempt, f.max_attempt) for f in files(made) if f.status == "ready"] == [(1, 4)] * 5
    drive(pilot)
    assert status(made) == "done"


def test_a_refused_retry_changes_nothing() -> None:
    add_dataset("lab.p.in", 4)
    parent = submit(parameters("lab.p", reads("lab.p.in"), nFilesPerJob=1, maxAttempt=1))
    made = submit(parameters("lab.c", reads("lab.p.out"), nFilesPerJob=1, noWaitParent=True), parent=parent)
    drive(Pilot(failing_on("lab.p.in.00002")))
    assert (status(parent), status(made)) == ("finished", "finished")
    before = dataset(made)
    why = f"It is not done because its parent task {parent} is finished"
    said = f"is finished, and all of its files were processed; nothing to retry. {why}"
    with pytest.raises(command_queue.CommandRefusedError, match=said):
        command(made, "retry")
    after = dataset(made)
    assert (after.status, after.files_used, status(made)) == (before.status, before.files_used, "finished")


def test_advice_on_an_aborted_task_is_what_the_door_takes() -> None:
    def advice(task_id: int) -> str:
        blocked = first_no(walk(facts_of(task(task_id), timezone.now(), {}, None)))
        assert blocked is not None
        return blocked.advice

    made, pilot = running_task(files=2, at_pilot=2)
    command(made, "kill")
    for job in pilot.ran:
        pilot.end(job, "finished")
    settle()
    early = submit(parameters("lab.early", reads("lab.none"), waitInput=True))
    settle()
    command(early, "kill")
    settle()
    add_dataset("lab.none", 1)
    for one, why in (
        (made, "is aborted, and all of its files were processed"),
        (early, "was aborted before it had any input"),
    ):
        assert (status(one), "again (incexec)" in advice(one)) == ("aborted", True)
        with pytest.raises(command_queue.CommandRefusedError, match=f"task {one} {why}; nothing to retry"):
            command(one, "retry")
        assert command(one, "incexec").status == "done"
    drive(pilot)
    assert (status(made), status(early)) == ("done", "done")


@pytest.mark.parametrize("reading", [True, False])
def test_a_task_that_failed_before_it_had_input_is_done_when_advice_is_followed(reading: bool) -> None:
    made = (
        submit(parameters("lab.t", reads("lab.in")))
        if reading
        else submit(parameters("lab.t", noInput=True, nEvents=2))
    )
    refiner.run()
    answer = command(made, "finish").answer
    assert "no input has been processed yet: the task will end failed" in answer
    settle()
    assert status(made) == "failed"
    blocked = first_no(walk(facts_of(task(made), timezone.now(), {}, None)))
    assert blocked is not None and "again (incexec)" in blocked.advice
    says = f"task {made} is failed and never had any input; nothing to retry. To have it looked up, run it again with incexec"
    with pytest.raises(command_queue.CommandRefusedError, match=says):
        command(made, "retry")
    add_dataset("lab.in", 2)
    assert command(made, "incexec").status == "done"
    drive(Pilot())
    assert status(made) == "done"


def test_a_task_without_input_whose_jobs_failed_is_done_when_it_is_retried_as_advised() -> None:
    made = submit(parameters("lab.t", noInput=True, nEvents=2, nEventsPerJob=1, maxAttempt=1))
    drive(Pilot(lambda job: "failed"))
    assert status(made) == "failed"
    blocked = first_no(walk(facts_of(task(made), timezone.now(), {}, None)))
    assert blocked is not None and "retry the task" in blocked.advice
    assert command(made, "retry").status == "done"
    drive(Pilot())
    assert status(made) == "done"


def test_a_command_that_the_state_does_not_accept_is_refused_with_both_named() -> None:
    made, pilot = running_task(files=1, at_pilot=0)
    drive(pilot)
    with pytest.raises(command_queue.CommandRefusedError, match=f"task {made} is done; it has ended; nothing to kill$"):
        command_queue.give_command(made, "kill", by="ada")


def test_a_command_that_comes_too_late_is_refused_when_its_turn_comes() -> None:
    made, pilot = running_task(files=1, at_pilot=0)
    given = command_queue.give_command(made, "pause", by="ada")
    task_moves.move_task(made, "aborting", by="test")
    commando.run()
    given.refresh_from_db()
    assert given.status == "refused"
    assert "aborting" in given.answer
    settle()
    command_log = JobStatusLog.objects.filter(status="throttled")
    assert not command_log.exists()
    task_moves.move_task(made, "toabort", by="test") if status(made) == "aborting" else None
    for job in pilot.fetch(5):
        pilot.start(job)
        pilot.end(job, "failed")
    settle()


FIRST_MOVE = {
    TaskCommand.KILL: TaskStatus.ABORTING,
    TaskCommand.FINISH: TaskStatus.FINISHING,
    TaskCommand.PAUSE: TaskStatus.PAUSED,
    TaskCommand.RETRY: TaskStatus.TORETRY,
    TaskCommand.INCEXEC: TaskStatus.TOINCEXEC,
    TaskCommand.REASSIGN: TaskStatus.TOREASSIGN,
}


@pytest.mark.parametrize("name", sorted(FIRST_MOVE))
def test_every_state_that_accepts_a_command_may_make_its_first_move(name: TaskCommand) -> None:
    stays = MORE_ATTEMPTS_IN if name == TaskCommand.RETRY else frozenset()
    refusing = [s for s in COMMAND_ACCEPTED_IN[name] - stays if FIRST_MOVE[name] not in TASK_MOVES[s]]
    assert not refusing


def test_a_state_from_which_a_task_was_reassigned_can_be_gone_back_to() -> None:
    accepted = COMMAND_ACCEPTED_IN[TaskCommand.REASSIGN]
    assert not [s for s in accepted if s not in TASK_MOVES[TaskStatus.TOREASSIGN]]


def test_every_state_that_can_be_paused_can_be_gone_back_to() -> None:
    stuck = [s for s in COMMAND_ACCEPTED_IN[TaskCommand.PAUSE] if s not in TASK_MOVES[TaskStatus.PAUSED]]
    assert not stuck
