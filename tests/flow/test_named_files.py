"""Tasks that name files of their input: none of these is left out without a word."""

from __future__ import annotations

import pytest

from tasks_app.ddm import data_management
from tasks_app.ddm.base import SITE
from tests.flow.driving import (
    add_dataset,
    add_files,
    dataset,
    look_again,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
)
from tests.flow.pilot import Pilot, drive

pytestmark = pytest.mark.usefixtures("books")


def naming(of: str, *numbers: int, **more: object) -> int:
    item = {**reads(of), "files": [f"lab:lab.in.{n:05d}" for n in numbers]}
    return submit(parameters("lab.t", item, nFilesPerJob=1, **more))


def test_a_file_that_is_not_in_the_dataset_breaks_the_task() -> None:
    add_dataset("lab.in", 4)
    made = naming("lab.in", 1, 23)
    settle()
    assert status(made) == "broken"
    assert task(made).error_dialog == ("lab.in.00023 is not in lab.in, though the task names it")


def test_files_of_several_datasets_may_be_named_in_one_item() -> None:
    add_dataset("lab.in", 2)
    add_dataset("lab.more")
    made = naming("lab.in,lab.more", 0, 1)
    drive(Pilot())
    assert (status(made), dataset(made, name="lab.in").files_finished) == ("done", 2)


def test_a_file_that_may_still_come_is_waited_for_and_its_absence_ends_the_task() -> None:
    add_dataset("lab.in", 2, open=True)
    made = naming("lab.in", 0, 1, 2, 3, runUntilClosed=True, nChunksToWait=1)
    drive(Pilot())
    assert (status(made), dataset(made).files_finished) == ("defined", 2)
    add_files("lab.in", [2])
    data_management().close(["lab.in"], by=SITE)
    look_again()
    drive(Pilot())
    assert status(made) == "broken", task(made).error_dialog
    assert (task(made).error_dialog or "").startswith("lab.in.00003 is not in ")


def test_a_closing_while_jobs_run_does_not_let_the_task_end_as_done() -> None:
    add_dataset("lab.in", 2, open=True)
    made = naming("lab.in", 0, 1, 2, runUntilClosed=True, nChunksToWait=1)
    settle()
    assert status(made) == "running"
    data_management().close(["lab.in"], by=SITE)
    look_again()
    settle()
    assert (status(made), dataset(made).state) == ("running", "mutable")
    drive(Pilot())
    assert (status(made), dataset(made).files_finished) == ("broken", 2)


def test_a_task_whose_parent_has_ended_without_its_input_is_broken() -> None:
    add_dataset("lab.in", 1)
    parent = submit(parameters("lab.p", reads("lab.in"), nFilesPerJob=1))
    child = submit(parameters("lab.c", reads("lab.p.oot"), nFilesPerJob=1, noWaitParent=True), parent=parent)
    drive(Pilot())
    assert (status(parent), status(child)) == ("done", "broken")
    assert (task(child).error_dialog or "").endswith(f"; the parent task {parent} is done and makes nothing more")
