"""Tasks whose jobs are cloned, and tasks whose events are processed one by one: from the parameters to the end."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.db import transaction

from brokerage_app.models import Queue
from events_app.dispatch.range_accounts import account
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from jedisite.database.sql import hot_cursor
from tasks_app.agents import adder, feeder, job_generator, refiner
from tasks_app.dispatch.reports import Proof
from tasks_app.models import CatalogueFile, Dataset, File, Job, JobFile, JobOutputReport, JobParams
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book
from tests.flow.balance import assert_books_balance
from tests.flow.driving import add_dataset, add_queue, jobs, parameters, reads, settle, status, submit, task, wake
from tests.flow.pilot import Pilot, drive
from tests.flow.test_commands import command

pytestmark = pytest.mark.usefixtures("tables")
READY, SENT, FINISHED, MERGED, CANCELLED = (
    int(s)
    for s in (EventStatus.READY, EventStatus.SENT, EventStatus.FINISHED, EventStatus.MERGED, EventStatus.CANCELLED)
)


def made_of(params: dict[str, Any]) -> int:
    made = submit(params)
    refiner.run()
    feeder.run()
    assert status(made) == "ready", task(made).error_dialog
    wake()
    job_generator.run()
    return made


def clones(how: str, **more: Any) -> int:
    """A task with a file, whose job has a clone at another queue."""
    Queue.objects.update(job_seed="std")
    add_queue("SITE_B", job_seed="std")
    add_dataset("lab.in", 1)
    return made_of(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, useJobCloning=how, **more))


def ended(task_id: int) -> list[tuple[str, str | None, int | None]]:
    return [(job.status, job.sub_status, job.task_buffer_error_code) for job in jobs(task_id)]


def outputs(task_id: int) -> dict[str, str]:
    rows = File.objects.filter(task_id=task_id, type="output").order_by("lfn")
    return dict(rows.values_list("lfn", "status"))


def none_failed(task_id: int) -> None:
    """What a job was to make in whose place another one went on is not needed, and nothing of the task counts as failed."""
    for row in Dataset.objects.filter(task_id=task_id):
        assert (row.files_failed, row.status) == (0, "done"), row.name
    for kind in ("output", "log"):
        said = set(JobFile.objects.filter(task_id=task_id, type=kind).values_list("status", flat=True))
        assert said <= {"finished", "nooutput"}, said


def input_of(task_id: int) -> tuple[str, int | None]:
    (row,) = File.objects.filter(task_id=task_id, type="input").values_list("status", "attempt")
    return row


def ranges(task_id: int) -> list[tuple[int, int, int, int]]:
    rows = Event.objects.filter(task_id=task_id).order_by("min_event", "id")
    return list(rows.values_list("min_event", "max_event", "job_id", "status"))


def test_clones_are_ordinary_jobs_at_different_queues_with_one_range_and_outputs_of_their_own() -> None:
    made = clones("storeonce", nEventsPerInputFile=25)
    first, second = jobs(made)
    assert {first.site, second.site} == {"SITE_A", "SITE_B"} and first.jobset_id == second.jobset_id
    assert {(job.event_service, job.events, job.attempt, job.max_attempt) for job in (first, second)} == {(3, 25, 1, 1)}
    assert ranges(made) == [(1, 25, first.jobset_id, READY)]
    (name,) = JobFile.objects.filter(job_id=first.id, type="output").values_list("lfn", flat=True)
    (own,) = JobFile.objects.filter(job_id=second.id, type="output").values_list("lfn", flat=True)
    head, _, extension = name.rpartition(".")
    assert own == f"{head}.{second.id}.{extension}"
    assert JobParams.objects.get(pk=second.id).params == JobParams.objects.get(pk=first.id).params.replace(name, own)
    counted = Dataset.objects.get(task_id=made, type="output")
    assert (counted.files, counted.files_used) == (2, 2)


@pytest.mark.parametrize("with_secret", [True, False])
@pytest.mark.parametrize("first_site", ["SITE_A", "SITE_B"])
def test_of_clones_of_a_job_the_first_that_is_fetched_runs_and_its_output_counts(
    with_secret: bool, first_site: str
) -> None:
    made = clones("runonce")
    other_site = "SITE_B" if first_site == "SITE_A" else "SITE_A"
    (job,) = Pilot(site=first_site, with_secret=with_secret).fetch(1)
    assert Pilot(site=other_site, with_secret=with_secret).fetch(1) == [], "it came too late"
    assert [one[2:] for one in ranges(made)] == [(job["PandaID"], SENT)]
    adder.run()
    by_id = {row.id: row for row in jobs(made)}
    (lost,) = (row for number, row in by_id.items() if number != job["PandaID"])
    assert (lost.status, lost.sub_status, lost.task_buffer_error_code) == ("closed", "jc_unlock", 200)
    assert by_id[job["PandaID"]].status == "sent" and input_of(made)[0] == "running"
    Pilot(site=first_site).start(job)
    Pilot(site=first_site).end(job)
    settle()
    assert status(made) == "done" and input_of(made) == ("finished", 1)
    assert sorted(outputs(made).values()) == ["finished", "nooutput"]
    none_failed(made)
    assert (
        CatalogueFile.objects.filter(dataset__name=Dataset.objects.get(task_id=made, type="output").name).count() == 1
    )
    assert [one[2:] for one in ranges(made)] == [(job["PandaID"], FINISHED)]
    assert_books_balance()


def test_a_clone_that_fails_after_it_came_first_gives_its_file_back_and_new_clones_follow() -> None:
    made = clones("runonce")
    pilot = Pilot()
    (job,) = pilot.fetch(1)
    pilot.start(job)
    pilot.end(job, "failed")
    settle()
    assert sorted(one[0] for one in ended(made)[:2]) == ["closed", "failed"]
    assert Job.objects.get(pk=job["PandaID"]).status == "failed"
    assert input_of(made) == ("running", 1) and len(jobs(made)) == 4
    drive(Pilot(), Pilot(site="SITE_B"))
    assert status(made) == "done"
    assert_books_balance()


@pytest.mark.parametrize("with_secret", [True, False])
def test_of_clones_that_run_the_first_that_finishes_counts(with_secret: bool) -> None:
    made = clones("storeonce")
    here, there = Pilot(with_secret=with_secret), Pilot(site="SITE_B", with_secret=with_secret)
    (one,), (two,) = here.fetch(1), there.fetch(1)
    here.start(one)
    there.start(two)
    there.end(two)
    adder.run()
    adder.run()
    said = {row.id: (row.status, row.sub_status, row.task_buffer_error_code) for row in jobs(made)}
    assert said[two["PandaID"]][0] == "finished"
    assert said[one["PandaID"]] == ("closed", "jc_unlock", 200)
    assert here.start(one) == "tobekilled" == here.end(one), "its pilot is told"
    settle()
    assert status(made) == "done" and input_of(made) == ("finished", 1)
    assert sorted(outputs(made).values()) == ["finished", "nooutput"]
    none_failed(made)
    assert_books_balance()


def test_of_clones_that_finish_at_once_one_counts() -> None:
    made = clones("storeonce")
    here, there = Pilot(), Pilot(site="SITE_B")
    for pilot in (here, there):
        (job,) = pilot.fetch(1)
        pilot.start(job)
        pilot.end(job)
    settle()
    assert sorted(one[:2] for one in ended(made)) == [("closed", "jc_unlock"), ("finished", None)]
    assert not JobOutputReport.objects.exists() and status(made) == "done"
    assert Counter(outputs(made).values()) == {"finished": 1, "nooutput": 1}
    none_failed(made)
    assert_books_balance()


def test_a_clone_that_fails_or_is_killed_leaves_the_input_to_the_other_and_the_last_ends_as_any_job() -> None:
    made = clones("storeonce")
    here, there = Pilot(), Pilot(site="SITE_B")
    (one,), (two,) = here.fetch(1), there.fetch(1)
    here.start(one)
    there.start(two)
    here.end(one, "failed")
    adder.run()
    row = Job.objects.get(pk=one["PandaID"])
    assert (row.status, row.sub_status, row.pilot_error_code) == ("closed", "jc_unlock", 1305)
    assert input_of(made) == ("running", 0)
    with transaction.atomic(), hot_cursor() as cursor:
        book(cursor, [Outcome(two["PandaID"], made, "cancelled", "taskbuffer", 100, "killed by ada")])
    assert Job.objects.get(pk=two["PandaID"]).status == "cancelled"
    assert input_of(made) == ("ready", 1) and [one[3] for one in ranges(made)] == [CANCELLED]
    drive(Pilot(), Pilot(site="SITE_B"))
    assert status(made) == "done"
    assert_books_balance()


def fine() -> int:
    """A task with a file of four events, which are ranges of their own."""
    Queue.objects.update(job_seed="std")
    add_dataset("lab.in", 1)
    return made_of(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, nEventsPerInputFile=4, fineGrainedProc=True))


def says(task_id: int, job: dict[str, Any], **words: str) -> list[bool | None]:
    """Whoever runs a job reports on its events, by the number of the jobset: version 2 of PanDA's reports."""
    row = Job.objects.get(pk=job["PandaID"])
    file = File.objects.get(task_id=task_id, type="input")
    items = [
        {"eventRangeID": f"{task_id}-{row.jobset_id}-{file.id}-{event[1:]}-1", "eventStatus": word}
        for event, word in words.items()
    ]
    return account(items, Proof(), fine_grained=True).answers


def test_events_are_processed_one_by_one_and_what_is_left_is_tried_again() -> None:
    made = fine()
    pilot = Pilot(with_secret=False)
    (job,) = pilot.fetch(1)
    assert "eventService" not in job, "to PanDA's pilots it is like any other"
    pilot.start(job)
    assert says(made, job, e1="finished", e2="finished", e3="failed") == [True] * 3
    assert Job.objects.get(pk=job["PandaID"]).events == 2
    pilot.end(job, "failed")
    adder.run()
    first = Job.objects.get(pk=job["PandaID"])
    assert (first.event_service, first.status, first.sub_status) == (6, "finished", "fg_partial")
    assert input_of(made) == ("ready", 1)
    assert [one for one in ranges(made) if one[3] == READY] == [
        (3, 3, first.jobset_id, READY),
        (4, 4, first.jobset_id, READY),
    ]
    wake()
    job_generator.run()
    (job,) = pilot.fetch(1)
    second = Job.objects.get(pk=job["PandaID"])
    assert second.jobset_id != first.jobset_id
    assert [one[:3] for one in ranges(made) if one[3] == READY] == [(3, 4, second.jobset_id)], "the others are kept"
    pilot.start(job)
    says(made, job, e3="finished", e4="finished")
    pilot.end(job)
    settle()
    assert Job.objects.get(pk=job["PandaID"]).sub_status == "fg_done"
    assert status(made) == "done" and input_of(made) == ("finished", 2)
    assert sum(last - first + 1 for first, last, _, state in ranges(made) if state == MERGED) == 4
    assert_books_balance()


@pytest.mark.parametrize("how", ["finished", "failed"])
def test_a_job_that_has_finished_no_event_does_not_finish_its_file(how: str) -> None:
    made = fine()
    pilot = Pilot(with_secret=False)
    (job,) = pilot.fetch(1)
    pilot.start(job)
    pilot.end(job, how)
    adder.run()
    row = Job.objects.get(pk=job["PandaID"])
    assert (row.status, row.sub_status) == (how, "fg_stumble")
    assert input_of(made) == ("ready", 1)
    assert "finished" not in outputs(made).values()
    drive(pilot)
    assert status(made) == "failed", "no attempt of the file has finished an event"
    assert_books_balance()


def with_outputs(pilot: Pilot, job: dict[str, Any]) -> None:
    """A pilot of PanDA's kind ends a job with an output of its own."""
    pilot.end(job, "finished")
    adder.run()


def test_outputs_that_jobs_have_stored_for_some_events_each_all_count() -> None:
    made = fine()
    pilot = Pilot(with_secret=False)
    (job,) = pilot.fetch(1)
    pilot.start(job)
    says(made, job, e1="finished", e2="finished")
    with_outputs(pilot, job)
    wake()
    job_generator.run()
    (job,) = pilot.fetch(1)
    pilot.start(job)
    says(made, job, e3="finished", e4="finished")
    with_outputs(pilot, job)
    settle()
    assert status(made) == "done", task(made).error_dialog
    assert sorted(outputs(made).values()) == ["finished", "finished"], "none of them was made twice"
    assert_books_balance()


@pytest.mark.parametrize("stores", [True, False])
def test_a_file_that_uses_up_its_attempts_keeps_the_events_that_were_finished(stores: bool) -> None:
    """By what its jobs have stored themselves, or by a merge job of what lies in zip files."""
    made = fine()
    File.objects.filter(task_id=made, type="input").update(max_attempt=1)
    pilot = Pilot(with_secret=False)
    (job,) = pilot.fetch(1)
    pilot.start(job)
    says(made, job, e1="finished", e2="finished", e4="failed")
    if stores:
        with_outputs(pilot, job)
    else:
        zip_row = JobFile.objects.create(
            job_id=job["PandaID"], task_id=made, type="zipoutput", lfn="z1", scope="transient", size=5, checksum="ad:ab"
        )
        Event.objects.filter(task_id=made, status=FINISHED).update(zip_row_id=zip_row.id, objstore_id=11)
        pilot.end(job, "failed")
        adder.run()
        assert input_of(made)[0] == "running", "a merge job has it"
        wake()
        (merge,) = pilot.fetch(1)
        assert Job.objects.get(pk=merge["PandaID"]).event_service == 2
        pilot.start(merge)
        pilot.end(merge)
    settle()
    assert (status(made), input_of(made)) == ("finished", ("partial", 1)), task(made).error_dialog
    assert "2 events were given up" in (task(made).error_dialog or "")
    read = Dataset.objects.get(task_id=made, type="input")
    assert (read.status, read.files_finished, read.files_failed, read.events_used) == ("finished", 1, 0, 2)
    assert [state for state in outputs(made).values() if state == "finished"] == ["finished"]
    assert_books_balance()
    assert command(made, "retry").status == "done"
    wake()
    job_generator.run()
    assert [one[:2] for one in ranges(made) if one[3] == READY] == [(3, 4)], "what was given up, and nothing else"
