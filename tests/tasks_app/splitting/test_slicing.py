from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.splitting.seeds import take_seeds
from tasks_app.splitting.slicing import (
    Slice,
    Slicer,
    SourceFile,
    pseudo_records,
    sequence_length,
    sequence_names,
    without_short_tails,
)

sources = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 3)), max_size=8).map(
    lambda rows: [SourceFile(f"f{n}", events, block) for n, (events, block) in enumerate(rows)]
)


@given(files=sources, per_slice=st.integers(1, 30), even=st.booleans(), blocks=st.booleans())
def test_every_event_is_in_exactly_one_slice(files: list[SourceFile], per_slice: int, even: bool, blocks: bool) -> None:
    slices = list(slice_events(files, per_slice, even=even, respect_lumiblock=blocks))
    events = [(s.lfn, n) for s in slices for n in range(s.start_event or 0, (s.end_event or 0) + 1)]
    assert events == [(file.lfn, n) for file in files for n in range(file.events)]
    assert all((s.end_event or 0) - (s.start_event or 0) < per_slice for s in slices)


@given(files=sources, per_slice=st.integers(1, 30), first=st.integers(1, 1000))
def test_first_events_count_through_all_slices(files: list[SourceFile], per_slice: int, first: int) -> None:
    expected = first
    for piece in slice_events(files, per_slice, first_event=first):
        assert piece.first_event == expected
        expected += (piece.end_event or 0) - (piece.start_event or 0) + 1


def slice_events(files: list[SourceFile], per_slice: int, **more: Any) -> Iterator[Slice]:
    return Slicer(per_slice, **more).cut(files)


def spans(slices: object) -> list[tuple[str, int | None, int | None]]:
    return [(s.lfn, s.start_event, s.end_event) for s in slices]  # type: ignore[attr-defined]


def test_what_a_file_leaves_continues_in_the_next() -> None:
    files = [SourceFile("a", 25), SourceFile("b", 8)]
    assert spans(slice_events(files, 10)) == [("a", 0, 9), ("a", 10, 19), ("a", 20, 24), ("b", 0, 4), ("b", 5, 7)]


@pytest.mark.parametrize(
    ("files", "options", "expected"),
    [
        (
            [("F1", 150), ("F2", 150), ("F3", 100)],
            {"per_slice": 100},
            "F1 0-99 1, F1 100-149 101, F2 0-49 151, F2 50-149 201, F3 0-99 301",
        ),
        (
            [("A", 250), ("B", 120)],
            {"per_slice": 100, "even": True},
            "A 0-83 1, A 84-167 85, A 168-249 169, B 0-59 251, B 60-119 311",
        ),
        (
            [("A", 2000), ("B", 2000)],
            {"per_slice": 1000, "first_event": 101},
            "A 0-999 101, A 1000-1999 1101, B 0-999 2101, B 1000-1999 3101",
        ),
    ],
    ids=["nEventsPerJob", "tgtNumEventsPerJob", "firstEvent"],
)
def test_records_of_the_worked_examples(files: list[tuple[str, int]], options: dict[str, Any], expected: str) -> None:
    slices = slice_events([SourceFile(*file) for file in files], **options)
    assert ", ".join(f"{s.lfn} {s.start_event}-{s.end_event} {s.first_event}" for s in slices) == expected


def test_short_files_give_complete_records_only() -> None:
    files = without_short_tails([SourceFile("A", 95), SourceFile("B", 230), SourceFile("C", 40)], 50, 100)
    slices = slice_events(list(files), 50)
    assert [(*span, s.first_event) for s in slices for span in spans([s])] == [
        ("A", 0, 49, 1),
        ("B", 0, 49, 51),
        ("B", 50, 99, 101),
    ]


def test_even_slices_divide_each_file_by_itself() -> None:
    files = [SourceFile("a", 25), SourceFile("b", 8)]
    assert spans(slice_events(files, 10, even=True)) == [("a", 0, 8), ("a", 9, 17), ("a", 18, 24), ("b", 0, 7)]


def test_a_new_luminosity_block_starts_a_new_slice() -> None:
    files = [SourceFile("a", 15, 1), SourceFile("b", 10, 2)]
    assert spans(slice_events(files, 10, respect_lumiblock=True)) == [("a", 0, 9), ("a", 10, 14), ("b", 0, 9)]


def test_slices_end_before_the_one_that_exceeds_the_events_wanted() -> None:
    assert spans(slice_events([SourceFile("a", 40)], 10, most_events=25)) == [("a", 0, 9), ("a", 10, 19)]


def test_slices_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError):
        next(slice_events([SourceFile("a", 1)], 0))


def test_incomplete_tails_can_be_left_out() -> None:
    files = [SourceFile("a", 120), SourceFile("b", 57), SourceFile("c", 5)]
    assert [f.events for f in without_short_tails(files, 10, 100)] == [100, 50]


def test_a_pseudo_master_is_one_file_in_slices() -> None:
    records = list(pseudo_records(n_events=25, per_slice=10, first_event=101))
    assert records[0] == Slice("pseudo_lfn", 0, 9, 101)
    assert records[-1] == Slice("pseudo_lfn", 20, 24, 121)


def test_a_pseudo_master_without_events_has_as_many_records_as_files_are_wanted() -> None:
    assert [r.lfn for r in pseudo_records(n_files=2)] == ["000000:pseudo_lfn", "000001:pseudo_lfn"]
    assert list(pseudo_records()) == [Slice("pseudo_lfn")]
    assert list(pseudo_records(n_events=7)) == [Slice("pseudo_lfn", 0, 6, 1)]


@given(
    per_slice=st.none() | st.integers(1, 30),
    even=st.booleans(),
    first=st.integers(0, 100),
    more=st.integers(0, 100),
    number=st.integers(1, 3),
)
def test_a_pseudo_master_goes_on_behind_what_it_had(
    per_slice: int | None, even: bool, first: int, more: int, number: int
) -> None:
    def made(events: int, **before: int) -> list[Slice]:
        return list(pseudo_records(n_events=events, per_slice=per_slice, even=even, **before))

    ranges = (made(first) if first else []) + made(first + more, events_before=first, records_before=number)
    events = [n for s in ranges if s.start_event is not None for n in range(s.start_event, (s.end_event or 0) + 1)]
    assert events == list(range(first + more))
    assert all(s.start_event is None or s.first_event == s.start_event + 1 for s in ranges)
    files = [r.lfn for r in pseudo_records(n_files=number + 1, records_before=number, events_before=first)]
    assert files == [f"{number:06d}:pseudo_lfn"]


def test_equal_physical_names_make_different_records() -> None:
    records = pseudo_records(names=["root://x//a/f.root", "root://y//b/f.root", "z"], n_files=2)
    assert [r.lfn for r in records] == ["000000:f.root", "000001:f.root"]


@pytest.mark.parametrize(
    ("numbers", "length"),
    [
        ({"num_records": 3, "n_files": 9}, 3),
        ({"n_files": 9}, 9),
        ({"n_files": 9, "events_per_file": 100, "events_per_job": 30}, 36),
        ({"n_events": 95, "events_per_job": 10}, 10),
        ({"n_events": 95, "events_per_file": 10, "files_per_job": 2}, 5),
        ({"master_files": 20_000}, 20_000),
        ({}, 10_000),
    ],
)
def test_a_sequence_has_a_number_for_each_job(numbers: dict[str, int], length: int) -> None:
    assert sequence_length(**numbers) == length


def test_a_sequence_starts_after_its_offset() -> None:
    assert list(sequence_names(7, 3)) == ["8", "9", "10"]


def test_seeds_of_failed_jobs_are_used_before_new_ones() -> None:
    seeds = take_seeds([9, 2], highest=12, count=4)
    assert (seeds.reused, tuple(seeds.new), seeds.numbers) == ((2, 9), (13, 14), (2, 9, 13, 14))
    assert take_seeds([1, 2, 3], highest=3, count=2).numbers == (1, 2)
