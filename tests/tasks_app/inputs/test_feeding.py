"""Feeding: the files of a dataset become rows once, whatever cuts the feed off and however often it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from brokerage_app.grid.configuring import set_value
from tasks_app.agents import feeder, refiner
from tasks_app.ddm.base import FileInfo
from tasks_app.inputs.file_rows import Fed, FeedTarget, Record, feed
from tasks_app.inputs.preprocessed import params_of
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import CatalogueFile, Dataset, File, TaskParams
from tests.flow.driving import (
    add_dataset,
    add_files,
    dataset,
    files,
    look_again,
    parameters,
    reads,
    status,
    submit,
    task,
    template,
    wake,
)
from tests.flow.pilot import Pilot, drive
from tests.flow.threads import together

pytestmark = pytest.mark.usefixtures("books")


def info(number: int, **more: object) -> FileInfo:
    return FileInfo(f"file.{number:04d}", "lab", f"guid{number}", 100, "ad:00000001", 10)._replace(**more)


def pages(*numbers: range) -> list[list[FileInfo]]:
    return [[info(n) for n in part] for part in numbers]


@pytest.fixture
def target() -> FeedTarget:
    """A refined task with an input that has no rows yet, claimed."""
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    refiner.run()
    return target_of(made)


def target_of(task_id: int) -> FeedTarget:
    ((_, fence),) = [claim for claim in claims.claim_tasks("test", ["defined", "ready"], 10) if claim[0] == task_id]
    return FeedTarget(task_id, dataset(task_id).id, "input", 3, None, True, fence)


def names(target: FeedTarget) -> list[str]:
    found = File.objects.filter(task_id=target.task_id, dataset_id=target.dataset_id).order_by("lfn")
    return list(found.values_list("lfn", flat=True))


def counted(target: FeedTarget) -> tuple[int, int, int | None]:
    row = Dataset.objects.get(pk=target.dataset_id)
    return row.files, row.files_to_be_used, row.events


def test_files_are_stored_and_counted(target: FeedTarget) -> None:
    assert feed(target, pages(range(5), range(5, 8)), timezone.now()) == Fed(8, 80)
    assert names(target) == [f"file.{n:04d}" for n in range(8)]
    assert counted(target) == (8, 8, 80)


class CutOff(RuntimeError):
    """Data management went away in the middle."""


def test_a_feed_cut_off_after_a_page_is_completed_by_the_next(target: FeedTarget) -> None:
    def broken() -> Iterator[list[FileInfo]]:
        yield pages(range(5))[0]
        raise CutOff

    with pytest.raises(CutOff):
        feed(target, broken(), timezone.now())
    assert counted(target)[0] == 5
    assert feed(target, pages(range(5), range(5, 8)), timezone.now()).files == 3
    assert names(target) == [f"file.{n:04d}" for n in range(8)]
    assert counted(target) == (8, 8, 80)


def test_feeding_again_adds_nothing(target: FeedTarget) -> None:
    feed(target, pages(range(6)), timezone.now())
    before = list(File.objects.filter(task_id=target.task_id).order_by("id").values())
    for again in (pages(range(6)), pages(range(3), range(3, 6)), pages(range(3, 6), range(3))):
        assert feed(target, again, timezone.now()) == Fed(0, 0)
    assert list(File.objects.filter(task_id=target.task_id).order_by("id").values()) == before


@pytest.mark.parametrize(
    "parts",
    [
        (range(6), range(4, 9)),
        (range(5, 9), range(5)),
        (range(3), range(3, 6), range(9)),
        (range(3, 9), range(3), range(6)),
        (range(0), range(9)),
    ],
    ids=str,
)
def test_pages_that_overlap_or_come_in_any_order_store_each_name_once(
    target: FeedTarget, parts: tuple[range, ...]
) -> None:
    assert feed(target, pages(*parts), timezone.now()).files == 9
    assert names(target) == [f"file.{n:04d}" for n in range(9)]
    assert counted(target) == (9, 9, 90)


def test_a_second_feed_stores_what_has_come_before_between_and_behind(target: FeedTarget) -> None:
    feed(target, pages(range(2, 9, 3)), timezone.now())
    assert feed(target, pages(range(4), range(4, 10)), timezone.now()).files == 7
    assert names(target) == [f"file.{n:04d}" for n in range(10)]


def test_many_slices_of_one_file_are_stored_once_and_not_compared_each_with_each(target: FeedTarget) -> None:
    number, page = 60_000, 20_000
    file = info(1, events=number)
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '15s'")
    try:
        for expected in (number, 0):
            parts = (
                [Record(file, n, n, n + 1) for n in range(first, first + page)] for first in range(0, number, page)
            )
            assert feed(target, parts, timezone.now(), slice_page=iter) == Fed(expected, expected)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
    assert counted(target) == (number, number, number)


def test_names_with_tabs_newlines_and_backslashes_come_back_as_they_were(target: FeedTarget) -> None:
    odd = [r"a\b", "a\tb", "a\nb", r"a\N", "ä∑"]
    page = [info(n, lfn=name, surl=f"file://{name}") for n, name in enumerate(odd)]
    feed(target, [page], timezone.now())
    assert names(target) == sorted(odd, key=lambda name: names(target).index(name))
    assert set(File.objects.filter(task_id=target.task_id).values_list("surl", flat=True)) == {
        f"file://{n}" for n in odd
    }


def test_a_lost_claim_writes_nothing(target: FeedTarget) -> None:
    claims.release_task(target.task_id, target.fence)
    target_of(target.task_id)
    with pytest.raises(claims.LostClaimError):
        feed(target, pages(range(5)), timezone.now())
    assert (names(target), counted(target)[0]) == ([], 0)


def test_a_claim_that_is_lost_between_two_pages_keeps_the_first_and_writes_no_second(target: FeedTarget) -> None:
    def slow() -> Iterator[list[FileInfo]]:
        yield pages(range(5))[0]
        claims.release_task(target.task_id, target.fence)
        target_of(target.task_id)
        yield pages(range(5, 8))[0]

    with pytest.raises(claims.LostClaimError):
        feed(target, slow(), timezone.now())
    assert counted(target) == (5, 5, 50)


def test_a_slow_feeder_and_the_one_that_took_over_store_each_file_once(target: FeedTarget) -> None:
    """The first holds the claim for two pages; then the second takes over and both write at once."""
    feed(target, pages(range(10)), timezone.now())
    claims.release_task(target.task_id, target.fence)
    newer = target_of(target.task_id)

    def late() -> str:
        try:
            feed(target, pages(range(10), range(10, 20)), timezone.now())
        except claims.LostClaimError:
            return "lost"
        return "stored"

    answers = together(late, lambda: feed(newer, pages(range(10), range(10, 20)), timezone.now()).files)
    assert answers == ["lost", 10]
    assert names(target) == [f"file.{n:04d}" for n in range(20)]


def test_feeders_at_once_share_the_tasks_and_feed_each_once() -> None:
    made = []
    for number in range(6):
        add_dataset(f"lab.{number}", 7)
        made.append(submit(parameters(f"lab.t{number}", reads(f"lab.{number}"), nFilesPerJob=2)))
    refiner.run()
    passes = together(*([feeder.run] * 4))
    assert sum(p.items for p in passes) == 6
    assert {status(task_id) for task_id in made} == {"ready"}
    assert {dataset(task_id).files for task_id in made} == {7}
    drive(Pilot())
    assert {status(task_id) for task_id in made} == {"done"}


def test_feeders_at_once_on_a_growing_dataset_add_each_file_once() -> None:
    add_dataset("lab.in", 3, open=True)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, runUntilClosed=True))
    drive(Pilot())
    for start in (3, 8):
        add_files("lab.in", range(start, start + 5))
        look_again()
        wake()
        together(*([feeder.run] * 3))
    assert dataset(made).files == 13


def test_a_dataset_is_looked_at_again_only_when_its_time_has_come() -> None:
    add_dataset("lab.in", 3, open=True)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, runUntilClosed=True))
    drive(Pilot())
    add_files("lab.in", range(3, 5))
    wake()
    feeder.run()
    assert dataset(made).files == 3
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jedi_datasets SET statecehcktime = clock_timestamp() - interval '301 seconds' WHERE type = 'input'"
        )
    feeder.run()
    assert dataset(made).files == 5


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ({"include": "0[13]$"}, [1, 3]),
        ({"exclude": "0[0134]$"}, [2]),
        ({"offset": 3}, [3, 4]),
        ({"files": ["lab.in.00002", "lab.in.00004", "lab.nowhere"]}, [2, 4]),
    ],
    ids=str,
)
def test_only_the_files_that_the_task_wants_are_stored(wish: dict[str, object], expected: list[int]) -> None:
    add_dataset("lab.in", 5)
    made = submit(parameters("lab.t", reads("lab.in", **wish), nFilesPerJob=1))
    refiner.run()
    feeder.run()
    stored = File.objects.filter(task_id=made, type="input").order_by("lfn").values_list("lfn", flat=True)
    assert list(stored) == [f"lab.in.{n:05d}" for n in expected]


def of_user(user: str, name: str, *items: dict[str, Any], **more: Any) -> int:
    params = parameters(name, *items, **{"noInput": not items, "userName": user, **more})
    return task_moves.submit(
        params, name=name, user=user, vo="lab", label="user", task_type="anal", priority=500, parent_id=None
    )


def known(task_id: int) -> int:
    """Pieces of work that are known of a task without datasets."""
    return dataset(task_id, "pseudo_input").files


def test_a_small_task_is_fed_in_the_next_pass_whatever_large_ones_wait() -> None:
    large = [of_user("mal", f"lab.large{n}", nEvents=3000, nEventsPerJob=1) for n in range(4)]
    refiner.run()
    feeder.run(limit=2, portion=100)
    small = of_user("ada", "lab.small", nEvents=1, nEventsPerJob=1)
    refiner.run()
    feeder.run(limit=2, portion=100)
    assert status(small) == "ready"
    assert {status(made) for made in large} == {"defined"}


def test_large_tasks_take_turns_and_none_does_again_what_it_has_done() -> None:
    large = [of_user("mal", f"lab.large{n}", nEvents=500, nEventsPerJob=1) for n in range(3)]
    refiner.run()
    for turn in range(1, 6):
        for _ in large:
            assert feeder.run(limit=1, portion=100).more
        assert [known(made) for made in large] == [turn * 100] * 3
    feeder.run(portion=100)
    assert {status(made) for made in large} == {"ready"}
    for made in large:
        starts = File.objects.filter(task_id=made, type="pseudo_input").values_list("start_event", flat=True)
        assert sorted(starts) == list(range(500))


def test_a_user_who_has_many_tasks_gets_one_turn_in_two_beside_a_user_who_has_one() -> None:
    many = [of_user("mal", f"lab.many{n}", nEvents=300, nEventsPerJob=1) for n in range(5)]
    one = of_user("ada", "lab.one", nEvents=300, nEventsPerJob=1)
    refiner.run()
    for _ in range(3):
        feeder.run(limit=2, portion=100)
    assert known(one) == 300
    assert sum(known(made) for made in many) == 300


PORTIONED: list[dict[str, Any]] = [
    {"nFilesPerJob": 1},
    {"nFilesPerJob": 1, "nFiles": 17},
    {"nEventsPerInputFile": 25, "nEventsPerJob": 10},
    {"nEventsPerInputFile": 25, "nEventsPerJob": 10, "nEvents": 230},
    {"nEventsPerInputFile": 25, "tgtNumEventsPerJob": 10},
    {"nEventsPerInputFile": 25, "nEventsPerJob": 10, "skipShortInput": True},
]


@pytest.mark.parametrize("how", PORTIONED, ids=str)
def test_an_input_that_is_fed_in_portions_has_the_rows_of_one_that_is_fed_at_once(how: dict[str, Any]) -> None:
    add_dataset("lab.in", 23, events=25)
    made = [submit(parameters(f"lab.t{n}", reads("lab.in"), **how)) for n in range(2)]
    refiner.run()
    feeder.run(limit=1)
    for _ in range(40):
        feeder.run(portion=4)
    assert {status(task_id) for task_id in made} == {"ready"}
    rows = [
        list(
            File.objects.filter(task_id=task_id, type="input")
            .order_by("id")
            .values_list("lfn", "start_event", "end_event", "first_event", "events")
        )
        for task_id in made
    ]
    assert rows[0] == rows[1]
    assert counts_of(made[0]) == counts_of(made[1])


def counts_of(task_id: int) -> tuple[int, int, int | None]:
    row = dataset(task_id)
    return row.files, row.files_to_be_used, row.events


def test_a_growing_input_that_is_fed_in_portions_goes_on_at_once() -> None:
    add_dataset("lab.in", 3, open=True)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, runUntilClosed=True))
    drive(Pilot())
    add_files("lab.in", range(3, 20))
    look_again()
    wake()
    for _ in range(6):
        feeder.run(portion=4)
    assert dataset(made).files == 20


@pytest.mark.parametrize(
    ("items", "more", "said"),
    [
        ((), {"nEvents": 10_001, "nEventsPerJob": 1}, "not 10\u202f001: give a larger nEventsPerJob"),
        ((), {"nFiles": 10_001}, "not 10\u202f001: divide the work among several tasks"),
        (
            (reads("lab.in"),),
            {"nFilesPerJob": 1, "nEventsPerInputFile": 10_001, "nEventsPerJob": 1},
            "larger nEventsPerJob",
        ),
        ((reads("lab.in"),), {"nEventsPerInputFile": 5001, "nEventsPerJob": 1}, "use a larger nEventsPerJob"),
        (
            (reads("lab.in"), template("pseudo_input", "${SEQNUMBER}", "seq_number", num_records=10_001)),
            {"nFilesPerJob": 1},
            "the input seq_number has more pieces of work",
        ),
    ],
    ids=str,
)
def test_a_task_with_more_pieces_of_work_than_is_configured_breaks_with_the_way_out(
    items: tuple[dict[str, Any], ...], more: dict[str, Any], said: str
) -> None:
    set_value("taskrefiner", "MAX_FILE_RECORDS", "10000", vo="lab", by="ada")
    add_dataset("lab.in", 2)
    made = of_user("ada", "lab.t", *items, **more)
    refiner.run()
    for _ in range(3):
        feeder.run()
    drive(Pilot())
    assert status(made) == "broken"
    assert said in (task(made).error_dialog or "")


def test_a_task_with_as_many_pieces_of_work_as_is_configured_is_taken() -> None:
    set_value("taskrefiner", "MAX_FILE_RECORDS", "10000", vo="lab", by="ada")
    made = of_user("ada", "lab.t", nEvents=10_000, nEventsPerJob=1)
    refiner.run()
    feeder.run()
    assert (status(made), known(made)) == ("ready", 10_000)


def test_a_pattern_made_to_stall_is_answered_at_once_and_rightly() -> None:
    add_dataset("lab.in", 2)
    CatalogueFile.objects.filter(lfn="lab.in.00000").update(lfn="a" * 60)
    CatalogueFile.objects.filter(lfn="lab.in.00001").update(lfn="a" * 60 + "X")
    made = submit(parameters("lab.t", reads("lab.in", include="(a+)+X"), nFilesPerJob=1))
    refiner.run()
    began = time.process_time()
    feeder.run()
    assert time.process_time() - began < 10
    assert [file.lfn for file in files(made)] == ["a" * 60 + "X"]


def test_a_stored_task_whose_pattern_is_no_longer_taken_breaks_with_the_sentence() -> None:
    add_dataset("lab.in", 2)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    refiner.run()
    raw = params_of(made)
    raw["jobParameters"] = [
        {**item, "include": "(?=b)c"} if item.get("dataset") == "lab.in" else item for item in raw["jobParameters"]
    ]
    TaskParams.objects.filter(task_id=made).update(params=raw)
    other = submit(parameters("lab.u", reads("lab.in"), nFilesPerJob=1))
    drive(Pilot())
    assert (status(made), status(other)) == ("broken", "done")
    assert "'(?=b)c' looks ahead or behind" in task(made).error_dialog


def test_no_more_files_are_stored_than_the_task_asks_for() -> None:
    add_dataset("lab.in", 9)
    made = submit(parameters("lab.t", reads("lab.in"), nFiles=4, nFilesPerJob=1))
    drive(Pilot())
    assert status(made) == "done"
    assert dataset(made).files == 4


def test_a_growing_dataset_gives_no_more_files_than_the_task_asks_for_even_when_earlier_names_come_later() -> None:
    add_dataset("lab.in", 0, open=True)
    add_files("lab.in", (5, 6))
    made = submit(parameters("lab.t", reads("lab.in"), nFiles=3, nFilesPerJob=1, runUntilClosed=True))
    drive(Pilot())
    add_files("lab.in", (1, 2, 7))
    look_again()
    drive(Pilot())
    assert dataset(made).files == 3
