"""Inputs that grow, change, shrink or never come, and what tasks make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tasks_app.agents import feeder, post_processor, refiner
from tasks_app.ddm import data_management
from tasks_app.ddm.base import SITE
from tasks_app.inputs.registering import register_container
from tasks_app.models import CatalogueDataset, Dataset, File, TaskStatusLog
from tasks_app.params.faults import ParamErrors
from tasks_app.params.schema import parse
from tasks_app.submission.known_names import check_inputs
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
)
from tests.flow.pilot import Pilot, drive

pytestmark = pytest.mark.usefixtures("books")


def growing(files: int = 0, **more: object) -> int:
    add_dataset("lab.grow", files, open=True)
    wishes = {"nFilesPerJob": 1, "runUntilClosed": True, "official": False, "skipScout": False, **more}
    return submit(parameters("lab.t", reads("lab.grow"), **wishes))


def close(name: str = "lab.grow") -> None:
    data_management().close([name], by=SITE)
    look_again()


def vanish(*numbers: int, name: str = "lab.grow") -> None:
    data_management().remove(name, [f"{name}.{number:05d}" for number in numbers], by=SITE)
    look_again()


def by_status(task_id: int) -> dict[str, int]:
    return dict(Counter(f.status for f in files(task_id)))


def counters(task_id: int) -> tuple[int, int, int, int]:
    """(files, to be used, finished, missing) of the input."""
    row = dataset(task_id)
    return row.files, row.files_to_be_used, row.files_finished, row.files_missing


# Bunches


def test_files_of_a_growing_dataset_wait_until_there_are_enough_for_a_bunch_of_jobs() -> None:
    made = growing(5, nFilesPerJob=2, nChunksToWait=3)
    drive(Pilot())
    assert (status(made), by_status(made)) == ("defined", {"pending": 5})
    assert (
        "5 new files of lab.grow wait until there are 6 (a bunch of 3 jobs, nChunksToWait), or until the dataset"
        in (task(made).error_dialog or "")
    )
    add_files("lab.grow", range(5, 10))
    look_again()
    drive(Pilot())
    assert (status(made), by_status(made)) == ("defined", {"finished": 6, "pending": 4})
    assert counters(made) == (10, 6, 6, 0)
    close()
    drive(Pilot())
    assert (status(made), counters(made)) == ("done", (10, 10, 10, 0))
    assert [len(inputs(job.id)) for job in jobs(made)] == [2] * 5


@pytest.mark.parametrize(
    ("wish", "released"),
    [
        ({}, 10),
        ({"nChunksToWait": 2}, 10),
        ({"nChunksToWait": 2, "skipScout": True, "official": True}, 18),
        ({"skipScout": True, "official": True}, 0),
    ],
)
def test_how_many_files_make_a_bunch(wish: dict[str, object], released: int) -> None:
    made = growing(19, **wish)
    refiner.run()
    feeder.run()
    assert dataset(made).files_to_be_used == released


def test_a_task_goes_back_to_defined_when_all_that_came_is_done_and_is_done_when_the_dataset_closes() -> None:
    made = growing(2, nChunksToWait=1)
    drive(Pilot())
    assert status(made) == "defined"
    close()
    drive(Pilot())
    assert status(made) == "done"
    log = list(TaskStatusLog.objects.filter(task_id=made).order_by("id").values_list("status", flat=True))
    scouts = ["scouting", "scouted", "running"]
    assert log == ["registered", "defined", "ready", *scouts, "defined", "ready", "prepared", "done"]


def test_ranges_of_events_are_released_when_their_events_fill_jobs() -> None:
    add_dataset("lab.grow", 3, open=True, events=25)
    made = submit(
        parameters(
            "lab.t", reads("lab.grow"), nEventsPerJob=10, nEventsPerInputFile=25, nChunksToWait=2, runUntilClosed=True
        )
    )
    refiner.run()
    feeder.run()
    row = dataset(made)
    assert row.events == 75
    used = File.objects.filter(task_id=made, type="input", status="ready").order_by("id")
    assert sum((f.end_event or 0) - (f.start_event or 0) + 1 for f in used) == 60


def test_files_of_a_secondary_dataset_do_not_wait() -> None:
    add_dataset("lab.side", 4, open=True)
    add_dataset("lab.in", 2)
    made = submit(
        parameters("lab.t", reads("lab.in"), reads("lab.side", "DBR", ratio=1), nFilesPerJob=1, runUntilClosed=True)
    )
    refiner.run()
    feeder.run()
    side = dataset(made, name="lab.side")
    assert (side.state, side.files_to_be_used) == ("mutable", 4)


# Changes


def test_files_that_vanish_before_a_job_has_them_are_lost() -> None:
    made = growing(4, nChunksToWait=1)
    drive(Pilot())
    add_files("lab.grow", range(4, 8))
    look_again()
    feeder.run()
    assert by_status(made) == {"finished": 4, "ready": 4}
    vanish(0, 5, 7)
    feeder.run()
    assert by_status(made) == {"finished": 4, "ready": 2, "lost": 2}
    assert counters(made) == (6, 6, 4, 2)
    close()
    drive(Pilot())
    assert status(made) == "finished"
    said = "6 of 8 input files were processed; 2 files are lost: lab.grow no longer has lab.grow.00005, lab.grow.00007"
    assert task(made).error_dialog == said
    assert not {"lab.grow.00005", "lab.grow.00007"} & {name for job in jobs(made) for name in inputs(job.id)}


def test_a_file_that_vanishes_while_it_is_pending_or_waits_for_a_retry_is_lost() -> None:
    made = growing(3, nChunksToWait=2)
    settle()
    pilot = Pilot(lambda job: "failed")
    pilot.fetch(1)
    pilot.start(pilot.ran[0])
    pilot.end(pilot.ran[0])
    from tasks_app.agents import adder

    adder.run()
    vanish(0, 2)
    feeder.run()
    assert by_status(made) == {"lost": 2, "running": 1}
    close()
    drive(Pilot())
    assert (status(made), counters(made)) == ("finished", (1, 1, 1, 2))


def test_a_lost_file_that_is_there_again_is_used_when_the_dataset_is_updated() -> None:
    made = growing(2, nChunksToWait=1)
    refiner.run()
    feeder.run()
    vanish(1)
    feeder.run()
    assert by_status(made) == {"ready": 1, "lost": 1}
    add_files("lab.grow", [1])
    Dataset.objects.filter(task_id=made, type="input").update(status="toupdate")
    close()
    drive(Pilot())
    assert (status(made), counters(made)) == ("done", (2, 2, 2, 0))


def test_a_dataset_that_is_deleted_while_its_task_runs_leaves_what_was_made_of_it() -> None:
    made = growing(2, nChunksToWait=1)
    drive(Pilot())
    add_files("lab.grow", range(2, 4))
    look_again()
    feeder.run()
    CatalogueDataset.objects.filter(name="lab.grow").delete()
    look_again()
    drive(Pilot())
    assert (status(made), counters(made), dataset(made).state) == ("finished", (2, 2, 2, 2), "missing")
    assert "2 files are lost: lab.grow no longer has lab.grow.00002, lab.grow.00003" in (task(made).error_dialog or "")


def test_lost_files_are_not_missed_where_as_many_others_were_read_as_the_task_asked_for() -> None:
    made = growing(3, nFiles=2)
    refiner.run()
    feeder.run()
    vanish(0)
    feeder.run()
    look_again()
    close()
    drive(Pilot())
    assert by_status(made) == {"lost": 1, "finished": 2}
    assert (status(made), task(made).error_dialog) == ("done", None)


def test_only_the_last_attempt_of_a_file_is_used_unless_the_item_says_usedup() -> None:
    for name, more in (("lab.a", {}), ("lab.b", {"usedup": True})):
        add_dataset(name)
        held = CatalogueDataset.objects.get(name=name)
        for lfn in ("x.000001.root.1", "x.000001.root.2", "x.000002.root.1"):
            held.files.create(lfn=lfn, scope="lab", guid="", size=1, adler32="1", endpoint="SE", url="file:///x")
        made = submit(parameters(f"{name}.t", reads(name, **more), nFilesPerJob=1))
        drive(Pilot())
        assert dataset(made).files_finished == (3 if more else 2)


# Missing and empty inputs


def test_a_missing_dataset_is_left_out_when_the_task_says_so() -> None:
    add_dataset("lab.a", 2)
    made = submit(parameters("lab.t", reads("lab.none,lab.a"), nFilesPerJob=1, ignoreMissingInDS=True))
    drive(Pilot())
    assert status(made) == "done"
    missing = dataset(made, name="lab.none")
    assert (missing.status, missing.state) == ("failed", "missing")


def test_a_task_whose_only_input_is_missing_says_so() -> None:
    made = submit(parameters("lab.t", reads("lab.none"), nFilesPerJob=1, ignoreMissingInDS=True))
    settle()
    said = "the input lab.none does not exist, and the task has no other (ignoreMissingInDS)"
    assert status(made) == "broken" and said in (task(made).error_dialog or "")


def test_a_task_that_waits_for_its_input_is_pending_until_the_dataset_is_there() -> None:
    made = submit(parameters("lab.t", reads("lab.late"), nFilesPerJob=1, waitInput=1))
    refiner.run()
    feeder.run()
    assert status(made) == "pending"
    assert "lab.late does not exist in the local catalogue; the task waits for it" in (task(made).error_dialog or "")
    add_dataset("lab.late", 1)
    drive(Pilot())
    assert status(made) == "done"


@pytest.mark.parametrize("exists", [True, False])
def test_a_task_that_may_have_no_input_is_done_without_a_job(exists: bool) -> None:
    if exists:
        add_dataset("lab.none")
    made = submit(parameters("lab.t", reads("lab.none"), nFilesPerJob=1, allowEmptyInput=True))
    drive(Pilot())
    assert (status(made), jobs(made)) == ("done", [])


# Selection


@pytest.mark.parametrize("given", [str, int, lambda number: [number], lambda number: [str(number)]])
def test_files_that_another_task_has_processed_are_left_out(given: Callable[[int], Any]) -> None:
    add_dataset("lab.in", 5)
    first = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, nFiles=2))
    drive(Pilot())
    second = submit(parameters("lab.u", reads("lab.in"), nFilesPerJob=1, nFiles=2, skipFilesUsedBy=given(first)))
    drive(Pilot())
    assert [f.lfn for f in files(second)] == ["lab.in.00002", "lab.in.00003"]


def again(name: str, first: int, **more: Any) -> dict[str, Any]:
    """A task that leaves out what another one has processed."""
    return parameters(name, reads("lab.in", **more.pop("item", {})), nFilesPerJob=1, skipFilesUsedBy=[first], **more)


def test_a_task_whose_files_another_one_has_all_processed_is_refused_at_the_door() -> None:
    add_dataset("lab.in", 5)
    first = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, nFiles=3))
    drive(Pilot())

    def refused(**more: Any) -> str:
        with pytest.raises(ParamErrors) as caught:
            check_inputs(parse(again("lab.u", first, **more)), "ada", None)
        assert [error.field for error in caught.value.errors] == ["skipFilesUsedBy"]
        return str(caught.value.errors[0].message)

    none = "skipFilesUsedBy leaves none. To process them again, give no skipFilesUsedBy."
    said = refused(item={"include": "0000[0-1]"})
    assert said == f"Task {first} has processed both selected files of lab.in already: {none}"
    assert f"{first} has processed the only selected file of lab.in" in refused(item={"files": ["lab.in.00002"]})
    assert "all 3 selected files" in refused(item={"exclude": "0000[34]"}, nFiles=1, waitInput=True)
    client = again("lab.u", first, processingType="panda-client-1.5", item={"include": "00000"})
    with pytest.raises(ParamErrors, match="--skipFilesUsedBy leaves none"):
        check_inputs(parse(client), "ada", None)
    for left in ({}, {"item": {"include": "0000[23]"}}, {"item": {"include": "00000"}, "allowEmptyInput": True}):
        check_inputs(parse(again("lab.u", first, **left)), "ada", None)
    CatalogueDataset.objects.update(open=True)
    check_inputs(parse(again("lab.u", first, item={"include": "00000"})), "ada", None)  # more files may come


@pytest.mark.parametrize(("more", "ends"), [({}, "broken"), ({"allowEmptyInput": True}, "done")])
def test_a_task_that_finds_all_of_its_files_processed_when_it_reads_them_says_by_whom(
    more: dict[str, Any], ends: str
) -> None:
    """Its offset leaves out the others: what that leaves is seen when the input is read."""
    add_dataset("lab.in", 4)
    first = submit(parameters("lab.t", reads("lab.in", include="0000[23]"), nFilesPerJob=1))
    drive(Pilot())
    made = submit(again("lab.u", first, item={"offset": 2}, nFiles=1, **more))
    refiner.run()
    feeder.run()
    said = f"task {first} has processed both selected files of lab.in already: skipFilesUsedBy leaves none"
    assert said in (task(made).error_dialog or "")
    drive(Pilot())
    assert (status(made), jobs(made)) == (ends, [])


def test_the_number_of_files_is_that_of_the_task_and_not_of_each_of_its_datasets() -> None:
    for name in ("lab.a", "lab.b", "lab.c"):
        add_dataset(name, 2)
    register_container("lab.all/", ["lab.a", "lab.b", "lab.c"])
    made = submit(parameters("lab.t", reads("lab.all/", expand=True), nFilesPerJob=1, nFiles=3))
    drive(Pilot())
    assert [f.lfn for f in files(made)] == ["lab.a.00000", "lab.a.00001", "lab.b.00000"]
    assert status(made) == "done"


def test_the_number_of_events_ends_with_the_file_that_reaches_it() -> None:
    add_dataset("lab.in", 5, events=10)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, nEvents=25))
    drive(Pilot())
    assert dataset(made).files == 3


def test_secondaries_get_no_more_files_than_the_masters_need() -> None:
    add_dataset("lab.in", 9)
    add_dataset("lab.side", 9)
    add_dataset("lab.all", 9)
    made = submit(
        parameters(
            "lab.t",
            reads("lab.in"),
            reads("lab.side", "DBR", ratio=2),
            reads("lab.all", "ALL", attributes="nosplit"),
            nFilesPerJob=1,
            nFiles=2,
        )
    )
    refiner.run()
    feeder.run()
    found = {d.name: d.files for d in Dataset.objects.filter(task_id=made, type="input")}
    assert found == {"lab.in": 2, "lab.side": 4, "lab.all": 9}


def test_of_datasets_with_consistent_indices_only_files_with_a_partner_are_used() -> None:
    for name, numbers in (("lab.a", (1, 2, 3)), ("lab.b", (2, 3, 4))):
        add_dataset(name)
        held = CatalogueDataset.objects.get(name=name)
        for n in numbers:
            lfn = f"{name[-1]}.r{n}.s{n}.root"
            held.files.create(lfn=lfn, scope="lab", guid="", size=1, adler32="1", endpoint="SE", url="file:///x")
    made = submit(
        parameters(
            "lab.t", reads("lab.a", indexConsistent=True), reads("lab.b", "TWO", indexConsistent=True), nFilesPerJob=1
        )
    )
    drive(Pilot())
    assert sorted(f.lfn for f in files(made) if f.status == "finished") == [
        "a.r2.s2.root",
        "a.r3.s3.root",
        "b.r2.s2.root",
        "b.r3.s3.root",
    ]
    assert sorted(f.lfn for f in files(made) if f.status == "lost") == ["a.r1.s1.root", "b.r4.s4.root"]
    assert status(made) == "done", "what was not asked for is not missed"


def test_a_sequence_grows_with_its_master() -> None:
    add_dataset("lab.grow", 2, open=True)
    made = submit(
        parameters(
            "lab.t",
            reads("lab.grow"),
            template("pseudo_input", "--n ${SEQNUMBER}", "seq_number"),
            nFilesPerJob=1,
            nChunksToWait=1,
            runUntilClosed=True,
        )
    )
    drive(Pilot())
    add_files("lab.grow", range(2, 5))
    close()
    drive(Pilot())
    assert status(made) == "done"
    numbers = [inputs(job.id, "pseudo_input", "seq_number") for job in jobs(made)]
    assert numbers == [["1"], ["2"], ["3"], ["4"], ["5"]]


# Containers read as a whole, and chains


def test_a_container_that_is_not_expanded_is_one_input_whose_files_name_their_datasets() -> None:
    for name in ("lab.a", "lab.b"):
        add_dataset(name, 3)
    register_container("lab.all/", ["lab.a", "lab.b"])
    made = submit(parameters("lab.t", reads("lab.all/", expand=False), nFilesPerJob=2))
    drive(Pilot())
    assert status(made) == "done"
    assert [len(inputs(job.id)) for job in jobs(made)] == [2, 2, 2], "jobs cross the boundary between datasets"
    parts = {row.id: row.name for row in Dataset.objects.filter(task_id=made, type="in_constituent")}
    assert sorted(parts.values()) == ["lab.a", "lab.b"]
    assert all(parts[f.constituent_id or 0] == f.lfn.rpartition(".")[0] for f in files(made))


def test_a_container_to_which_a_dataset_is_added_grows() -> None:
    add_dataset("lab.a", 2)
    add_dataset("lab.b", 1)
    register_container("lab.all/", ["lab.a"], is_open=True)
    made = submit(
        parameters("lab.t", reads("lab.all/", expand=False), nFilesPerJob=1, nChunksToWait=1, runUntilClosed=True)
    )
    drive(Pilot())
    assert dataset(made).files_finished == 2
    register_container("lab.all/", ["lab.b"])
    look_again()
    drive(Pilot())
    assert (status(made), dataset(made).files_finished) == ("done", 3)


def test_a_chain_of_three_tasks_passes_files_on_while_the_first_still_runs() -> None:
    add_dataset("lab.in", 6)
    first = submit(parameters("lab.p", reads("lab.in"), nFilesPerJob=1))
    more = {"nFilesPerJob": 1, "nChunksToWait": 2, "noWaitParent": True}
    second = submit(parameters("lab.q", reads("lab.p.out"), **{**more, "taskPriority": 600}), parent=first)
    third = submit(parameters("lab.r", reads("lab.q.out"), **{**more, "taskPriority": 700}), parent=second)
    pilot = Pilot()
    began = False
    for _ in range(12):
        settle()
        pilot.work(1)
        began = began or (status(first) == "running" and bool(jobs(third)))
    drive(pilot)
    assert [status(made) for made in (first, second, third)] == ["done"] * 3
    assert began, "the third task had jobs while the first ran"
    assert dataset(third).files_finished == 6


def test_a_task_looks_at_a_growing_dataset_when_the_time_has_come_by_the_clock_it_is_given() -> None:
    made = growing(2, nChunksToWait=1)
    drive(Pilot())
    add_files("lab.grow", range(2, 4))
    now = timezone.now()
    feeder.run(now=now + timedelta(seconds=200))
    assert dataset(made).files == 2
    feeder.run(now=now + timedelta(seconds=310))
    assert dataset(made).files == 4
    post_processor.run()
    assert status(made) == "ready"
