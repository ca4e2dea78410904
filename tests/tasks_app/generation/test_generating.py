"""Generation: bunches of jobs in one transaction each, by any number of generators at once."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.utils import timezone

from brokerage_app.models import VerdictRecord
from jedisite.database.sql import hot_cursor
from jedisite.models import Agent
from tasks_app.agents import adder, feeder, job_generator, refiner
from tasks_app.counts import statistics
from tasks_app.explaining.why_task import explain
from tasks_app.generation.generation_pass import GenerationPass
from tasks_app.generation.job_rows import Numbers
from tasks_app.generation.picker import pick
from tasks_app.generation.rules.sources import Source
from tasks_app.generation.store import FilesTakenError, _use, _use_seeds
from tasks_app.generation.turn_facts import row_of
from tasks_app.generation.turn_steps import generate
from tasks_app.lifecycle import claims
from tasks_app.models import Dataset, File, FileRetry, Job, JobFile, JobParams, OutputTemplate, Task, TaskParams
from tests.flow.driving import (
    add_dataset,
    add_queue,
    dataset,
    inputs,
    jobs,
    parameters,
    reads,
    settle,
    states,
    status,
    submit,
    task,
    template,
    wake,
)
from tests.flow.pilot import Pilot, drive
from tests.flow.threads import together

pytestmark = pytest.mark.usefixtures("books")


def ready_task(files: int, name: str = "lab.t", **more: object) -> int:
    """A fed task, before any job."""
    add_dataset(f"{name}.in", files)
    made = submit(parameters(name, reads(f"{name}.in"), **{"nFilesPerJob": 1, **more}))
    refiner.run()
    feeder.run()
    assert status(made) == "ready"
    return made


def inputs_of_all(task_id: int) -> list[str]:
    return [name for job in jobs(task_id) for name in inputs(job.id)]


def test_generators_at_once_on_one_task_use_each_file_once() -> None:
    made = ready_task(60, nFilesPerJob=3)
    for _ in range(4):
        wake()
        together(*(lambda: job_generator.run(jobs_a_task=5) for _ in range(3)))
    found = inputs_of_all(made)
    assert len(found) == len(set(found)) == 60
    assert len(jobs(made)) == 20
    drive(Pilot())
    assert status(made) == "done"


def test_generators_at_once_on_many_tasks_leave_none_out() -> None:
    made = [ready_task(5, f"lab.t{number}") for number in range(8)]
    together(*([job_generator.run] * 4))
    assert {len(jobs(task_id)) for task_id in made} == {5}


def test_a_lost_claim_makes_no_job() -> None:
    made = ready_task(5)
    ((_, fence),) = claims.claim_tasks("a slow generator", ["ready"], 1)
    claims.release_task(made, fence)
    claims.claim_tasks("another one", ["ready"], 1)
    around = GenerationPass.of(statistics.current_grid(timezone.now()), timezone.now())
    with pytest.raises(claims.LostClaimError):
        generate(
            Task.objects.select_related("job_params_template").get(pk=made), fence, around, timezone.now(), max_jobs=9
        )
    assert not jobs(made)
    assert dataset(made).files_used == 0


def test_a_bunch_that_fails_leaves_nothing_behind() -> None:
    made = ready_task(3)
    serials = list(OutputTemplate.objects.filter(task_id=made).values_list("serial", flat=True))
    ((_, fence),) = claims.claim_tasks("test", ["ready"], 1)
    with hot_cursor() as cursor:
        cursor.execute("ALTER TABLE job_files ADD CONSTRAINT no_more CHECK (type <> 'input') NOT VALID")
    around = GenerationPass.of(statistics.current_grid(timezone.now()), timezone.now())
    row = Task.objects.select_related("job_params_template").get(pk=made)
    try:
        with pytest.raises(Exception, match="no_more"):
            generate(row, fence, around, timezone.now(), max_jobs=9)
    finally:
        with hot_cursor() as cursor:
            cursor.execute("ALTER TABLE job_files DROP CONSTRAINT no_more")
    assert not Job.objects.exists()
    assert not JobFile.objects.exists()
    assert not File.objects.filter(task_id=made, type__in=("output", "log")).exists()
    assert list(OutputTemplate.objects.filter(task_id=made).values_list("serial", flat=True)) == serials
    assert dataset(made).files_used == 0
    claims.release_task(made, fence)
    drive(Pilot())
    assert status(made) == "done"


def test_an_error_in_one_task_sets_it_free_with_the_error_on_it_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad, good = ready_task(2, "lab.bad"), ready_task(2, "lab.good")
    Task.objects.filter(pk=bad).update(current_priority=900)
    params = TaskParams.objects.get(pk=bad)
    TaskParams.objects.filter(pk=bad).delete()
    wake()
    job_generator.run()
    assert (len(jobs(bad)), len(jobs(good))) == (0, 2)
    assert task(bad).locked_by is None
    assert "had an unexpected error and will try again" in (task(bad).error_dialog or "")
    caplog.clear()
    params.save(force_insert=True)
    drive(Pilot())
    assert {status(bad), status(good)} == {"done"}
    assert not task(bad).error_dialog


def test_files_that_come_back_are_tried_before_new_ones() -> None:
    made = ready_task(150)
    job_generator.run()
    pilot = Pilot()
    for job in pilot.fetch(3):
        pilot.end(job, "failed")
    adder.run()
    assert FileRetry.objects.filter(task_id=made).count() == 3
    wake()
    last = jobs(made)[-1].id
    job_generator.run()
    newest = [name for job in jobs(made, id__gt=last) for name in inputs(job.id)]
    assert newest[:3] == [f"lab.t.in.{n:05d}" for n in range(3)]
    assert not FileRetry.objects.exists()
    drive(pilot)
    assert status(made) == "done"


def test_urgent_tasks_get_jobs_first() -> None:
    low = ready_task(200, "lab.low")
    high = ready_task(200, "lab.high")
    Task.objects.filter(pk=high).update(current_priority=900)
    wake()
    job_generator.run(tasks=1)
    assert states(high)["activated"] >= 100
    assert not jobs(low)
    drive(Pilot())
    assert {status(low), status(high)} == {"done"}


def test_pilots_adders_and_generators_at_work_at_once_neither_lock_each_other_out_nor_lose_a_file() -> None:
    add_queue("SITE_B")
    made = [ready_task(60, f"lab.t{number}", maxAttempt=4) for number in range(3)]
    running = {"on": True}

    def work() -> None:
        pilots = [Pilot(failing_sometimes, site=site) for site in ("SITE_A", "SITE_B")]
        idle = 0
        while idle < 200:
            idle = 0 if sum(pilot.work(4) for pilot in pilots) else idle + 1
            if all(status(task_id) in ("done", "finished", "failed") for task_id in made):
                break
        running["on"] = False

    def agents(*runs: object) -> None:
        while running["on"]:
            for run in runs:
                run()  # type: ignore[operator]
            wake()

    together(
        work,
        lambda: agents(adder.run),
        lambda: agents(lambda: job_generator.run(jobs_a_task=7)),
        lambda: agents(adder.run, lambda: job_generator.run(jobs_a_task=3)),
    )
    drive(Pilot(), Pilot(site="SITE_B"))
    assert {status(task_id) for task_id in made} <= {"done", "finished"}


def failing_sometimes(job: dict[str, object]) -> str:
    return "failed" if int(str(job["PandaID"])) % 5 == 0 else "finished"


def test_files_that_do_not_fill_a_job_are_said_to_be_the_reason_until_one_is_made() -> None:
    made = ready_task(2, nFilesPerJob=5)
    assert Dataset.objects.filter(task_id=made, type="input").update(state="mutable") == 1
    wake()
    job_generator.run()
    alive = {"period_s": 5, "last_ended_at": timezone.now(), "errors_in_a_row": 0, "paused": False}
    Agent.objects.update_or_create(name="job_generator", defaults=alive)
    says = "the remaining files do not fill a job yet; more files are expected"
    assert not jobs(made) and task(made).error_dialog == says
    blocked = explain(task(made), timezone.now()).blocked
    assert blocked is not None
    assert (blocked.code, blocked.sentence) == ("no_job_made", f"no job of the task is open: {says}")
    Dataset.objects.filter(task_id=made, type="input").update(state="closed")
    wake()
    job_generator.run()
    assert len(jobs(made)) == 1 and not task(made).error_dialog


def test_seeds_of_a_task_are_all_different_when_generators_work_at_once() -> None:
    made = submit(
        parameters("lab.gen", template("number", "--seed ${RNDMSEED}"), noInput=True, nEvents=400, nEventsPerJob=10)
    )
    refiner.run()
    feeder.run()
    for _ in range(5):
        wake()
        together(*(lambda: job_generator.run(jobs_a_task=4) for _ in range(3)))
    settle()
    seeds = [inputs(job.id, "random_seed")[0] for job in jobs(made)]
    assert sorted(map(int, seeds)) == list(range(1, 41))


@pytest.mark.parametrize("asked", [{}, {"reqID": 4711}])
def test_the_numbers_of_task_set_and_job_stand_in_command_lines(asked: dict[str, int]) -> None:
    text = {"type": "constant", "value": "$JEDITASKID $JOBSETID $PANDAID"}
    made = ready_task(2, jobParameters=[*parameters("lab.t", reads("lab.t.in"))["jobParameters"], text], **asked)
    settle()
    number = asked.get("reqID", made)
    for job in jobs(made):
        assert job.req_id == number
        assert JobParams.objects.get(pk=job.id).params.split()[-3:] == [str(made), str(number), str(job.id)]


def test_a_file_that_another_job_has_taken_since_it_was_picked_undoes_the_bunch() -> None:
    made = ready_task(2)
    row = row_of(dataset(made))
    with hot_cursor() as cursor:
        picked = pick(cursor, made, row, 10)
    File.objects.filter(task_id=made, lfn="lab.t.in.00001").update(status="running")
    with pytest.raises(FilesTakenError, match="1 of 2 files"), transaction.atomic(), hot_cursor() as cursor:
        _use(cursor, made, Source(row, picked), ([f.file_id for f in picked.files], [1, 2]))
    assert not JobFile.objects.exists()
    File.objects.filter(task_id=made).update(status="ready")
    drive(Pilot())
    assert status(made) == "done"


def test_a_seed_number_that_another_job_has_is_not_given_to_a_second() -> None:
    made = submit(
        parameters("lab.gen", template("number", "--seed ${RNDMSEED}"), noInput=True, nEvents=20, nEventsPerJob=10)
    )
    refiner.run()
    feeder.run()
    wake()
    job_generator.run(jobs_a_task=2)
    seed, other = File.objects.filter(task_id=made, type="random_seed").order_by("id")
    numbers = Numbers([1, 2], [], [], [1, 2])
    with pytest.raises(FilesTakenError, match="1 of 2 files"), transaction.atomic(), hot_cursor() as cursor:
        File.objects.filter(pk=other.id).update(status="ready")
        _use_seeds(cursor, made, seed.dataset_id, [seed.id, other.id], numbers)
    assert list(File.objects.filter(pk=seed.id).values_list("status", "job_id")) == [("running", seed.job_id)]


def test_a_decision_is_as_old_as_the_jobs_that_came_of_it() -> None:
    """So that the page of a job finds its decision, and none that came later."""
    made = ready_task(2)
    job_generator.run()
    assert {job.creation_time for job in jobs(made)} == {VerdictRecord.objects.get(task_id=made).first_at}
