"""Blocks of which some ranges are reported."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events_app.rules.range_blocks import RangeBlock
from events_app.rules.report_pieces import pieces

BLOCK = RangeBlock(7, 11, 35, 10)
"""Ranges 11-20, 21-30, 31-35."""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, [(11, 35, None)]),
        ({12: "done", 41: "done", 1: "done"}, [(11, 35, None)]),
        ({11: "done", 21: "done", 31: "done"}, [(11, 35, "done")]),
        ({11: "done"}, [(11, 20, "done"), (21, 35, None)]),
        ({21: "done"}, [(11, 20, None), (21, 30, "done"), (31, 35, None)]),
        ({31: "done"}, [(11, 30, None), (31, 35, "done")]),
        ({11: "done", 31: "done"}, [(11, 20, "done"), (21, 30, None), (31, 35, "done")]),
        ({11: "done", 21: "lost"}, [(11, 20, "done"), (21, 30, "lost"), (31, 35, None)]),
    ],
)
def test_reported_ranges_are_parted_from_the_others(
    said: dict[int, str], expected: list[tuple[int, int, str | None]]
) -> None:
    assert [tuple(piece) for piece in pieces(BLOCK, said)] == expected


@given(
    st.integers(1, 50),
    st.integers(1, 60),
    st.integers(1, 9),
    st.dictionaries(st.integers(0, 120), st.sampled_from("ab")),
)
def test_pieces_make_up_the_block_and_say_of_each_range_what_was_said(
    first: int, events: int, per_range: int, said: dict[int, str]
) -> None:
    block = RangeBlock(1, first, first + events - 1, per_range)
    found = pieces(block, said)
    assert (found[0].first, found[-1].last) == (block.first, block.last)
    assert all(one.last + 1 == other.first and one.said != other.said for one, other in pairwise(found))
    heard = {
        one.first: piece.said for piece in found for one in RangeBlock(1, piece.first, piece.last, per_range).ranges()
    }
    assert heard == {one.first: said.get(one.first) for one in block.ranges()}
