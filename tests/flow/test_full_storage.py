"""Outputs that cannot be stored: attempts are kept, and a storage at which that goes on gets no more jobs for a while."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.grid import full_storage
from brokerage_app.models import Queue, StorageEndpoint, StorageTrouble
from jedisite.database.sql import hot_cursor
from tasks_app.agents import adder
from tasks_app.agents.watchdogs import site_statistics
from tasks_app.dispatch import closed_queues
from tasks_app.dispatch.reports import update_job
from tasks_app.explaining import why_job
from tasks_app.models import RetryNote
from tasks_app.outcomes import unstored
from tests.flow.driving import SITE, add_dataset, files, jobs, parameters, reads, settle, status, submit, wake
from tests.flow.pilot import Job, Pilot, drive, report

pytestmark = pytest.mark.usefixtures("books")
FULL = {"pilot_error_code": 1137, "pilot_error_diag": "Output x could not be stored: No space left on device"}


@pytest.fixture(autouse=True)
def disk(tables: None) -> None:
    StorageEndpoint.objects.create(name="DISK", site_name=SITE)
    Queue.objects.filter(name=SITE).update(storage_id="DISK")


def running(count: int, **more: object) -> int:
    add_dataset("lab.in", count)
    made = submit(parameters("lab.t", reads("lab.in"), **{"nFilesPerJob": 1, "maxAttempt": 1, **more}))
    settle()
    return made


def fail(*failing: Job) -> None:
    for job in failing:
        update_job(report(job, "starting"))
        update_job(report(job, "running"))
        update_job(report(job, "failed", errors=FULL))
    adder.run()
    closed_queues.forget()


def test_a_full_storage_gets_no_more_jobs_and_uses_up_no_attempt(
    client: Client, make_user: Callable[..., object]
) -> None:
    made = running(5)
    pilot = Pilot()
    begun = pilot.fetch(3)
    StorageEndpoint.objects.update(updated=timezone.now() - timedelta(days=1))
    fail(*begun[:2])
    assert closed_queues.why_closed(SITE) == "", "two may be bad luck"
    fail(begun[2])
    disk = StorageEndpoint.objects.get()
    assert disk.closed_until is not None
    until = f"{disk.closed_until:%H:%M} UTC"
    why = f"jobs could not store their outputs at DISK (“{FULL['pilot_error_diag']}”); it is tried again at {until}"
    assert closed_queues.why_closed(SITE) == f"No jobs: {why}."
    assert sorted((one.attempt, one.max_attempt) for one in files(made)) == [(0, 1)] * 2 + [(1, 2)] * 3
    assert set(RetryNote.objects.values_list("code", "applied")) == {("retry_not_stored", True)}
    settle()
    waiting = jobs(made, status="activated")
    assert len(waiting) == 2, "no job is made for a queue that cannot store what it makes"
    (full,) = full_storage.full_storage(SITE)
    assert (full.lack, full.updated) == (why, StorageTrouble.objects.get().last), "not when its space was measured"
    said = why_job.why(waiting[0], timezone.now())
    assert why in str(said)
    client.force_login(make_user("operator"))
    assert "takes no outputs: jobs could not store" in client.get(f"/sites/{SITE}/").content.decode()
    site_statistics.run(now=disk.closed_until + timedelta(seconds=1))
    closed_queues.forget()
    assert closed_queues.why_closed(SITE) == ""
    wake()
    drive(pilot)
    assert status(made) == "done"
    assert not StorageTrouble.objects.exists()


def test_a_job_that_stores_its_outputs_opens_the_storage_again() -> None:
    running(4)
    pilot = Pilot()
    *failing, other = pilot.fetch(4)
    fail(*failing)
    assert closed_queues.why_closed(SITE)
    unstored.forget()
    pilot.start(other)
    pilot.end(other)
    adder.run()
    closed_queues.forget()
    assert closed_queues.why_closed(SITE) == "" and not StorageTrouble.objects.exists()
    assert StorageEndpoint.objects.get().closed_why == ""


def test_the_longer_it_goes_on_the_later_is_the_next_try() -> None:
    running(3)
    ids = [job["PandaID"] for job in Pilot().fetch(3)]
    begin = timezone.now()

    def closed_for(after: timedelta) -> timedelta | None:
        with hot_cursor() as cursor:
            unstored.note(cursor, unstored.Met(ids), begin + after)
        until = StorageEndpoint.objects.get().closed_until
        return until - begin - after if until else None

    minute = timedelta(minutes=1)
    assert closed_for(timedelta(0)) == 5 * minute
    assert [closed_for(n * minute) for n in (6, 20, 80)] == [6 * minute, 20 * minute, 60 * minute]
    assert closed_for(80 * minute + unstored.FORGOTTEN_AFTER) == 5 * minute, "what was long ago is another story"


def test_outputs_of_unknown_places_close_nothing() -> None:
    StorageEndpoint.objects.create(name="OTHER", site_name="X")
    Queue.objects.filter(name=SITE).update(storage_id=None)
    running(3)
    fail(*Pilot().fetch(3))
    assert not StorageTrouble.objects.exists() and closed_queues.why_closed(SITE) == ""


def test_a_job_that_may_not_be_tried_again_is_not() -> None:
    made = running(1, disableAutoRetry=True)
    fail(*Pilot().fetch(1))
    assert [(one.attempt, one.max_attempt) for one in files(made)] == [(1, 1)]
