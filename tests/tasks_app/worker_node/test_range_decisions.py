"""What pilots decide about ranges of events: how many they fetch, when outputs are packed, and what messages mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks_app.worker_node.pilot.errors import JobFailedError
from tasks_app.worker_node.pilot.job import BadJobError
from tasks_app.worker_node.pilot.lists_of_inputs import lists_in, write_lists
from tasks_app.worker_node.pilot.range_book import BEGUN_AFTER_S, MOST, MOST_IN_A_ZIP, Range, RangeBook
from tasks_app.worker_node.pilot.range_service import ZIP_EVERY_S, zip_every_s
from tasks_app.worker_node.pilot.range_words import Failed, Finished, offer, said
from tasks_app.worker_node.pilot.range_zips import member_name, pack
from tasks_app.worker_node.pilot.storage import endpoint_of_ranges, number_of


def some(count: int, first: int = 0) -> list[Range]:
    return [Range(f"1-2-3-{first + number}-4", 10, {}) for number in range(count)]


def take_all(book: RangeBook) -> list[Range]:
    taken = []
    while one := book.hand_out(0):
        taken.append(one)
    return taken


def test_twice_the_cores_are_fetched_ahead_and_more_only_when_half_of_them_are_gone() -> None:
    book = RangeBook(4, 60, now=0)
    assert book.wanted(0) == 8
    book.take_in(some(8))
    assert book.wanted(0) == 0
    for _ in range(3):
        book.hand_out(0)
    assert book.wanted(1) == 0
    book.hand_out(0)
    assert book.wanted(1) == 4


def test_quick_ranges_are_fetched_for_some_seconds_and_never_too_many() -> None:
    book = RangeBook(1, 60, now=0)
    book.take_in(some(1000))
    take_all(book)
    assert book.wanted(100) == 50, "ten a second"
    assert book.wanted(1) == MOST
    assert book.wanted(10**6) == 2


def test_a_range_that_the_payload_has_had_for_a_minute_is_told_once() -> None:
    book = RangeBook(1, 60, now=0)
    book.take_in(some(4))
    assert book.begun_in(0) is None
    first, second, third = (book.hand_out(now) for now in (0, 5, 10))
    assert first and second and third
    assert book.begun_in(20) == BEGUN_AFTER_S - 20 and book.begun(20) == []
    book.finished(Finished(first.id, "out"), 30)
    assert book.begun_in(30) == BEGUN_AFTER_S - 25, "it is the second one now"
    assert book.begun(5 + BEGUN_AFTER_S) == [second.id]
    assert book.begun_in(5 + BEGUN_AFTER_S) == 5
    book.failed(Failed(third.id, "ERR"))
    assert book.begun_in(10**6) is None, "what waits has not begun"


def test_an_empty_answer_and_a_soft_kill_end_the_fetching() -> None:
    book = RangeBook(1, 60, now=0)
    book.take_in(some(1))
    book.take_in([])
    assert book.wanted(0) == 0 and not book.over, "one waits"
    take_all(book)
    assert book.over
    book = RangeBook(1, 60, now=0)
    book.take_in(some(2))
    book.stop()
    assert book.over and book.hand_out(0) is None and book.wanted(0) == 0


def test_outputs_wait_for_others_as_long_as_the_oldest_may_or_until_there_are_many() -> None:
    book = RangeBook(1, 60, now=0)
    book.take_in(some(MOST_IN_A_ZIP + 5))
    ranges = take_all(book)
    assert book.packs_in(0) is None
    assert book.finished(Finished(ranges[0].id, "a"), 10)
    assert (book.packs_in(20), book.packs_in(70), book.packs_in(99)) == (50, 0, 0)
    for one in ranges[1:]:
        book.finished(Finished(one.id, "a"), 30)
    assert book.packs_in(30) == 0
    batch = book.outputs()
    assert len(batch) == MOST_IN_A_ZIP and [one.range_id for one in batch] == [one.id for one in ranges[:MOST_IN_A_ZIP]]
    book.give_back(batch, 40)
    assert (book.packs_in(40), book.packs_in(100), book.troubles) == (60, 0, 1), "not at once again"
    assert book.outputs() == batch and len(book.outputs()) == 5 and book.packs_in(100) is None


def test_only_ranges_that_the_payload_has_count_and_each_once() -> None:
    book = RangeBook(1, 60, now=0)
    book.take_in(some(3))
    one, two, three = take_all(book)
    assert book.finished(Finished(one.id, "a"), 1) and not book.finished(Finished(one.id, "a"), 1)
    assert book.failed(Failed(two.id, "why")) and not book.finished(Finished(two.id, "a"), 1)
    assert not book.failed(Failed("9-9-9-9-9", "why"))
    assert [failed.range_id for failed in book.failures()] == [two.id] and not book.has_failures
    book.told([one.id, one.id, three.id])
    assert book.events_done == 10, "the third is not finished"


@pytest.mark.parametrize(
    ("message", "meant"),
    [
        (b"Ready for events", "Ready for events"),
        (b"/a/b.root,ID:1-2-3-4-5,CPU:1,WALL:2", Finished("1-2-3-4-5", "/a/b.root")),
        (b"out,CPU:1, ID:1-2-3-4-5", Finished("1-2-3-4-5", "out")),
        (
            b"ERR_ATHENAMP_PROCESS 1-2-3-4-5: Failed to process",
            Failed("1-2-3-4-5", "ERR_ATHENAMP_PROCESS: Failed to process"),
        ),
        (b"ERR_TE_FATAL 1-2-3-4-5: no\n", Failed("1-2-3-4-5", "ERR_TE_FATAL: no", fatal=True)),
        (b"ERR_X 1-2-3: no", "ERR_X 1-2-3: no"),
        (b"out,ID:", "out,ID:"),
        (b",ID:1-2-3-4-5", ",ID:1-2-3-4-5"),
        (b"\xff", "\ufffd"),
        (b"", ""),
    ],
)
def test_words_of_a_payload(message: bytes, meant: object) -> None:
    assert said(message) == meant


def test_words_for_a_payload() -> None:
    assert offer([]) == b"No more events"
    assert (
        offer([{"eventRangeID": "1-2-3-4-5", "startEvent": 4}]) == b'[{"eventRangeID": "1-2-3-4-5", "startEvent": 4}]'
    )


def test_members_of_a_zip_file_say_their_range(tmp_path: Path) -> None:
    assert member_name(Finished("1-2-3-4-5", "/x/out.1-2-3-4-5.root")) == "out.1-2-3-4-5.root"
    assert member_name(Finished("1-2-3-4-5", "out")) == "out.1-2-3-4-5"
    target = tmp_path / "z.tar"
    packed, failed = pack([Finished("1-2-3-4-5", "gone")], tmp_path, target)
    assert not packed and [one.range_id for one in failed] == ["1-2-3-4-5"] and not target.exists()


def test_lists_of_inputs(tmp_path: Path) -> None:
    lists = lists_in("inputFor_a:x,y^inputFor_b:x")
    assert lists == {"inputFor_a": ["x", "y"], "inputFor_b": ["x"]} and lists_in("") == {}
    write_lists(lists, tmp_path)
    assert (tmp_path / "inputFor_a").read_text() == "x\ny\n"
    with pytest.raises(FileExistsError):
        write_lists(lists, tmp_path)
    for bad in ("payload.stdout:x", "inputFor_../a:x", "inputFor_a:x^inputFor_a:y", ":"):
        with pytest.raises(BadJobError, match="writeToFile"):
            lists_in(bad)


def test_what_a_queue_says_of_ranges() -> None:
    assert endpoint_of_ranges({"astorages": {"es_events": ["ES"], "write_lan": ["A"]}}) == "ES"
    assert endpoint_of_ranges({"astorages": {"write_lan": ["A"]}}) == "A" and endpoint_of_ranges({}) == ""
    assert number_of("A", {"A": {"id": 7}}) == 7
    for odd in ({}, {"A": {}}, {"A": {"id": None}}, {"A": {"id": True}}):
        with pytest.raises(JobFailedError, match="has no number"):
            number_of("A", odd)
    assert [zip_every_s({"zip_time_gap": value}) for value in (3, 0.5, 0, None, "3")] == [3, 0.5, *[ZIP_EVERY_S] * 3]
