"""How ranges stand: words, sums, strips and maps along a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events_app.rules.event_states import LIVE, EventStatus
from events_app.rules.range_standing import (
    HISTORY,
    LOOKS,
    NO_ATTEMPT,
    WORDS,
    Standing,
    counts,
    map_of,
    per_hour,
    standing_of,
    word_of,
)

S = EventStatus


def test_each_state_has_its_word_and_stands_somewhere() -> None:
    assert {word_of(status, 1) for status in S} | {NO_ATTEMPT} == set(WORDS)
    assert word_of(S.READY, 0) == word_of(S.READY, None) == NO_ATTEMPT
    assert set(LOOKS) == set(Standing)
    named = {word for look in LOOKS.values() for word in look.states}
    assert named == set(WORDS), "each state is listed by a number of some page"


@pytest.mark.parametrize("status", list(S))
def test_what_is_live_is_progress_and_what_is_not_is_history_or_lost(status: EventStatus) -> None:
    past = standing_of(status, 1, handled=True) in HISTORY
    assert past == (status not in LIVE and status is not S.FATAL)


def test_a_failed_range_is_history_once_its_copy_is_there() -> None:
    assert standing_of(S.FAILED, 3) is Standing.FAILED
    assert standing_of(S.FAILED, 3, handled=True) is Standing.PAST
    assert standing_of(S.CANCELLED, 0) is Standing.CANCELLED, "a copy that was never handed out is no attempt"
    assert standing_of(S.READY, 0) is standing_of(S.FATAL, 0) is Standing.HOPELESS


@given(st.dictionaries(st.sampled_from(Standing), st.integers(0, 10**7)))
def test_a_strip_is_filled_by_what_is_no_history(numbers: dict[Standing, int]) -> None:
    found = counts(numbers.items())
    pieces = found.pieces()
    assert found.total == sum(number for one, number in numbers.items() if one not in HISTORY)
    if not found.total:
        assert pieces == [] and found.label == "No ranges yet"
        return
    assert sum(piece.width for piece in pieces) == pytest.approx(100, abs=0.05)
    assert 0 <= found.percent <= 100 and (found.percent < 100 or found.processed == found.total)


def test_sums_in_words() -> None:
    found = counts([(Standing.MERGED, 1200), (Standing.MERGED, 1), (Standing.HOPELESS, 1), (Standing.PAST, 9)])
    assert found.label == "Of 1\u202f202 ranges: 1\u202f201 merged, 1 without attempts"
    assert found.percent == 99


def test_a_map_has_each_part_of_the_file_filled_from_the_bottom() -> None:
    cells = {0: counts([(Standing.DONE, 1), (Standing.READY, 3)]), 3: counts([(Standing.SENT, 7)])}
    done, ready, sent = map_of(cells, 4)
    assert (done.look, done.start, done.width, done.y, done.height) == ("done", 0, 75, 75, 25), (
        "none begins in the next two"
    )
    assert (ready.look, ready.y, ready.height) == ("wait", 0, 75)
    assert (sent.start, sent.y, sent.height) == (75, 0, 100)


def test_a_part_in_which_no_range_begins_is_as_the_one_before_it_also_when_it_is_named() -> None:
    """A block of long ranges reaches over parts in which none of its ranges begins."""
    cells = {0: counts([(Standing.READY, 1)]), 1: counts([(Standing.READY, 0)]), 2: counts([(Standing.PAST, 2)])}
    (ready,) = map_of(cells, 4)
    assert (ready.look, ready.start, ready.width) == ("wait", 0, 100)


def test_a_file_without_ranges_that_count_has_an_empty_map() -> None:
    """A file that has failed for good: all of its ranges are earlier attempts."""
    assert map_of({}, 4) == map_of({0: counts([(Standing.PAST, 3)]), 2: counts([(Standing.CANCELLED, 1)])}, 4) == []


def test_rates_need_a_minute() -> None:
    assert per_hour(10, 59) is None
    assert per_hour(10, 1800) == 20
