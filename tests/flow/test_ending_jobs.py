"""Kills with their codes: what becomes of the jobs, of their files, and of reports that come later."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from tasks_app.domain.killcodes import Kill, error_code
from tasks_app.outcomes.endings import end_jobs
from tests.flow.driving import add_dataset, dataset, files, jobs, parameters, reads, settle, states, status, submit
from tests.flow.pilot import Pilot, drive

pytestmark = pytest.mark.usefixtures("books")


def running_task(number: int = 4, at_pilot: int = 2, **more: object) -> tuple[int, Pilot]:
    add_dataset("lab.in", number)
    made = submit(parameters("lab.t", reads("lab.in"), **{"nFilesPerJob": 1, **more}))
    settle()
    pilot = Pilot()
    for job in pilot.fetch(at_pilot):
        pilot.start(job)
    return made, pilot


def kill(task_id: int, **more: object) -> str:
    with transaction.atomic():
        return end_jobs(task_id, by="ada", reason="because", **more)  # type: ignore[arg-type]


def label(task_id: int, value: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET prodsourcelabel = %s WHERE jeditaskid = %s", [value, task_id])


def test_jobs_that_are_assigned_anew_are_closed_and_their_files_are_tried_again_without_a_failure() -> None:
    made, pilot = running_task()
    assert kill(made, code=Kill.REASSIGN) == "2 queued jobs were closed, 2 running ones were told to stop"
    assert states(made) == {"closed": 2, "running": 2}
    closed = jobs(made, status="closed")
    assert {(j.sub_status, j.task_buffer_error_code, j.task_buffer_error_diag) for j in closed} == {
        ("toreassign", error_code(51), "because")
    }
    for job in pilot.ran:
        assert pilot.start(job) == "tobekilled"
        pilot.end(job, "failed")
    settle()
    ended = jobs(made, status="closed")
    assert len(ended) == 4
    assert {job.sub_status for job in ended} == {"toreassign"}
    assert {(f.attempt, f.failed_attempt) for f in files(made)} == {(1, 0)}
    drive(Pilot())
    assert status(made) == "done"
    assert dataset(made).files_finished == 4


def test_a_job_that_was_told_to_stop_and_ended_well_is_finished_without_an_error() -> None:
    made, pilot = running_task(2, 2)
    kill(made, code=Kill.REASSIGN)
    for job in pilot.ran:
        pilot.end(job, "finished")
    settle()
    assert {(j.status, j.task_buffer_error_code, j.sub_status) for j in jobs(made)} == {("finished", None, None)}
    assert status(made) == "done"


def test_force_ends_running_production_jobs_at_once_and_a_late_report_changes_nothing() -> None:
    made, pilot = running_task()
    label(made, "managed")
    said = kill(made, code=Kill.JEDI_FORCE)
    assert said == "2 queued jobs were cancelled, 2 others were cancelled at once"
    assert states(made) == {"cancelled": 4}
    assert pilot.start(pilot.ran[0]) == "tobekilled"
    pilot.end(pilot.ran[1], "finished")
    drive(Pilot())
    assert status(made) == "done"
    assert states(made) == {"cancelled": 4, "finished": 4}


def test_force_does_not_end_running_jobs_of_analysis_unless_by_a_production_manager() -> None:
    made, _ = running_task()
    kill(made, code=Kill.FORCE)
    assert states(made) == {"cancelled": 2, "running": 2}
    kill(made, code=Kill.PRODUCTION_FORCE, production_role=True)
    assert states(made) == {"cancelled": 4}


def test_running_jobs_can_be_left_alone() -> None:
    made, pilot = running_task()
    kill(made, code=Kill.TASK_DONE, running_too=False)
    assert states(made) == {"closed": 2, "running": 2}
    assert {job.sub_status for job in jobs(made, status="closed")} == {"taskdone"}
    assert pilot.start(pilot.ran[0]) == "NULL"
