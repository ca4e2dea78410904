"""Long texts that come in pieces: which lines are shown, which tell of errors, which hold a word."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.ddm.rules.log_lines import AROUND, MOST_HITS, LineReader


def read(pieces: list[bytes], limit: int = 1000, find: str = "", around: int = 0) -> LineReader:
    reader = LineReader(limit, find, around)
    for piece in pieces:
        reader.feed(piece)
    reader.close()
    return reader


@given(st.text(alphabet="ab\n\r", max_size=200), st.lists(st.integers(0, 200), max_size=8), st.integers(1, 60))
def test_how_a_text_is_cut_into_pieces_makes_no_difference(text: str, cuts: list[int], limit: int) -> None:
    data = text.encode()
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    found = read([data[a:b] for a, b in itertools.pairwise(places)], limit, find="A")
    lines = text.removesuffix("\n").split("\n") if text else []
    assert found.lines == len(lines)
    assert found.hit_count == sum("a" in line for line in lines)
    assert [hit.number for hit in found.hits] == [n for n, line in enumerate(lines, 1) if "a" in line][:MOST_HITS]
    shown = found.shown()
    assert [line.number for line in shown] == list(range(found.lines - len(shown) + 1, found.lines + 1))
    whole = [line for line in shown[1:]]
    assert [line.text for line in whole] == [line.rstrip("\r") for line in lines][len(lines) - len(whole) :]


@pytest.mark.parametrize(
    ("line", "is_error"),
    [
        ("Traceback (most recent call last):", True),
        ("ValueError: x", True),
        ("java.lang.NullPointerException at", True),
        ("FATAL: no more space", True),
        ("sh: 1: rooot: command not found", True),
        ("error: 0", False),
        ("errors = none, error=0 in all", False),
        ("terrors of the night", False),
        ("all is well", False),
    ],
)
def test_lines_that_tell_of_errors(line: str, is_error: bool) -> None:
    found = read([f"fine\n{line}\n".encode()])
    assert (found.errors, found.shown()[1].is_error) == ([2] if is_error else [], is_error)


def test_around_a_line_stand_those_near_it_as_far_as_they_fit() -> None:
    data = "".join(f"{n:04d}\n" for n in range(1, 2001)).encode()
    numbers = [line.number for line in read([data], 10_000, around=1000).shown()]
    assert numbers == list(range(1000 - AROUND, 1000 + AROUND + 1))
    assert [line.number for line in read([data], 20, around=1000).shown()] == [998, 999, 1000, 1001, 1002]
    assert [line.number for line in read([data], 12, around=1).shown()] == [1, 2, 3]
    assert [line.number for line in read([data], 12, around=2000).shown()] == [1998, 1999, 2000]
    assert read([data], 100, around=2001).shown() == []


def test_a_line_without_end_is_cut_and_costs_no_memory() -> None:
    reader = LineReader(100, "x")
    for _ in range(200):
        reader.feed(b"x" * 10_000)
    assert len(reader._rest) < 100_000
    reader.close()
    assert reader.lines > 10 and len(reader.shown()) == 1
    assert all(len(hit.text) <= 300 for hit in reader.hits)
