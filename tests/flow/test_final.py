"""How tasks end: by goal, outcome, command and parent, and what becomes of those below."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.agents import post_processor
from tasks_app.models import TaskStatusLog
from tasks_app.outcomes.children import abort_descendants
from tasks_app.submission import command_queue
from tests.flow.driving import (
    add_dataset,
    agents_turn,
    dataset,
    jobs,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
)
from tests.flow.pilot import Pilot, always, drive, failing_on

pytestmark = pytest.mark.usefixtures("books")
FILES = 4


def run_task(failing: int, *, commands: tuple[str, ...] = (), **more: Any) -> int:
    """A task with one file a job, of which the first ones fail. Returns it at rest."""
    add_dataset("lab.in", FILES)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=1, **more))
    pilot = Pilot(failing_on(*(f"lab.in.{n:05d}" for n in range(failing))))
    drive(pilot)
    for command in commands:
        command_queue.give_command(made, command, by="ada")
        drive(pilot)
    return made


PRODUCTION = {"prodSourceLabel": "managed", "useExhausted": True}


@pytest.mark.parametrize(
    ("failing", "more", "ends"),
    [
        (0, {}, "done"),
        (1, {}, "finished"),
        (FILES, {}, "failed"),
        (1, {"failWhenGoalUnreached": True}, "failed"),
        (1, {"failWhenGoalUnreached": True, "goal": 75.0}, "finished"),
        (2, {"failWhenGoalUnreached": True, "goal": 75.0}, "failed"),
        (0, {"failWhenGoalUnreached": True}, "done"),
        (1, {**PRODUCTION, "goal": 75.0}, "finished"),
        (1, PRODUCTION, "exhausted"),
        (1, {**PRODUCTION, "failWhenGoalUnreached": True}, "exhausted"),
        (FILES, PRODUCTION, "failed"),
        # Only production waits for somebody.
        (1, {"useExhausted": True}, "finished"),
    ],
)
def test_a_task_ends_by_its_goal_and_what_came_of_its_files(failing: int, more: dict[str, Any], ends: str) -> None:
    made = run_task(failing, **more)
    assert status(made) == ends
    if ends == "exhausted" or (ends == "failed" and failing < FILES):
        assert "of the input was processed, the goal is" in (task(made).error_dialog or "")
        assert f"{failing} attempt" in (task(made).error_dialog or ""), "errors stand behind the verdict"


def test_an_exhausted_task_keeps_its_books_open_and_is_finished_when_told() -> None:
    made = run_task(1, **PRODUCTION)
    assert status(made) == "exhausted"
    assert dataset(made, "output").state == "open" and task(made).end_time is None
    command_queue.give_command(made, "finish", by="ada")
    settle()
    assert status(made) == "finished", task(made).error_dialog
    assert dataset(made, "output").state == "closed"


def test_a_task_that_is_told_to_finish_below_its_goal_is_finished_not_failed() -> None:
    add_dataset("lab.in", FILES)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, failWhenGoalUnreached=True))
    settle()
    pilot = Pilot()
    for job in pilot.fetch(2):
        pilot.start(job)
        pilot.end(job)
    agents_turn()
    command_queue.give_command(made, "finish", by="ada")
    drive(pilot)
    assert (status(made), dataset(made).files_finished) == ("finished", 2)


def chain() -> tuple[int, int, int]:
    """Three tasks, each of which reads what the one before makes, at once."""
    add_dataset("lab.in", FILES)
    first = submit(parameters("lab.a", reads("lab.in"), nFilesPerJob=1, maxAttempt=1))
    second = submit(parameters("lab.b", reads("lab.a.out"), nFilesPerJob=1, noWaitParent=True), parent=first)
    third = submit(parameters("lab.c", reads("lab.b.out"), nFilesPerJob=1, noWaitParent=True), parent=second)
    return first, second, third


def test_the_end_of_a_killed_task_is_the_end_of_all_below_it() -> None:
    family = chain()
    pilot = Pilot()
    for _ in range(3):
        agents_turn()
        pilot.work(1)
    assert all(status(one) not in ("done", "aborted") for one in family)
    command_queue.give_command(family[0], "kill", by="ada", reason="enough")
    drive(pilot)
    assert [status(one) for one in family] == ["aborted"] * 3
    assert "killed by ada: enough" in (task(family[0]).error_dialog or "")
    assert f"the parent task {family[0]} is aborted" in (task(family[1]).error_dialog or "")
    assert f"the parent task {family[1]} is aborted" in (task(family[2]).error_dialog or "")
    why = TaskStatusLog.objects.get(task_id=family[2], status="toabort")
    assert (why.by, why.reason) == ("post_processor", f"the parent task {family[1]} is aborted")


def test_a_child_that_has_ended_is_left_alone_and_so_is_all_below_it() -> None:
    add_dataset("lab.in", 1)
    first = submit(parameters("lab.a", reads("lab.in"), nFilesPerJob=1, maxAttempt=1))
    drive(Pilot())
    second = submit(parameters("lab.b", reads("lab.a.out"), nFilesPerJob=1), parent=first)
    drive(Pilot())
    third = submit(parameters("lab.c", reads("lab.b.out"), nFilesPerJob=1), parent=second)
    settle()
    assert [status(one) for one in (first, second, third)] == ["done", "done", "running"]
    assert abort_descendants(first, "failed", by="test") == 0
    assert status(third) == "running"


def test_children_go_on_when_their_parent_waits_for_somebody() -> None:
    add_dataset("lab.in", FILES)
    first = submit(parameters("lab.a", reads("lab.in"), nFilesPerJob=1, maxAttempt=1, **PRODUCTION))
    second = submit(
        parameters("lab.b", reads("lab.a.out"), nFilesPerJob=1, nChunksToWait=1, noWaitParent=True), parent=first
    )
    drive(Pilot(failing_on("lab.in.00000")))
    assert status(first) == "exhausted"
    assert dataset(second).files_finished == FILES - 1
    assert status(second) == "defined", "more may come when the parent is tried again"


def test_a_prepared_task_is_ended_once_by_two_post_processors() -> None:
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=1))
    drive(Pilot(always("failed")))
    assert post_processor.run().items == 0
    assert TaskStatusLog.objects.filter(task_id=made, status="failed").count() == 1
    assert jobs(made)
