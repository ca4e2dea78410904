"""Qualifiers of a retry and of an incremental execution: each changes what the same command does without it."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.models import Command, File, Task
from tests.flow.driving import dataset, files, settle, status, task
from tests.flow.pilot import Pilot, drive, failing_on
from tests.flow.test_again import chain, finished_task
from tests.flow.test_commands import command, running_task

pytestmark = pytest.mark.usefixtures("books")
AGAIN = pytest.mark.parametrize("name", ["retry", "incexec"])


@AGAIN
@pytest.mark.parametrize("given", [{}, {"sole": True}])
def test_children_are_left_alone_by_a_sole_command(name: str, given: dict[str, Any]) -> None:
    first, second, _ = chain()
    drive(Pilot(failing_on("lab.in.00002")))
    command(first, name, parameters=given or None)
    assert Command.objects.filter(task_id=second).exists() is not bool(given)
    drive(Pilot())
    assert (status(first), status(second)) == ("done", "finished" if given else "done")


@AGAIN
@pytest.mark.parametrize("given", [{}, {"keep": True}])
def test_a_raised_priority_is_kept_when_that_is_asked_for(name: str, given: dict[str, Any]) -> None:
    made = finished_task("lab.t.in.00001")
    Task.objects.filter(pk=made).update(current_priority=900)
    command(made, name, parameters=given or None)
    assert task(made).current_priority == (900 if given else 500)
    drive(Pilot())
    assert status(made) == "done"


@AGAIN
@pytest.mark.parametrize("given", [{}, {"staged": True}])
def test_files_that_come_from_tape_are_used_as_they_are_when_that_is_asked_for(
    name: str, given: dict[str, Any]
) -> None:
    made = finished_task("lab.t.in.00001")
    late = {"dataset_id": dataset(made).id, "task_id": made, "lfn": "lab.late"}
    File.objects.create(**late, type="input", status="staging", attempt=0, max_attempt=3, keep_track=True)
    command(made, name, parameters=given or None)
    assert File.objects.get(**late).status == ("pending" if given else "staging")
    File.objects.filter(**late).delete()
    drive(Pilot())
    assert status(made) == "done"


@pytest.mark.parametrize(("attempts", "more"), [(None, 1), (3, 3)])
def test_files_get_as_many_attempts_more_as_are_asked_for(attempts: int | None, more: int) -> None:
    made, pilot = running_task(maxAttempt=1)
    pilot.end(pilot.ran[0], "failed")
    settle()
    command(made, "increase_attempts", parameters=attempts and {"attempts": attempts})
    (again,) = [file for file in files(made) if file.max_attempt != 1]
    assert (again.attempt, again.max_attempt) == (1, 1 + more)
    pilot.end(pilot.ran[1], "finished")
    drive(pilot)
    assert status(made) == "done"
