from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events_app.rules.event_states import EventAct, EventStatus
from events_app.rules.range_blocks import (
    DEFAULT_ATTEMPTS,
    RangeBlock,
    Surplus,
    cut_ranges,
    dynamic_input,
    joined,
    records_at_end,
    take,
)
from events_app.rules.reinsertion import is_kept, sort_out, sweeps_before, to_insert
from tasks_app.splitting.chunk import InputFile
from tasks_app.splitting.slicing import Slicer, SourceFile

blocks = st.builds(
    lambda file, first, events, per_range: RangeBlock(file, first, first + events - 1, per_range, 3),
    st.integers(1, 3),
    st.integers(1, 50),
    st.integers(1, 200),
    st.integers(1, 30),
)


def record(file_id: int, lfn: str, start: int, end: int) -> InputFile:
    return InputFile(file_id, lfn, start_event=start, end_event=end)


def ranges(blocks: list[RangeBlock]) -> list[str]:
    return [f"{one.first}-{one.last}" for block in blocks for one in block.ranges()]


@pytest.mark.parametrize(
    ("in_file", "of_b"),
    [(False, ["26-35", "36-40"]), (True, ["1-10", "11-15"])],
    ids=["numbered over the job", "numbered in each file"],
)
def test_ranges_of_two_files_in_one_job(in_file: bool, of_b: list[str]) -> None:
    found = cut_ranges([record(12, "B", 0, 14), record(11, "A", 0, 24)], 10, in_file=in_file)
    assert ranges(found) == ["1-10", "11-20", "21-25", *of_b]
    assert [(block.file_id, block.count, block.attempts) for block in found] == [(11, 3, 10), (12, 2, 10)]


@pytest.mark.parametrize("in_file", [False, True])
def test_ranges_of_a_part_of_a_file_count_from_the_beginning_of_the_file(in_file: bool) -> None:
    assert ranges(cut_ranges([record(21, "C", 50, 99)], 20, in_file=in_file)) == ["51-70", "71-90", "91-100"]


def test_a_whole_file_is_cut_by_the_events_that_it_has() -> None:
    assert ranges(cut_ranges([InputFile(1, "a", events=5)], 2, attempts=3)) == ["1-2", "3-4", "5-5"]
    assert cut_ranges([InputFile(1, "a", events=5)], 2, attempts=0)[0].attempts == DEFAULT_ATTEMPTS


def test_a_file_with_an_unknown_number_of_events_is_refused() -> None:
    with pytest.raises(ValueError, match="a cannot be cut into ranges: how many events it has is not known"):
        cut_ranges([InputFile(1, "a")], 10)
    with pytest.raises(ValueError, match="in pieces of 0 are no ranges of file 1"):
        cut_ranges([InputFile(1, "a", events=5)], 0)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    per_job=st.integers(1, 40),
    per_range=st.integers(1, 15),
)
def test_each_event_of_each_file_is_in_one_range(sizes: list[int], per_job: int, per_range: int) -> None:
    """With numbers inside files, which jumbo jobs need: whatever jobs the records go to."""
    records = Slicer(per_job).cut([SourceFile(f"f{number}", size) for number, size in enumerate(sizes)])
    seen: dict[str, list[int]] = {}
    for number, piece in enumerate(records):
        one = record(number, piece.lfn, piece.start_event or 0, piece.end_event or 0)
        for block in cut_ranges([one], per_range, in_file=True):
            for part in block.ranges():
                seen.setdefault(piece.lfn, []).extend(range(part.first, part.last + 1))
    assert list(seen.values()) == [list(range(1, size + 1)) for size in sizes]


@given(block=blocks, number=st.integers(-1, 250))
def test_a_split_block_has_the_same_ranges(block: RangeBlock, number: int) -> None:
    head, tail = block.split(number)
    parts = [part for part in (head, tail) if part is not None]
    assert ranges(parts) == ranges([block]) and sum(part.count for part in parts) == block.count
    assert (head.count if head else 0) == min(max(number, 0), block.count)
    assert joined(parts) == [block]


@given(block=blocks, out=st.sets(st.integers(0, 260)))
def test_ranges_can_be_taken_out_of_a_block(block: RangeBlock, out: set[int]) -> None:
    left = block.without(out)
    assert [one for part in left for one in part.ranges()] == [r for r in block.ranges() if r.first not in out]
    assert joined(left) == left


@given(some=st.lists(blocks, max_size=6), wanted=st.integers(0, 60))
def test_the_first_ranges_are_taken_in_order(some: list[RangeBlock], wanted: int) -> None:
    taken, left = take(some, wanted)
    assert ranges(taken) + ranges(left) == ranges(some)
    assert len(ranges(taken)) == min(wanted, len(ranges(some)))


def test_neighbours_are_joined_only_where_ranges_stay_as_they_are() -> None:
    whole, short = RangeBlock(1, 1, 20, 10, 3), RangeBlock(1, 1, 15, 10, 3)
    assert joined([RangeBlock(1, 21, 30, 10, 3), whole]) == [RangeBlock(1, 1, 30, 10, 3)]
    for other in (RangeBlock(2, 21, 30, 10, 3), RangeBlock(1, 21, 30, 10, 2), RangeBlock(1, 31, 40, 10, 3)):
        assert len(joined([whole, other])) == 2
    assert len(joined([short, RangeBlock(1, 16, 25, 10, 3)])) == 2


def test_a_block_knows_where_its_ranges_begin() -> None:
    assert [n for n in range(60) if RangeBlock(1, 26, 50, 10).has(n)] == [26, 36, 46]


def test_a_job_with_a_dynamic_number_of_events_gets_each_file_once_and_books_all_records() -> None:
    pieces = list(Slicer(5).cut([SourceFile("F", 20)]))
    assert [(p.start_event, p.end_event) for p in pieces] == [(0, 4), (5, 9), (10, 14), (15, 19)]
    records = [record(number, p.lfn, p.start_event or 0, p.end_event or 0) for number, p in enumerate(pieces, 1)]
    job = dynamic_input(one._replace(attempt=2) for one in records)
    assert [file.file_id for file in job.files] == [1]
    assert job.surplus == [Surplus(2, "F", 3), Surplus(3, "F", 3), Surplus(4, "F", 3)]
    assert records_at_end(job) == {1: 2, 2: 2, 3: 2, 4: 2}


def test_a_record_that_is_tried_again_gets_ranges_for_what_is_not_done() -> None:
    new = cut_ranges([record(7, "A", 0, 49)], 10, attempts=3)
    assert ranges(to_insert(new, {7: {11, 41}}).blocks) == ["1-10", "21-30", "31-40"]
    assert to_insert(new, {}) == (new, False)
    assert to_insert(new, {7: {1, 11, 21, 31, 41}}) == ([], True)


@pytest.mark.parametrize(
    ("keeps", "acts"),
    [
        (False, {"DISCARD": {"finished", "done", "fatal"}, "CANCEL": {"ready", "sent", "running"}}),
        (
            True,
            {
                "COMPLETE": {"finished"},
                "DISCARD": {"fatal"},
                "CANCEL": {"ready", "sent", "running"},
            },
        ),
    ],
)
def test_old_ranges_of_a_record_that_is_tried_again(keeps: bool, acts: dict[str, set[str]]) -> None:
    sweeps = sweeps_before(keeps_events=keeps)
    assert {sweep.act.name: {one.word for one in sweep.states} for sweep in sweeps} == acts
    assert [sweep.spares_jumbo for sweep in sweeps if sweep.act is EventAct.CANCEL] == [keeps]


@pytest.mark.parametrize(
    ("status", "jumbo", "kept"),
    [
        ("DONE", False, True),
        ("SENT", True, True),
        ("SENT", False, False),
        ("READY", True, False),
        ("CORRUPTED", False, False),
    ],
)
def test_what_is_kept_when_events_are_not_discarded(status: str, jumbo: bool, kept: bool) -> None:
    assert is_kept(EventStatus[status], jumbo=jumbo, keeps_events=True) is kept
    assert not is_kept(EventStatus[status], jumbo=jumbo, keeps_events=False)


@pytest.mark.parametrize(
    ("processed", "kept"),
    [
        (RangeBlock(7, 1, 20, 10), [1, 11]),
        (RangeBlock(7, 21, 25, 10), [21]),
        (RangeBlock(7, 6, 15, 10), None),
        (RangeBlock(7, 11, 15, 10), None),
        (RangeBlock(7, 1, 20, 5), None),
        (RangeBlock(7, 21, 30, 10), None),
        (RangeBlock(8, 1, 10, 10), None),
    ],
)
def test_processed_ranges_are_kept_where_they_are_ranges_now(processed: RangeBlock, kept: list[int] | None) -> None:
    found = sort_out([RangeBlock(7, 1, 25, 10, 3)], [processed])
    assert found == (({processed.file_id: kept}, frozenset()) if kept else ({}, frozenset({processed})))


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ([], [(1, 25)]),
        ([(1, 25)], []),
        ([(11, 20)], [(1, 10), (21, 25)]),
        ([(21, 25), (1, 10)], [(11, 20)]),
        ([(1, 5), (4, 12)], [(13, 25)]),
        ([(20, 99)], [(1, 19)]),
    ],
)
def test_events_that_are_taken_leave_gaps(taken: list[tuple[int, int]], left: list[tuple[int, int]]) -> None:
    block = RangeBlock(7, 1, 25, 10)
    found = block.gaps([RangeBlock(7, first, last, 5) for first, last in taken])
    assert [(one.first, one.last, one.per_range) for one in found] == [(*each, 10) for each in left]
