"""How many files of a growing dataset are released at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.inputs.rules.bunches import bunch_in_words, chunks_to_wait, released_files, released_ranges
from tasks_app.params.splitrule import SplitRule


@pytest.mark.parametrize(
    ("rule", "to_scout", "expected"),
    [
        ("", False, 20),
        ("", True, 10),
        ("NI=1", False, 1),
        ("NT=3", False, 3),
        ("NT=3,NI=1", True, 3),
        ("NI=1", True, 1),
    ],
)
def test_the_number_of_jobs_in_a_bunch(rule: str, to_scout: bool, expected: int) -> None:
    assert chunks_to_wait(SplitRule.parse(rule), to_scout=to_scout) == expected


@pytest.mark.parametrize(
    ("rule", "to_scout", "said"),
    [
        ("NF=2,NT=3", False, "6 (a bunch of 3 jobs, nChunksToWait)"),
        ("NF=1", True, "10 (a bunch of 10 jobs, nChunksToWait)"),
        ("NE=50,EI=100,NT=1", False, "50 events (a bunch of 1 job, nChunksToWait)"),
        ("NE=50", False, "20 (a bunch of 20 jobs, nChunksToWait)"),
    ],
)
def test_how_many_are_enough_is_said_in_what_is_counted(rule: str, to_scout: bool, said: str) -> None:
    assert bunch_in_words(SplitRule.parse(rule), to_scout=to_scout) == said


@pytest.mark.parametrize(
    ("pending", "chunks", "per_job", "expected"),
    [(0, 20, 3, 0), (59, 20, 3, 0), (60, 20, 3, 60), (125, 20, 3, 120), (7, 1, None, 7), (7, 1, 2, 6)],
)
def test_whole_bunches_of_files_are_released(pending: int, chunks: int, per_job: int | None, expected: int) -> None:
    assert released_files(pending, chunks, per_job) == expected


@pytest.mark.parametrize(
    ("events", "chunks", "per_job", "expected"),
    [
        ([10] * 5, 2, 10, 4),
        ([10] * 5, 6, 10, 0),
        ([10, 5, 5, 10, 10], 3, 10, 4),
        ([], 1, 10, 0),
        ([7], 1, 10, 0),
        ([10, 0, 3], 1, 10, 1),
    ],
)
def test_ranges_are_released_when_their_events_make_whole_bunches(
    events: list[int], chunks: int, per_job: int, expected: int
) -> None:
    assert released_ranges(events, chunks, per_job) == expected


@given(st.lists(st.integers(1, 20), max_size=30), st.integers(1, 4), st.integers(1, 20))
def test_released_ranges_hold_at_least_the_bunches_and_no_range_more(events: list[int], chunks: int, job: int) -> None:
    taken = released_ranges(events, chunks, job)
    wanted = sum(events) // (chunks * job) * chunks * job
    assert sum(events[:taken]) >= wanted
    assert taken == 0 or sum(events[: taken - 1]) < wanted
