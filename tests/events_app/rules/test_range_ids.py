from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events_app.rules.range_ids import LARGEST, RangeId, RangeIdError, parse_range_id

parts = st.tuples(*[st.integers(0, LARGEST)] * 4, st.integers(0, 2**15 - 1))


@given(parts=parts)
def test_an_id_is_read_as_it_was_written(parts: tuple[int, int, int, int, int]) -> None:
    known = RangeId(*parts)
    assert parse_range_id(str(known)) == known


def test_the_parts_of_an_id() -> None:
    assert parse_range_id("2001-901-7-11-3") == RangeId(task_id=2001, job_id=901, file_id=7, process_id=11, attempts=3)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("2001-901-7-11", "'2001-901-7-11' has 4 parts, the id of a range has 5"),
        ("2001-901-x-11-3", "'x' in '2001-901-x-11-3' is not a whole number"),
        ("2001-901--11-3", "'' in '2001-901--11-3' is not a whole number"),
        ("2001-901-7-11-3-1", "6 parts"),
        ("-1-901-7-11-3", "6 parts"),
        ("1-1-1-1-²", "is not a whole number"),
        ("1-1-1-1-१", "is not a whole number"),
        (" 1-1-1-1-1", "is not a whole number"),
        (f"1-{2**63}-1-1-1", "is too large"),
        ("1-1-1-1-32768", "is too large"),
        ("1" * 1000, "at most 99 characters, this one has 1000"),
        ("", "has 1 part,"),
        (None, "a text, not NoneType"),
        (7, "a text, not int"),
    ],
)
def test_what_is_no_id_is_refused_with_a_sentence(text: object, sentence: str) -> None:
    with pytest.raises(RangeIdError, match=sentence):
        parse_range_id(text)
