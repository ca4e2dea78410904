"""Whatever the order of events: a task that waits for another one's outputs looks at them as soon as those are complete."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tasks_app.agents import adder, feeder, job_generator, post_processor, refiner
from tasks_app.explaining.why_task import why
from tasks_app.inputs import readers
from tasks_app.inputs.registering import register_dataset
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import CatalogueDataset, Dataset, Task
from tasks_app.outcomes import children
from tests.flow.driving import add_dataset, agents_turn, dataset, parameters, reads, status, submit, task
from tests.flow.pilot import Pilot, always
from tests.locks import FOR_NO_KEY_UPDATE, another, waits

pytestmark = pytest.mark.usefixtures("tables")


def maker(files: int = 1, **more: object) -> int:
    add_dataset("lab.in", files)
    return submit(parameters("lab.p", reads("lab.in"), nFilesPerJob=1, maxAttempt=1, **more))


def reader(of: str = "lab.p.out", **more: object) -> int:
    return submit(parameters("lab.c", reads(of), **{"nFilesPerJob": 3, **more}))


def until_its_jobs_have_ended(task_id: int, pilot: Pilot) -> None:
    """Its jobs are booked, and the feeder has just looked at what they made: the task itself has not ended."""
    for _ in range(20):
        refiner.run()
        feeder.run()
        job_generator.run()
        pilot.work(1)
        adder.run()
        feeder.run()
        if dataset(task_id).files and not dataset(task_id).files_to_be_used > (
            dataset(task_id).files_finished + dataset(task_id).files_failed
        ):
            return
    raise AssertionError(status(task_id))


def end(task_id: int) -> None:
    post_processor.run()
    post_processor.run()
    assert status(task_id) in ("done", "failed"), status(task_id)


@pytest.mark.usefixtures("books")
def test_a_task_that_looked_just_before_its_input_was_closed_looks_again_at_once() -> None:
    first = maker(2)
    refiner.run()
    second = reader()
    until_its_jobs_have_ended(first, Pilot())
    assert (status(second), dataset(second).files, dataset(second).files_to_be_used) == ("defined", 2, 0)
    looked = dataset(second).state_check_time
    assert looked is not None and looked > timezone.now() - timedelta(minutes=1)
    said = why(task(second))
    assert said["blocked_by"]["code"] == "input_grows"
    assert said["blocked_by"]["sentence"] == (
        f"2 new files of lab.p.out wait until there are 60 (a bunch of 20 jobs, nChunksToWait), or until task {first}, "
        "which makes the dataset, has ended; "
        f"the next check is at {looked + timedelta(minutes=5):%H:%M:%S} UTC, or once the dataset changes here"
    )
    assert said["position"]["next_pass"] >= looked + timedelta(minutes=5)
    end(first)
    feeder.run()
    assert (status(second), dataset(second).files_to_be_used) == ("ready", 2)


@pytest.mark.usefixtures("books")
def test_a_task_that_looked_just_before_the_maker_failed_looks_again_at_once() -> None:
    first = maker()
    refiner.run()
    second = reader()
    until_its_jobs_have_ended(first, Pilot(always("failed")))
    assert status(second) == "defined"
    end(first)
    feeder.run()
    assert status(second) == "tobroken"


def test_a_look_while_the_dataset_is_being_closed_waits_for_that_and_sees_it() -> None:
    add_dataset("lab.grow", 1, open=True)
    second = reader("lab.grow", runUntilClosed=True)
    refiner.run()
    row = ("jedi_datasets", "datasetid", dataset(second).id)
    closes = """WITH c AS (UPDATE catalogue_datasets SET open = false WHERE name = 'lab.grow')
                UPDATE jedi_datasets SET statecehcktime = 'epoch' WHERE datasetid = %s"""
    waits(row, feeder.run, then=closes, values=[row[2]], held=FOR_NO_KEY_UPDATE)
    assert (status(second), dataset(second).state) == ("ready", "closed")


def test_a_first_look_that_saw_the_dataset_open_is_made_again_after_the_closing() -> None:
    add_dataset("lab.grow", 1, open=True)
    second = reader("lab.grow", runUntilClosed=True)
    refiner.run()
    row = dataset(second)
    with another() as other, transaction.atomic():
        readers.wake_readers(["lab.grow"])
        # A reader that nobody could see yet looks in this moment.
        other.execute(
            """INSERT INTO jedi_datasets (jeditaskid, datasetname, type, status, state, statecehcktime)
               SELECT jeditaskid, datasetname, type, 'ready', 'mutable', clock_timestamp() FROM jedi_datasets
                WHERE datasetid = %s""",
            [row.id],
        )
        other.commit()
    looked = Dataset.objects.filter(task_id=second, name="lab.grow").values_list("state_check_time", flat=True)
    assert [at.year for at in looked if at] == [1970, 1970]


def test_files_that_are_registered_in_a_growing_dataset_are_looked_at_at_once(tmp_path: Path) -> None:
    add_dataset("lab.grow", 1, open=True)
    (tmp_path / "more.txt").write_text("1")
    second = reader("lab.grow", runUntilClosed=True, nFilesPerJob=2, nChunksToWait=1)
    refiner.run()
    feeder.run()
    register_dataset("lab.grow", "lab", [tmp_path / "more.txt"], is_open=True)
    feeder.run()
    assert (status(second), dataset(second).files_to_be_used) == ("ready", 2)


def test_who_reads_a_container_as_a_whole_looks_when_a_dataset_of_it_changes_and_nobody_else_does() -> None:
    first = maker()
    refiner.run()
    Dataset.objects.filter(task_id=first, name="lab.p.out").update(container_name="lab.all/")
    now = timezone.now()
    rows = {
        name: Dataset.objects.create(
            task_id=first, name=name, type="input", status="ready", state=state, state_check_time=now
        )
        for name, state in (("lab.all/", "mutable"), ("lab.other", "mutable"), ("lab.p.out", "closed"))
    }
    assert readers.look_again(["lab.p.out"]) == 1
    due = {name for name, row in rows.items() if Dataset.objects.get(pk=row.id).state_check_time != now}
    assert due == {"lab.all/"}


def family() -> tuple[int, int]:
    first = maker()
    return first, submit(parameters("lab.c", reads("lab.p.out"), nFilesPerJob=3), parent=first)


def test_a_child_that_is_set_aside_when_its_parent_has_ended_is_tried_again_at_once() -> None:
    first, second = family()
    ((_, fence),) = claims.claim_tasks("t", ["registered"], 1, condition="t.jeditaskid = %(id)s", values={"id": second})
    Task.objects.filter(pk=first).update(status="done")
    task_moves.set_aside(second, fence, by="t", reason="the parent runs", wait=timedelta(hours=1), parent_ran=True)
    assert task(second).status == "pending"
    assert task(second).next_check <= timezone.now()


def test_a_child_whose_parent_runs_on_waits_as_long_as_was_said() -> None:
    _, second = family()
    ((_, fence),) = claims.claim_tasks("t", ["registered"], 1, condition="t.jeditaskid = %(id)s", values={"id": second})
    task_moves.set_aside(second, fence, by="t", reason="the parent runs", wait=timedelta(hours=1), parent_ran=True)
    assert task(second).next_check > timezone.now() + timedelta(minutes=50)


def test_a_parent_that_ends_while_its_child_is_set_aside_waits_and_wakes_it() -> None:
    first, second = family()
    sets_aside = """UPDATE jedi_tasks SET status = 'pending', next_check_at = clock_timestamp() + interval '1 hour'
                     WHERE jeditaskid = %s"""

    def wake() -> None:
        with transaction.atomic():
            children.wake_children([first])

    waits(("jedi_tasks", "jeditaskid", second), wake, then=sets_aside, values=[second])
    with connection.cursor() as cursor:
        cursor.execute("SELECT next_check_at <= clock_timestamp() FROM jedi_tasks WHERE jeditaskid = %s", [second])
        assert cursor.fetchone() == (True,)


@pytest.mark.parametrize("exists", [False, True], ids=["no container", "an empty one"])
def test_a_task_that_waits_for_a_container_is_not_tried_again_at_once_because_its_parent_ended_long_ago(
    exists: bool,
) -> None:
    if exists:
        CatalogueDataset.objects.create(name="lab.late/", scope="lab")
    first = maker()
    Task.objects.filter(pk=first).update(status="done")
    second = submit(parameters("lab.c", reads("lab.late/"), nFilesPerJob=3, waitInput=True), parent=first)
    refiner.run()
    assert status(second) == "pending"
    assert task(second).next_check > timezone.now() + timedelta(seconds=50)


def settles(parent: int, end: str) -> None:
    with transaction.atomic():
        children.settle_children(parent, end, by="t")


@pytest.mark.parametrize("end", ["done", "failed"])
def test_a_task_that_ends_locks_the_datasets_of_its_readers_after_the_rows_of_its_children(end: str) -> None:
    first, child = family()
    other = submit(parameters("lab.d", reads("lab.p.out"), nFilesPerJob=3))
    refiner.run()
    ready = Dataset.objects.filter(task_id=other, name="lab.p.out", type="input")
    assert ready.update(state="mutable", state_check_time=timezone.now()) == 1
    Task.objects.filter(pk=child).update(status="registered")
    row, free = ("jedi_tasks", "jeditaskid", child), ("jedi_datasets", "datasetid", ready.get().id)
    waits(row, lambda: settles(first, end), free=free)
    assert ready.get().state_check_time.year == 1970
    assert status(child) == ("registered" if end == "done" else "toabort")


def test_a_task_that_ends_locks_the_inputs_of_its_children_and_of_other_readers_in_one_order() -> None:
    first = maker()
    other = submit(parameters("lab.d", reads("lab.p.out"), nFilesPerJob=3))
    refiner.run()
    submit(parameters("lab.c", reads("lab.p.out"), nFilesPerJob=3, noWaitParent=True), parent=first)
    refiner.run()
    Dataset.objects.filter(name="lab.p.out", type="input").update(state="mutable", state_check_time=timezone.now())
    inputs = Dataset.objects.filter(name="lab.p.out", type="input").order_by("id")
    reads_too, of_child = inputs
    assert (reads_too.task_id, Task.objects.get(pk=of_child.task_id).parent_id) == (other, first)
    low, high = (("jedi_datasets", "datasetid", one.id) for one in inputs)
    waits(low, lambda: settles(first, "done"), free=high)
    assert {one.state_check_time.year for one in inputs.all()} == {1970}


@pytest.mark.usefixtures("books")
def test_a_chain_of_tasks_ends_without_waiting_for_the_next_regular_look() -> None:
    first = maker(4)
    refiner.run()
    second = reader()
    pilot = Pilot()
    for _ in range(12):
        agents_turn()
        pilot.work(1)
    assert (status(first), status(second)) == ("done", "done")
