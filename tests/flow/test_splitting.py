"""How the input of whole tasks is cut into jobs: sizes, events, secondary datasets."""

from __future__ import annotations

from collections import Counter

import pytest

from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.inputs import locality
from tasks_app.inputs.registering import register_container
from tasks_app.models import Dataset, JobParams, TaskStatusLog
from tests.flow.driving import (
    add_dataset,
    dataset,
    inputs,
    jobs,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
    template,
    wake,
)
from tests.flow.pilot import Pilot, drive, failing_on

pytestmark = pytest.mark.usefixtures("books")
GB = 1024**3


def sizes(task_id: int, dataset: str | None = None) -> list[int]:
    return [len(inputs(job.id, dataset=dataset)) for job in jobs(task_id)]


def test_jobs_are_filled_up_to_a_number_of_gigabytes() -> None:
    add_dataset("lab.in", 9, size=GB)
    made = submit(parameters("lab.t", reads("lab.in"), nGBPerJob=5, nMaxFilesPerJob=100))
    drive(Pilot())
    assert status(made) == "done"
    found = sizes(made)
    assert sum(found) == 9
    assert max(found) * GB <= 5 * GB < (max(found) + 2) * GB


def test_no_job_has_more_than_the_greatest_number_of_files() -> None:
    add_dataset("lab.in", 10, size=1)
    made = submit(parameters("lab.t", reads("lab.in"), nMaxFilesPerJob=3, nGBPerJob=5))
    drive(Pilot())
    assert status(made) == "done"
    assert sizes(made) == [3, 3, 3, 1]


def test_files_are_cut_into_ranges_of_events() -> None:
    add_dataset("lab.in", 2, events=25)
    made = submit(parameters("lab.t", reads("lab.in"), nEventsPerJob=10, nEventsPerFile=25))
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    assert sum(job.events or 0 for job in jobs(made)) == 50
    assert max(job.events or 0 for job in jobs(made)) == 10
    assert dataset(made).events == 50


def test_whole_files_make_a_job_of_many_events() -> None:
    add_dataset("lab.in", 4, events=10)
    made = submit(parameters("lab.t", reads("lab.in"), nEventsPerJob=20, nEventsPerFile=10))
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    assert sizes(made) == [2, 2]


def test_a_secondary_dataset_goes_along_in_its_ratio_each_file_once() -> None:
    add_dataset("lab.in", 6)
    add_dataset("lab.pile", 12)
    made = submit(parameters("lab.t", reads("lab.in"), reads("lab.pile", "IN2", ratio=2), nFilesPerJob=2))
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    assert sizes(made, "lab.in") == [2, 2, 2]
    assert sizes(made, "lab.pile") == [4, 4, 4]
    used = Counter(name for job in jobs(made) for name in inputs(job.id, dataset="lab.pile"))
    assert set(used.values()) == {1}


def test_a_secondary_file_of_a_failed_job_is_used_again() -> None:
    add_dataset("lab.in", 3)
    add_dataset("lab.pile", 3)
    made = submit(parameters("lab.t", reads("lab.in"), reads("lab.pile", "IN2", ratio=1), nFilesPerJob=1))
    drive(Pilot(lambda job: "failed" if job["attemptNr"] == 1 and "in.00001" in job["inFiles"] else "finished"))
    assert status(made) == "done", task(made).error_dialog
    done = Counter(name for job in jobs(made, status="finished") for name in inputs(job.id, dataset="lab.pile"))
    assert done == Counter({f"lab.pile.{n:05d}": 1 for n in range(3)})


def test_every_job_gets_all_files_of_a_dataset_that_is_not_split() -> None:
    add_dataset("lab.in", 4)
    add_dataset("lab.db", 3)
    made = submit(
        parameters("lab.t", reads("lab.in"), reads("lab.db", "DB", attributes="nosplit,repeat"), nFilesPerJob=2)
    )
    drive(Pilot(failing_on()))
    assert status(made) == "done", task(made).error_dialog
    assert sizes(made, "lab.db") == [3, 3]


def test_what_jobs_find_in_cvmfs_is_named_to_them_and_neither_looked_for_nor_brought() -> None:
    add_dataset("lab.in", 2)
    add_dataset("lab.db", 3)
    given = reads("lab.db", "DB", attributes="nosplit,repeat,cvmfs")
    made = submit(parameters("lab.t", reads("lab.in"), given, nFilesPerJob=1))
    refiner.run()
    feeder.run()
    assert [one.name for one in locality.inputs_of(task(made))] == ["lab.in"]
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    assert sizes(made, "lab.db") == [0, 0] and sizes(made, "lab.in") == [1, 1]
    assert all("lab.db.00002" in JobParams.objects.get(pk=job.id).params for job in jobs(made))


def test_a_dataset_that_repeats_starts_again_from_its_first_file() -> None:
    add_dataset("lab.in", 5)
    add_dataset("lab.noise", 2)
    made = submit(
        parameters("lab.t", reads("lab.in"), reads("lab.noise", "BG", ratio=1, attributes="repeat"), nFilesPerJob=1)
    )
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    assert [inputs(job.id, dataset="lab.noise")[0][-1] for job in jobs(made)] == ["0", "1", "0", "1", "0"]


def test_a_secondary_dataset_gives_a_fixed_number_of_files_a_job() -> None:
    add_dataset("lab.in", 4)
    add_dataset("lab.pile", 6)
    made = submit(parameters("lab.t", reads("lab.in"), reads("lab.pile", "IN2", nFilesPerJob=3), nFilesPerJob=2))
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    assert sizes(made, "lab.pile") == [3, 3]


def test_a_reusable_dataset_starts_again_before_a_job_would_cross_its_end() -> None:
    add_dataset("lab.in", 3)
    add_dataset("lab.pile", 5)
    made = submit(
        parameters("lab.t", reads("lab.in"), reads("lab.pile", "IN2", nFilesPerJob=2, reusable=True), nFilesPerJob=1)
    )
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    read = [[name[-1] for name in sorted(inputs(job.id, dataset="lab.pile"))] for job in jobs(made)]
    assert read == [["0", "1"], ["2", "3"], ["0", "1"]]


def test_files_of_a_secondary_dataset_that_runs_short_are_used_again() -> None:
    add_dataset("lab.in", 7)
    add_dataset("lab.pile", 3)
    made = submit(parameters("lab.t", reads("lab.in"), reads("lab.pile", "IN2", ratio=2), nFilesPerJob=1))
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    used = Counter(name for job in jobs(made) for name in inputs(job.id, dataset="lab.pile"))
    assert sum(used.values()) == 14
    assert max(used.values()) - min(used.values()) <= 1
    assert dataset(made, name="lab.pile").files >= 14
    said = "The secondary dataset lab.pile has 3 files, too few for all jobs: they are used again."
    noted = TaskStatusLog.objects.filter(task_id=made, reason__contains="lab.pile")
    assert [(row.reason, row.by) for row in noted] == [(said, "job_generator")], "once, however often it runs short"


def test_a_secondary_dataset_by_events_is_used_again_until_its_events_suffice() -> None:
    add_dataset("lab.in", 4, events=100)
    add_dataset("lab.pile", 2, events=30)
    made = submit(parameters("lab.t", reads("lab.in"), reads("lab.pile", "IN2", eventRatio=0.5), nFilesPerJob=1))
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    assert sizes(made, "lab.pile") == [2, 2, 2, 2]


def test_an_empty_secondary_dataset_is_named_as_the_reason() -> None:
    add_dataset("lab.in", 2)
    add_dataset("lab.pile", 0)
    made = submit(parameters("lab.t", reads("lab.in"), reads("lab.pile", "IN2", ratio=1), nFilesPerJob=1))
    for _ in range(4):
        settle_once(Pilot())
    assert not jobs(made)
    assert status(made) == "pending"
    assert "the secondary dataset lab.pile has too few files left" in (task(made).error_dialog or "")


def test_no_job_is_made_before_all_inputs_are_read() -> None:
    add_dataset("lab.in", 2)
    add_dataset("lab.pile", 2)
    made = submit(parameters("lab.t", reads("lab.in"), reads("lab.pile", "IN2", ratio=1), nFilesPerJob=1))
    refiner.run()
    feeder.run()
    Dataset.objects.filter(task_id=made, name="lab.pile").update(status="toupdate")
    job_generator.run()
    assert not jobs(made)
    assert "lab.pile is toupdate: its files have to be read first" in (task(made).error_dialog or "")
    Dataset.objects.filter(task_id=made, name="lab.pile").update(status="ready")
    drive(Pilot())
    assert status(made) == "done"


def settle_once(pilot: Pilot) -> None:
    from tasks_app.agents import adder
    from tasks_app.agents.watchdogs import pending

    wake()
    for run in (refiner.run, feeder.run, pending.run, job_generator.run):
        run()
    pilot.work()
    adder.run()


def test_the_command_line_names_the_files_of_the_job() -> None:
    add_dataset("lab.in", 2)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=2))
    settle()
    (job,) = jobs(made)
    line = JobParams.objects.get(pk=job.id).params
    assert "lab.in.00000" in line
    assert "lab.in.00001" in line
    assert "lab.t.000001.root" in line
    drive(Pilot())


def test_two_outputs_may_go_to_one_dataset() -> None:
    add_dataset("lab.in", 2)
    second = template("output", "--second=lab.t.${SN}.txt", "lab.t.out")
    made = submit(parameters("lab.t", reads("lab.in"), second, nFilesPerJob=1))
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    names = sorted(name for job in jobs(made) for name in inputs(job.id, "output"))
    assert names == ["lab.t.000001.root", "lab.t.000001.txt", "lab.t.000002.root", "lab.t.000002.txt"]


@pytest.mark.parametrize("given", [["file:///a/b", 5], "file:///a/b, 5"])
def test_files_that_are_named_by_their_addresses_are_a_list_or_one_text(given: object) -> None:
    made = submit(
        parameters("lab.t", template("number", "${IN/T}"), noInput=True, pfnList=given, nFiles=2, nFilesPerJob=2)
    )
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    (line,) = JobParams.objects.values_list("params", flat=True)
    assert "'file:///a/b'" in line and "'5'" in line


SECONDARIES = {
    "a sequence": (
        template("pseudo_input", "--n=${SEQNUMBER}", "seq_number", offset=10),
        [f"--n={n}" for n in range(11, 16)],
    ),
    "a dataset": (reads("lab.s", "IN2", ratio=1), [f"--in2=lab.s.{n:05d}" for n in range(5)]),
    "a short dataset": (reads("lab.short", "IN2", ratio=1), ["--in2=lab.short.00000", "--in2=lab.short.00001"]),
    "a whole dataset": (
        reads("lab.short", "IN2", attributes="nosplit,repeat"),
        ["--in2=lab.short.00000,lab.short.00001"],
    ),
}


@pytest.mark.parametrize("kind", SECONDARIES)
@pytest.mark.parametrize("inputs_of", ["lab.a,lab.b", "lab.all/"])
def test_secondary_datasets_serve_the_jobs_of_all_masters(kind: str, inputs_of: str) -> None:
    for name, number in (("lab.a", 3), ("lab.b", 2), ("lab.s", 20), ("lab.short", 2), ("lab.bystander", 4)):
        add_dataset(name, number)
    register_container("lab.all/", ["lab.a", "lab.b"])
    item, expected = SECONDARIES[kind]
    made = submit(parameters("lab.t", reads(inputs_of, expand=True), item, nFilesPerJob=1))
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    words = [JobParams.objects.get(pk=job.id).params.split()[1] for job in jobs(made)]
    assert len(words) == 5 and sorted(set(words)) == expected, words
    assert len(words) == len(expected) or max(Counter(words).values()) in (3, 5)
