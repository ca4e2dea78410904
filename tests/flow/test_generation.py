"""Whole tasks whose jobs go to several sites, ask for different memory, and keep seeds and sequence numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.models import Queue
from tasks_app.agents import adder, feeder, job_generator, refiner
from tasks_app.explaining import deciding_again
from tasks_app.models import File, FileRetry, Job, JobParams, RetryRule, Task
from tests.flow.driving import (
    SITE,
    add_dataset,
    add_queue,
    agents_turn,
    dataset,
    files,
    inputs,
    jobs,
    parameters,
    reads,
    status,
    submit,
    task,
    template,
    wake,
)
from tests.flow.pilot import Pilot, drive

pytestmark = pytest.mark.usefixtures("books")
GB = 1024**3


def ready(params: dict[str, object]) -> int:
    """A fed task, before any job."""
    made = submit(params)
    refiner.run()
    feeder.run()
    assert status(made) == "ready", task(made).error_dialog
    return made


def generate() -> None:
    wake()
    job_generator.run()


def command(job: Job) -> str:
    return str(JobParams.objects.get(pk=job.id).params)


def option(job: Job, name: str) -> str:
    """The value of one option of a job's command line."""
    return next(word.partition("=")[2] for word in command(job).split() if word.startswith(f"--{name}="))


def test_what_is_the_shell_s_reaches_the_job_as_it_was_written() -> None:
    add_dataset("lab.in", 1)
    shell = "for p in /proc/*; do echo ${p#/proc/} ${p/a/b} ${x:-${SN}} ${HOME}; done"
    made = ready(parameters("lab.t", {"type": "constant", "value": shell}, reads("lab.in"), nFilesPerJob=1))
    generate()
    job = jobs(made)[0]
    assert command(job).startswith("for p in /proc/*; do echo ${p#/proc/} ${p/a/b} ${x:-1} ${HOME}; done")


# --- several sites ---


def test_one_step_divides_the_files_over_all_sites_each_within_its_own_limits() -> None:
    add_queue("SITE_B", work_dir_mb=3000)
    Queue.objects.filter(pk=SITE).update(work_dir_mb=12_000)
    add_dataset("lab.in", 400, size=GB)
    made = ready(parameters("lab.t", reads("lab.in")))
    generate()
    largest = {site: max(len(inputs(job.id)) for job in jobs(made, site=site)) for site in (SITE, "SITE_B")}
    assert largest[SITE] > largest["SITE_B"] >= 1
    assert all((job.max_disk_mb or 0) <= 3000 for job in jobs(made, site="SITE_B"))
    used = Counter(name for job in jobs(made) for name in inputs(job.id))
    assert set(used.values()) == {1}
    drive(Pilot(), Pilot(site="SITE_B"))
    assert status(made) == "done"


def test_a_site_that_takes_portions_gets_whole_ones_or_nothing() -> None:
    add_queue("SITE_B", params={"jobChunkSize": 10})
    add_dataset("lab.in", 47)
    made = ready(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    generate()
    at = Counter(job.site for job in jobs(made))
    assert at["SITE_B"] in (10, 20)
    assert sum(at.values()) == 47


def test_queues_are_filled_as_evenly_as_slabs_allow() -> None:
    add_queue("SITE_B")
    add_dataset("lab.in", 150)
    made = ready(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    generate()
    assert Counter(job.site for job in jobs(made)) == {SITE: 75, "SITE_B": 75}


@pytest.mark.parametrize(("given", "how"), [({}, "direct"), ({"transferType": "fax"}, "fax")])
def test_jobs_read_directly_where_queue_and_task_allow_it(given: dict[str, Any], how: str) -> None:
    add_queue("SITE_B", direct_access_lan=True, work_dir_mb=1000)
    Queue.objects.filter(pk=SITE).update(status="offline")
    add_dataset("lab.in", 2, size=5 * GB)
    made = ready(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, allowInputLAN="use", **given))
    generate()
    assert {job.transfer_type for job in jobs(made)} == {how}
    assert max(job.max_disk_mb or 0 for job in jobs(made)) < 1000


# --- files of different memory ---


def raise_memory(task_id: int, names: list[str], memory_mb: int) -> None:
    """What the retry rules do with inputs of jobs that ran out of memory."""
    File.objects.filter(task_id=task_id, lfn__in=names).update(ram_count=memory_mb)


def test_files_of_different_memory_never_share_a_job() -> None:
    add_dataset("lab.in", 6)
    made = ready(parameters("lab.t", reads("lab.in"), nFilesPerJob=2))
    generate()
    pilot = Pilot()
    for job in pilot.fetch(3):
        pilot.end(job, "failed")
    adder.run()
    raise_memory(made, ["lab.in.00001", "lab.in.00002"], 2000)
    raise_memory(made, ["lab.in.00004"], 500)
    last = jobs(made)[-1].id
    generate()
    again = {tuple(name[-1] for name in inputs(job.id)): job.min_ram_mb for job in jobs(made, id__gt=last)}
    # Nine tenths of what is declared; less than the task's own is no level of its own.
    assert again == {("1", "2"): 1800, ("0", "3"): 900, ("4", "5"): 900}
    drive(pilot)
    assert status(made) == "done"


def test_files_for_whose_memory_there_is_no_site_wait_with_a_sentence_and_the_others_go_on() -> None:
    add_dataset("lab.in", 4)
    made = ready(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    generate()
    pilot = Pilot()
    for job in pilot.fetch(2):
        pilot.end(job, "failed")
    adder.run()
    raise_memory(made, ["lab.in.00000"], 6000)
    generate()
    assert len(jobs(made)) == 5
    assert status(made) == "running"
    assert "Files that need 6000 MB wait: The only site, SITE_A, was skipped: needs 6000 MB" in (
        task(made).error_dialog or ""
    )
    for _ in range(4):
        agents_turn()
        pilot.work()
    assert dataset(made).files_finished == 3
    generate()
    assert status(made) == "pending"
    assert "need 6000 MB" in (task(made).error_dialog or "")
    helps = deciding_again.helping(deciding_again.kept_of_task(made), timezone.now())
    assert helps is not None and helps.remedies[0].sentence == (
        "Have the memory of a slot (MB) of SITE_A changed from 4000 to 6000; then SITE_A takes its jobs."
    )
    Queue.objects.update(max_memory_mb=8000)
    drive(pilot)
    assert status(made) == "done"
    assert jobs(made)[-1].min_ram_mb == 5400


def test_new_files_of_another_memory_are_not_passed_by() -> None:
    add_dataset("lab.in", 5)
    made = ready(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    raise_memory(made, ["lab.in.00001", "lab.in.00003"], 6000)
    generate()
    assert [inputs(job.id)[0][-1] for job in jobs(made)] == ["0", "2", "4"]
    assert FileRetry.objects.filter(task_id=made).count() == 2
    Queue.objects.update(max_memory_mb=8000)
    drive(Pilot())
    assert status(made) == "done"
    assert sorted(job.min_ram_mb or 0 for job in jobs(made)) == [900, 900, 900, 5400, 5400]


def with_one_pile_file(files: int, **more: object) -> int:
    """A task whose jobs read up to 7 GB and the only file of a secondary dataset, and whose first jobs, at a queue of 2000 MB
    with much scratch space, ran out of memory. What is tried again goes to BIG, which has the memory and little space."""
    Queue.objects.update(max_memory_mb=2000, work_dir_mb=9 * 1024)
    RetryRule.objects.all().delete()
    RetryRule.objects.create(error_source="exe", error_code=65, action="increase_memory")
    add_dataset("lab.in", files, size=GB)
    add_dataset("lab.pile", 1)
    pile = reads("lab.pile", "IN2", nFilesPerJob=1)
    made = ready(parameters("lab.t", reads("lab.in"), pile, nGBPerJob=7, ramCount=2000, **more))
    job_generator.run(jobs_a_task=1)
    add_queue("BIG", max_memory_mb=8000, work_dir_mb=4 * 1024)
    return made


def test_files_of_raised_memory_that_need_more_jobs_than_before_get_copies_of_the_secondary_dataset() -> None:
    """The unit is fixed, so the files are raised one by one and never the whole task."""
    made = with_one_pile_file(6, ramUnit="MBPerCoreFixed")
    pilot = Pilot()
    pilot.end(*pilot.fetch(1), "failed")
    drive(pilot, Pilot(site="BIG"))
    assert status(made) == "done", task(made).error_dialog
    assert [(job.site, inputs(job.id, dataset="lab.pile")) for job in jobs(made)] == [
        (SITE, ["lab.pile.00000"]),
        ("BIG", ["lab.pile.00000"]),
        ("BIG", ["lab.pile.00000"]),
    ]
    assert sorted(name for job in jobs(made, site="BIG") for name in inputs(job.id, dataset="lab.in")) == [
        f"lab.in.{n:05d}" for n in range(6)
    ]


def test_files_that_were_not_tried_yet_go_on_beside_those_of_raised_memory() -> None:
    made = with_one_pile_file(12, ramUnit="MBPerCoreFixed")
    pilots = Pilot(), Pilot(site="BIG")
    pilots[0].end(*pilots[0].fetch(1), "failed")
    adder.run()
    assert [file.ram_count for file in files(made) if file.lfn.startswith("lab.in")] == [3000] * 6 + [0] * 6
    drive(*pilots)
    assert status(made) == "done", task(made).error_dialog
    assert Counter(job.min_ram_mb for job in jobs(made, site="BIG"))[2700] == 2
    read = Counter(name for job in jobs(made, status="finished") for name in inputs(job.id, dataset="lab.in"))
    assert read == {f"lab.in.{n:05d}": 1 for n in range(12)}
    assert all(inputs(job.id, dataset="lab.pile") == ["lab.pile.00000"] for job in jobs(made))


def test_files_too_few_for_the_portions_of_the_site_with_the_memory_hold_up_no_others() -> None:
    add_dataset("lab.in", 8)
    Queue.objects.update(max_memory_mb=2000)
    made = ready(parameters("lab.t", reads("lab.in"), nFilesPerJob=2))
    job_generator.run(jobs_a_task=1)
    add_queue("BIG", max_memory_mb=8000, params={"jobChunkSize": 5})
    pilots = Pilot(), Pilot(site="BIG")
    pilots[0].end(*pilots[0].fetch(1), "failed")
    adder.run()
    raise_memory(made, ["lab.in.00000", "lab.in.00001"], 3000)
    drive(*pilots)
    assert dataset(made).files_finished == 6
    Queue.objects.filter(name="BIG").update(params={})
    drive(*pilots)
    assert status(made) == "done", task(made).error_dialog


def test_the_type_of_a_job_follows_its_memory() -> None:
    add_dataset("lab.in", 2)
    made = ready(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    raise_memory(made, ["lab.in.00001"], 3000)
    generate()
    assert {job.resource_type for job in jobs(made)} == {"SCORE", "SCORE_HIMEM"}


# --- sequence numbers and seeds ---


def numbered(**more: object) -> dict[str, object]:
    return parameters(
        "lab.t",
        reads("lab.in"),
        template("pseudo_input", "--number=${SEQNUMBER}", "seq_number", offset=100),
        nFilesPerJob=2,
        **more,
    )


def test_an_input_keeps_its_sequence_number_when_it_is_tried_again() -> None:
    add_dataset("lab.in", 12)
    made = ready(numbered())
    generate()
    before = {tuple(inputs(job.id, "input")): option(job, "number") for job in jobs(made)}
    assert sorted(before.values()) == [str(n) for n in range(101, 107)]
    pilot = Pilot()
    fetched = pilot.fetch(6)
    # They fail in another order than they were made.
    for index in (4, 1, 2):
        pilot.end(fetched[index], "failed")
    adder.run()
    last = jobs(made)[-1].id
    generate()
    again = {tuple(inputs(job.id, "input")): option(job, "number") for job in jobs(made, id__gt=last)}
    assert len(again) == 3
    assert again.items() <= before.items()
    for index in (0, 3, 5):
        pilot.end(fetched[index])
    drive(pilot)
    assert status(made) == "done"
    won = [option(job, "number") for job in jobs(made, status="finished")]
    assert sorted(won) == [str(n) for n in range(101, 107)]


def test_a_sequence_goes_on_when_more_inputs_come_than_there_are_numbers() -> None:
    add_dataset("lab.in", 6)
    made = ready(
        parameters(
            "lab.t",
            reads("lab.in"),
            template("pseudo_input", "--number=${SEQNUMBER}", "seq_number", offset=7, num_records=2),
            nFilesPerJob=1,
        )
    )
    drive(Pilot())
    assert status(made) == "done", task(made).error_dialog
    assert [option(job, "number") for job in jobs(made)] == ["8", "9", "10", "11", "12", "13"]


def test_the_seed_of_a_failed_job_is_used_by_the_next_job_and_a_second_one_gets_a_new_seed() -> None:
    """The example of the document: two inputs and one seed fail, and are tried again by two jobs of one input each."""
    add_dataset("lab.in", 4)
    made = ready(
        parameters("lab.t", reads("lab.in"), template("number", "--seed=${RNDMSEED}", offset=500), nMaxFilesPerJob=2)
    )
    generate()
    assert [option(job, "seed") for job in jobs(made)] == ["501", "502"]
    pilot = Pilot()
    first, second = pilot.fetch(2)
    pilot.end(first, "failed")
    pilot.end(second)
    adder.run()
    Task.objects.filter(pk=made).update(split_rule=(task(made).split_rule or "").replace("MF=2", "MF=1"))
    last = jobs(made)[-1].id
    generate()
    assert [option(job, "seed") for job in jobs(made, id__gt=last)] == ["501", "503"]
    drive(pilot)
    assert status(made) == "done"
    assert {file.max_attempt for file in files(made, "random_seed")} == {None}, "seeds have no limit"


def test_seeds_of_jobs_at_several_sites_are_all_different() -> None:
    add_queue("SITE_B")
    add_dataset("lab.in", 60)
    made = ready(parameters("lab.t", reads("lab.in"), template("number", "--seed=${RNDMSEED}"), nFilesPerJob=1))
    generate()
    assert {job.site for job in jobs(made)} == {SITE, "SITE_B"}
    assert sorted(int(option(job, "seed")) for job in jobs(made)) == list(range(1, 61))
    drive(Pilot(), Pilot(site="SITE_B"))
    assert status(made) == "done"


# --- names and numbers of jobs ---


def test_fields_of_the_input_go_into_the_names_of_outputs() -> None:
    add_dataset("lab.in.physics", 2)
    params = parameters("lab.t", reads("lab.in.physics"), nFilesPerJob=1, addNthFieldToLFN="2,3")
    params["jobParameters"][-1]["value"] = "out${MIDDLENAME}.${SN}.root"  # type: ignore[index]
    made = ready(params)
    generate()
    found = [name for job in jobs(made) for name in inputs(job.id, "output")]
    assert found == ["out.in.physics.000001.root", "out.in.physics.000002.root"]


@pytest.mark.parametrize(("cpu_time", "unit"), [(90, "HS06sPerEvent"), (90_000, "mHS06sPerEvent")])
def test_the_wall_time_of_a_job_follows_from_its_events(cpu_time: int, unit: str) -> None:
    Queue.objects.update(core_power=10.0, max_walltime_s=50_000)
    add_dataset("lab.in", 3, events=1000)
    made = ready(
        parameters(
            "lab.t",
            reads("lab.in"),
            nFilesPerJob=1,
            cpuTime=cpu_time,
            cpuTimeUnit=unit,
            cpuEfficiency=50,
            baseWalltime=600,
        )
    )
    generate()
    assert {job.max_walltime_s for job in jobs(made)} == {18_600}


def test_jobs_respect_luminosity_blocks_and_go_by_them() -> None:
    add_dataset("lab.in", 6)
    made = ready(parameters("lab.t", reads("lab.in"), nFilesPerJob=2, respectLB=True))
    for number, block in enumerate((2, 1, 2, 1, 1, 2)):
        File.objects.filter(task_id=made, lfn=f"lab.in.{number:05d}").update(lumi_block=block)
    generate()
    assert [sorted(name[-1] for name in inputs(job.id)) for job in jobs(made)] == [["1", "3"], ["4"], ["0", "2"], ["5"]]
    drive(Pilot(lambda job: "failed" if job["attemptNr"] == 1 else "finished"))
    assert status(made) == "done"


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"onSiteMerging": True}, "merging at the site"),
        ({"writeInputToFile": True}, "lists of inputs"),
    ],
)
def test_a_task_that_wants_jobs_of_a_kind_that_nobody_makes_is_refused(wish: dict[str, object], said: str) -> None:
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), **wish))
    refiner.run()
    assert status(made) == "tobroken"
    assert said in (task(made).error_dialog or "")
    drive()
    assert status(made) == "broken"
