"""Columns that places far apart decide by: times of change, streams of inputs and outputs, kinds of work queues."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tasks_app.models import Dataset, JobParams, OutputTemplate
from tests.flow.driving import add_dataset, dataset, jobs, parameters, reads, settle, submit, template
from tests.flow.pilot import Pilot, drive
from tests.flow.test_watchdogs import made_task, update

pytestmark = pytest.mark.usefixtures("books")
HOUR = timedelta(hours=1)


def test_lists_of_tasks_go_by_the_last_change_of_the_task_and_of_its_datasets(api: Callable[..., Client]) -> None:
    made = made_task(2)
    ada = api()

    def listed(query: str) -> list[int]:
        return [row["id"] for row in ada.get(f"/api/v2/tasks/?{query}").json()["results"]]

    def age(table: str) -> None:
        update(table, "jeditaskid", made, modificationtime=timezone.now() - 3 * HOUR)

    assert (listed("window=1h"), listed("stalled_for=2")) == ([made], [])
    age("jedi_tasks")
    assert (listed("window=1h"), listed("stalled_for=2")) == ([], []), "its datasets have changed since"
    age("jedi_datasets")
    assert listed("stalled_for=2") == [made]
    Pilot().work(1)
    settle()
    age("jedi_tasks")
    assert listed("stalled_for=2") == [], "a file was processed"
    changed = Dataset.objects.filter(task_id=made, type="input").values_list("modification_time", flat=True).get()
    assert timezone.now() - changed < HOUR
    drive(Pilot())


def test_each_stream_stands_at_its_place_in_the_command_line() -> None:
    add_dataset("lab.a", 1)
    add_dataset("lab.b", 1)
    made = submit(
        parameters(
            "lab.t",
            reads("lab.a"),
            reads("lab.b", "SECOND", ratio=1),
            template("output", "second.${SN}.txt", "lab.more"),
            nFilesPerJob=1,
        )
    )
    settle()
    names = dict(Dataset.objects.filter(task_id=made, type="input").values_list("stream_name", "name"))
    assert names == {"IN": "lab.a", "SECOND": "lab.b"}
    templates = dict(OutputTemplate.objects.filter(task_id=made).values_list("stream_name", "file_name_template"))
    assert templates == {"LOG0": "lab.t.${SN}.log.tgz", "OUTPUT0": "second.${SN}.txt", "OUTPUT1": "lab.t.${SN}.root"}
    (job,) = jobs(made)
    said = JobParams.objects.get(pk=job.id).params.split()
    assert said == ["--in=lab.a.00000", "--second=lab.b.00000", "second.000001.txt", "lab.t.000001.root"]
    drive(Pilot())


def test_what_a_pilot_is_told_of_its_input_is_what_the_books_have() -> None:
    add_dataset("lab.a", 2)
    submit(parameters("lab.t", reads("lab.a"), nFilesPerJob=2, transPath="run_command"))
    settle()
    pilot = Pilot()
    (job,) = pilot.fetch()
    told = {"guid": job["GUID"], "scope": job["scopeIn"]}
    assert told == {"guid": "00000000,00000001", "scope": "lab,lab"}
    assert job["transformation"].endswith("run_command") and job["prodSourceLabel"] == "user"
    pilot.start(job)
    pilot.end(job)
    drive(pilot)


def test_jobs_take_as_many_files_as_have_the_events_that_are_asked_for() -> None:
    add_dataset("lab.a", 4, events=10)
    made = submit(parameters("lab.t", reads("lab.a"), tgtNumEventsPerJob=20, useRealNumEvents=True))
    settle()
    assert dataset(made).events == 40
    assert [(job.events, job.input_files) for job in jobs(made)] == [(20, 2), (20, 2)]
    drive(Pilot())
