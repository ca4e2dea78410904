"""Statements that are about one dataset, task, state or place, with others of each kind beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import settings as tuned
from hypothesis import strategies as st

from jedisite.database.sql import hot_cursor
from tasks_app.agents import adder
from tasks_app.ddm.base import FileInfo
from tasks_app.generation import library_jobs
from tasks_app.inputs.slicers import slicer_of
from tasks_app.models import Dataset, File, JobMetadata, JobOutputReport
from tasks_app.params import buildstep
from tasks_app.params.placeholders import compile_template
from tasks_app.params.splitrule import SplitRule
from tasks_app.splitting.chunk import InputFile, Secondary
from tasks_app.splitting.secondaries import Cursor
from tests.flow.driving import SITE, add_dataset, dataset, parameters, reads, settle, submit
from tests.flow.pilot import Pilot, stored

Make = Callable[..., Any]
Api = Callable[..., Client]


def slices(dataset: Dataset, name: str, *ranges: tuple[int, int]) -> None:
    for first, last in ranges:
        File.objects.create(
            task_id=dataset.task_id,
            dataset_id=dataset.id,
            lfn=name,
            start_event=first,
            end_event=last,
            type="input",
            status="ready",
        )


@pytest.mark.django_db
def test_a_dataset_that_grows_is_cut_on_from_its_own_last_slice(make_task: Make, make_dataset: Make) -> None:
    task = make_task()
    grown = make_dataset(task, name="a", files=3)
    slices(grown, "a1", (0, 9), (10, 19), (20, 24))
    beside = make_dataset(task, name="b", files=2)
    slices(beside, "b1", (0, 9), (10, 12))
    slices(beside, "a2", (0, 9))
    slices(make_dataset(make_task(), name="a", files=1), "a1", (0, 1))
    cut = slicer_of(grown, SplitRule.parse("NE=10,EI=25"), {})
    assert cut is not None
    page = [FileInfo("a2", "lab", "g", 1, "ad:1", 25), FileInfo("a1", "lab", "g", 1, "ad:1", 25)]
    found = [(record[0].lfn, record[1], record[2]) for record in cut(page)]
    assert found == [("a2", 0, 4), ("a2", 5, 14), ("a2", 15, 24)]


@pytest.mark.django_db
def test_a_library_that_is_ready_is_preferred_to_a_newer_one_that_is_being_built(
    make_task: Make, make_dataset: Make
) -> None:
    task, now = make_task(), timezone.now()
    step = buildstep.BuildStep("panda", "build", "", "", compile_template(""), "mark")

    def library(
        status: str, *, of: Any = task, place: str = "SE", mark: str = "mark", age: timedelta = timedelta()
    ) -> int:
        made = make_dataset(
            of,
            name=f"lib{Dataset.objects.count()}",
            type="lib",
            destination=place,
            attributes=mark,
            creation_time=now - age,
        )
        for kind in ("lib", "log"):
            File.objects.create(
                task_id=of.id,
                dataset_id=made.id,
                lfn=f"{made.name}.{kind}",
                type=kind,
                status=status,
                job_id=1,
                scope="s",
            )
        return int(made.id)

    def usable() -> tuple[int, bool] | None:
        with hot_cursor() as cursor:
            found = library_jobs._usable(cursor, task.id, step, "SE", now)
        return (found.dataset_id, found.ready) if found else None

    library("finished", of=make_task())
    library("finished", place="OTHER_SE")
    library("finished", mark="other sources")
    library("finished", age=buildstep.KEPT + timedelta(minutes=1))
    library("failed")
    assert usable() is None
    first = library("defined")
    second = library("defined")
    assert usable() == (second, False)
    File.objects.filter(dataset_id=first).update(status="finished")
    assert usable() == (first, True)
    newest = library("finished")
    library("defined")
    assert usable() == (newest, True)


@pytest.mark.parametrize(("said", "booked"), [(None, 0), ("many", 0), (True, 0), (-1, 0), (0, 0), (7, 21)])
def test_outputs_count_the_events_that_pilots_say_and_no_others(books: None, said: Any, booked: int) -> None:
    add_dataset("lab.t.in", 3)
    made = submit(parameters("lab.t", reads("lab.t.in"), nFilesPerJob=1))
    settle()
    pilot = Pilot()
    for job in pilot.fetch(9):
        pilot.start(job)
        pilot.end(job, "finished")
        report = JobOutputReport.objects.get(pk=job["PandaID"])
        outputs = stored(job)
        JobOutputReport.objects.filter(pk=report.pk).update(
            data={lfn: {**entry, "nevents": said} for lfn, entry in outputs.items()}
        )
    adder.run()
    assert dataset(made, "output").files_finished == 3
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(neventsused, 0) FROM jedi_datasets WHERE datasetid = %s", [dataset(made, "output").id]
        )
        assert cursor.fetchone() == (booked,)


@tuned(deadline=None)
@given(
    events=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    wanted=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    ratio=st.sampled_from([0.5, 1.0, 1.5]),
)
def test_a_secondary_that_repeats_gives_each_job_the_files_whose_events_it_needs(
    events: list[int], wanted: list[int], ratio: float
) -> None:
    """Counted file by file: from where the last job ended, around the end, but no file twice in one job."""
    files = [InputFile(file_id=n, size=1, lfn=f"f{n}", events=number) for n, number in enumerate(events)]
    cursor = Cursor(Secondary(1, files, event_ratio=ratio, repeat=True), by_boundary=False)
    place = 0
    for need in wanted:
        expected, got = [], 0
        while got < need * ratio and len(expected) < len(files):
            expected.append(place)
            got += events[place]
            place = (place + 1) % len(files)
        number = cursor.wanted([], 1, need)
        assert number == len(expected) and cursor.enough(number)
        assert [file.file_id for file in cursor.take([], number)] == expected


REPORTS = [
    ({"a": [1]}, {"a": [1]}),
    ('{"a": [1]}', {"a": [1]}),
    ("words", "words"),
    ("{not JSON", "{not JSON"),
    ("[1]", [1]),
]


@pytest.mark.parametrize(("said", "kept"), REPORTS, ids=["object", "JSON", "text", "broken JSON", "list"])
@pytest.mark.parametrize("outputs_as", [dict, json.dumps], ids=["outputs as object", "outputs as text"])
def test_the_report_of_pandas_pilot_is_kept_as_object_and_as_text(
    books: None, api: Api, said: Any, kept: Any, outputs_as: Callable[[Any], Any]
) -> None:
    add_dataset("lab.t.in", 1)
    submit(parameters("lab.t", reads("lab.t.in"), nFilesPerJob=1))
    settle()
    pilot = Pilot(with_secret=False)
    (job,) = pilot.fetch()
    body = {
        "job_id": job["PandaID"],
        "attempt_nr": 1,
        "job_status": "finished",
        "site_name": SITE,
        "meta_data": said,
        "job_output_report": outputs_as(stored(job)),
    }
    answer = api("pilot", site=SITE).post("/api/v1/pilot/update_job", json.dumps(body), content_type="application/json")
    assert answer.json()["data"]["command"] == "NULL"
    assert JobMetadata.objects.get(pk=job["PandaID"]).metadata == kept
    assert JobOutputReport.objects.get(pk=job["PandaID"]).data == stored(job)
    adder.run()


@pytest.mark.django_db
@pytest.mark.parametrize("query", [{}, {"keys": "None"}, {"keys": []}])
def test_secrets_are_given_without_naming_them(api: Api, query: dict[str, Any]) -> None:
    ada = api()
    for key in ("a", "b"):
        ada.post("/api/v1/creds/set_user_secrets", {"key": key, "value": "x"}, content_type="application/json")
    answer = ada.get("/api/v1/creds/get_user_secrets", query)
    assert (answer.status_code, answer.json()["success"]) == (200, True)
    assert json.loads(answer.json()["data"]) == {"a": "x", "b": "x"}
