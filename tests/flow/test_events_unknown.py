"""Tasks whose jobs are made by events, and files of which nobody knows how many they have."""

from __future__ import annotations

from typing import Any

import pytest

from jedisite.identity.callers import Caller, Role
from tasks_app.agents import feeder, refiner
from tasks_app.inputs import event_inputs
from tasks_app.lifecycle import task_moves
from tasks_app.params.schema import parse
from tasks_app.submission import submitting
from tests.flow.driving import add_dataset, add_files, jobs, parameters, reads, status, submit
from tests.flow.pilot import Pilot, drive

pytestmark = pytest.mark.usefixtures("books")
A = "lab.a"
ADA = Caller("ada", frozenset({Role.PRODUCTION}))
INSTEAD = "give nEventsPerInputFile, the events of each file, or nFilesPerJob in place of nEventsPerJob"


@pytest.mark.parametrize(
    ("known", "warning"),
    [
        (0, f"None of its input files has a number of events: nEventsPerJob has no effect; {INSTEAD}."),
        (1, f"2 of 3 input files have no number of events: nEventsPerJob counts them as without events; {INSTEAD}."),
        (3, ""),
    ],
)
def test_a_task_whose_jobs_are_made_by_events_is_warned_of_files_without(known: int, warning: str) -> None:
    add_dataset(A, 3 - known)
    add_files(A, [5, 6, 7][:known], events=30)
    wishes = parameters("lab.t", reads(A), nEventsPerJob=10)
    made = submit(wishes)
    refiner.run()
    feeder.run()
    assert task_moves.warnings_of(made) == warning
    assert event_inputs.doubts(parse(wishes)) == ([warning] if warning else [])


def test_of_files_without_a_number_of_events_the_door_says_what_works_and_it_does() -> None:
    """Also of a task that takes some files only, if none has a number; and the answer and the page say it once."""
    add_dataset(A, 3)

    def given(name: str, **more: Any) -> tuple[int, tuple[str, ...]]:
        wishes = parameters(name, reads(A), **more)
        made = submitting.submit(submitting.check(wishes, ADA), by="ada")
        return made.task_id, made.warnings

    made, warnings = given("user.ada.x", nEventsPerJob=10, nFiles=2)
    said = f"None of its input files has a number of events: nEventsPerJob has no effect; {INSTEAD}."
    assert [one for one in warnings if "events" in one] == [said]
    client = parameters("user.ada.z", reads(A), tgtNumEventsPerJob=10, processingType="panda-client-1.5")
    assert "give --nEventsPerFile, the events of each file, or --nFilesPerJob" in event_inputs.doubts(parse(client))[0]
    refiner.run()
    feeder.run()
    assert task_moves.warnings_of(made).count("number of events") == 1
    for number, (more, one_gets) in enumerate(
        (({"nEventsPerInputFile": 30, "nEventsPerJob": 10}, 9), ({"nFilesPerJob": 1}, 3))
    ):
        again, warnings = given(f"user.ada.y{number}", **more)
        assert not [one for one in warnings if "events" in one]
        drive(Pilot())
        assert (status(again), len(jobs(again))) == ("done", one_gets)
    add_files(A, [5], events=30)
    assert event_inputs.doubts(parse(parameters("user.ada.w", reads(A), nEventsPerJob=10, nFiles=1))) == []
    assert (
        event_inputs.doubts(parse(parameters("user.ada.v", reads("lab.none"), nEventsPerJob=10, waitInput=True))) == []
    )
