"""Jobs by events inside files: ranges as records, their numbers in the command line, and when a file is done."""

from __future__ import annotations

import pytest

from brokerage_app.models import Queue
from tasks_app.agents import adder, feeder, job_generator, refiner
from tasks_app.models import CatalogueDataset, File, Job, JobParams, TaskStatusLog
from tasks_app.outcomes.ranges import RangedFiles, files_of_ranges
from tests.flow.driving import (
    add_dataset,
    add_files,
    dataset,
    files,
    inputs,
    jobs,
    look_again,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
    template,
    wake,
)
from tests.flow.pilot import Pilot, drive, inputs_of

pytestmark = pytest.mark.usefixtures("books")

NUMBERS = template("number", "--first=${FIRSTEVENT} --skip=${SKIPEVENTS} --max=${MAXEVENTS}")


def by_events(name: str = "lab.t", **more: object) -> dict[str, object]:
    return parameters(name, reads("lab.in"), NUMBERS, **more)


def ready(params: dict[str, object]) -> int:
    made = submit(params)
    refiner.run()
    feeder.run()
    assert status(made) == "ready", task(made).error_dialog
    return made


def options(job: Job) -> tuple[int, ...]:
    """First event of the task, events skipped in the first file, events of a job."""
    words = dict(
        word[2:].split("=") for word in JobParams.objects.get(pk=job.id).params.split() if word.startswith("--")
    )
    return int(words["first"]), int(words["skip"]), int(words["max"])


def ranges(task_id: int) -> list[tuple[str, int | None, int | None, int | None]]:
    return [(f.lfn[-1], f.start_event, f.end_event, f.first_event) for f in files(task_id)]


def generate() -> None:
    wake()
    job_generator.run()


def test_jobs_get_exactly_their_events_also_across_the_ends_of_files() -> None:
    add_dataset("lab.in", 2, events=25)
    made = ready(by_events(nEventsPerJob=10, nEventsPerInputFile=25))
    generate()
    assert [options(job) for job in jobs(made)] == [(1, 0, 10), (11, 10, 10), (21, 20, 10), (31, 5, 10), (41, 15, 10)]
    assert [inputs(job.id) for job in jobs(made)][2] == ["lab.in.00000", "lab.in.00001"]


def test_a_range_that_failed_is_tried_again_with_the_same_numbers_and_never_joined_to_others() -> None:
    add_dataset("lab.in", 2, events=30)
    made = ready(by_events(nEventsPerJob=10, nEventsPerInputFile=30))
    generate()
    before = {tuple(inputs(job.id)): options(job) for job in jobs(made)}
    pilot = Pilot()
    fetched = pilot.fetch(6)
    for index in (1, 4):
        pilot.end(fetched[index], "failed")
    adder.run()
    last = jobs(made)[-1].id
    generate()
    assert [options(job) for job in jobs(made, id__gt=last)] == [(11, 10, 10), (41, 10, 10)]
    assert before
    for index in (0, 2, 3, 5):
        pilot.end(fetched[index])
    drive(pilot)
    assert status(made) == "done"


def test_a_file_is_done_when_all_of_its_ranges_are() -> None:
    add_dataset("lab.in", 3, events=20)
    made = ready(by_events(nEventsPerJob=10, nEventsPerInputFile=20, maxAttempt=1))
    generate()
    pilot = Pilot()
    fetched = pilot.fetch(6)
    for index, outcome in enumerate(("finished", "finished", "finished", "failed")):
        pilot.end(fetched[index], outcome)
    adder.run()
    master = dataset(made)
    assert (master.files, master.files_finished, master.files_failed) == (6, 3, 1)
    assert files_of_ranges(made, [master.id]) == {master.id: RangedFiles(3, 1, 1)}
    for job in fetched[4:]:
        pilot.end(job)
    drive(pilot)
    assert status(made) == "finished"


def test_the_slices_of_a_growing_dataset_go_on_where_they_stopped() -> None:
    add_dataset("lab.in", 0, open=True)
    add_files("lab.in", [5], events=25)
    made = ready(by_events(nEventsPerJob=10, useRealNumEvents=True, runUntilClosed=True, nChunksToWait=1))
    generate()
    # The last five events wait for what comes.
    assert [options(job) for job in jobs(made)] == [(1, 0, 10), (11, 10, 10)]
    # A name that stands before the one that was cut.
    add_files("lab.in", [2], events=12)
    look_again()
    feeder.run()
    generate()
    assert ranges(made) == [("5", 0, 9, 1), ("5", 10, 19, 11), ("5", 20, 24, 21), ("2", 0, 4, 26), ("2", 5, 11, 31)]
    assert [options(job) for job in jobs(made)][2:] == [(21, 20, 10)]
    CatalogueDataset.objects.filter(name="lab.in").update(open=False)
    look_again()
    drive(Pilot())
    assert status(made) == "done"
    assert sum(job.events or 0 for job in jobs(made)) == 37


def test_slices_aim_at_a_number_of_events_and_are_even_in_each_file() -> None:
    add_dataset("lab.in", 1, events=25)
    made = ready(by_events(tgtNumEventsPerJob=10, useRealNumEvents=True))
    generate()
    assert [options(job) for job in jobs(made)] == [(1, 0, 9), (10, 9, 9), (19, 18, 7)]


@pytest.mark.parametrize("events", [None, 0])
def test_files_whose_events_nobody_knows_stay_whole(events: int | None) -> None:
    add_dataset("lab.in", 1, events=events)
    add_files("lab.in", [1], events=20)
    made = ready(by_events(nEventsPerJob=10, useRealNumEvents=True))
    assert ranges(made) == [("0", None, None, None), ("1", 0, 9, 1), ("1", 10, 19, 11)]


def test_short_tails_of_inputs_are_left_out() -> None:
    add_dataset("lab.in", 0)
    add_files("lab.in", [0, 2], events=25)
    add_files("lab.in", [1], events=17)
    made = ready(by_events(nEventsPerJob=5, nEventsPerInputFile=25, skipShortInput=True))
    assert [(f.lfn[-1], f.start_event) for f in files(made)][4:9] == [
        ("0", 20),
        ("1", 0),
        ("1", 5),
        ("1", 10),
        ("2", 0),
    ]
    drive(Pilot())
    assert status(made) == "done"
    assert {job.events for job in jobs(made)} == {5}


def test_incomplete_jobs_are_not_made_when_outputs_must_not_be_short() -> None:
    add_dataset("lab.in", 7)
    made = ready(parameters("lab.t", reads("lab.in"), nFilesPerJob=3, skipShortOutput=True))
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    assert [len(inputs(job.id)) for job in jobs(made)] == [3, 3]
    assert dataset(made).files == 6
    said = "1 input file is left out (skipShortOutput), as its job would be incomplete: lab.in.00006."
    assert TaskStatusLog.objects.filter(task_id=made, reason=said).count() == 1
    said = "6 of 6 input files were processed; 1 was left out, as its job would have been incomplete (skipShortOutput)"
    assert task(made).error_dialog == said


def test_jobs_take_as_many_ranges_as_fit_the_wall_time_of_their_site() -> None:
    Queue.objects.update(core_power=10.0, min_walltime_s=1000, max_walltime_s=4700)
    add_dataset("lab.in", 1, events=100)
    made = ready(
        by_events(
            minGranularity=10,
            nEventsPerInputFile=100,
            cpuTime=900,
            cpuTimeUnit="HS06sPerEvent",
            cpuEfficiency=90,
            baseWalltime=600,
        )
    )
    generate()
    # 100 s an event: forty of them fit beside the 600 s that every job takes; the last twenty are long enough as well.
    assert [options(job) for job in jobs(made)] == [(1, 0, 40), (41, 40, 40), (81, 80, 20)]
    pilot = Pilot()
    (job, *_) = pilot.fetch(1)
    assert inputs_of(job) == ["lab.in.00000"]
    pilot.end(job)
    drive(pilot)
    assert status(made) == "done"


def test_no_job_has_more_events_than_the_task_says() -> None:
    add_dataset("lab.in", 3, events=25)
    made = ready(by_events(minGranularity=5, maxEventsPerJob=10, useRealNumEvents=True, skipShortOutput=True))
    generate()
    assert [options(job) for job in jobs(made)][:3] == [(1, 0, 10), (11, 10, 10), (21, 20, 10)]
    drive(Pilot())
    assert status(made) == "done" and sorted(job.events or 0 for job in jobs(made)) == [5, *[10] * 7]


def test_a_job_that_is_too_short_for_every_site_is_said() -> None:
    Queue.objects.update(core_power=10.0, min_walltime_s=3000, max_walltime_s=86_400)
    add_dataset("lab.in", 1, events=10)
    made = ready(
        by_events(
            minGranularity=5,
            nEventsPerInputFile=10,
            cpuTime=90,
            cpuTimeUnit="HS06sPerEvent",
            cpuEfficiency=90,
            baseWalltime=600,
        )
    )
    generate()
    assert not jobs(made)
    assert "the next job would be too short for the sites that could run it: SITE_A" in (task(made).error_dialog or "")


def test_a_task_by_events_may_stop_inside_a_file() -> None:
    add_dataset("lab.in", 2, events=25)
    made = submit(by_events(nEventsPerJob=10, nEventsPerInputFile=25, nEvents=30))
    settle()
    assert [options(job) for job in jobs(made)] == [(1, 0, 10), (11, 10, 10), (21, 20, 10)]
    assert File.objects.filter(task_id=made, type="input").count() == 4
    drive(Pilot())
    assert status(made) == "done"
