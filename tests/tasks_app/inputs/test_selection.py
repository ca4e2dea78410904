"""Which files of a listing a task wants."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jedisite.vocabulary.patterns import PatternError
from tasks_app.inputs.rules.selection import Wanted, names_given, patterns, select


class Listed(NamedTuple):
    lfn: str
    events: int | None = 10


FILES = [Listed(f"f.{n:02d}") for n in range(10)]


def chosen(wanted: Wanted, files: list[Listed] | None = None, page: int = 3) -> list[str]:
    rows = FILES if files is None else files
    pages = [rows[at : at + page] for at in range(0, len(rows), page)]
    return [f.lfn for part in select(pages, wanted, page) for f in part]


def numbers(wanted: Wanted) -> list[int]:
    return [int(name[2:]) for name in chosen(wanted)]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(), list(range(10))),
        (Wanted(include=patterns("0[13]$, 5")), [1, 3, 5]),
        (Wanted(exclude=patterns(r"0[0-6]$")), [7, 8, 9]),
        (Wanted(include=patterns("0[0-5]"), exclude=patterns("0[024]")), [1, 3, 5]),
        (Wanted(named=frozenset({"f.02", "f.09", "g"})), [2, 9]),
        (Wanted(produced=frozenset({"f.02", "f.03"}), include=patterns("3")), [3]),
        (Wanted(offset=7), [7, 8, 9]),
        (Wanted(offset=70), []),
        (Wanted(include=patterns("[13579]$"), offset=2), [5, 7, 9]),
        (Wanted(used=frozenset({"f.00", "f.05"}), most_files=5), [1, 2, 3, 4, 6]),
        (Wanted(most_files=0), []),
        (Wanted(most_events=25), [0, 1, 2]),
        (Wanted(most_events=20), [0, 1]),
        (Wanted(most_events=20, events_a_file=5), [0, 1, 2, 3]),
        (Wanted(most_files=3, most_events=25, offset=4), [4, 5, 6]),
        (Wanted(taken=frozenset({"f.01", "f.08"}), most_files=2), [0, 2]),
        (Wanted(taken=frozenset({"f.01", "f.08"}), most_files=2, with_taken=True), [0, 1, 2, 8]),
    ],
)
def test_the_filters_apply_in_their_order(wanted: Wanted, expected: list[int]) -> None:
    assert numbers(wanted) == expected


def test_files_that_make_whole_jobs_come_first_and_then_the_largest() -> None:
    files = [Listed("a", 7), Listed("b", 10), Listed("c", 25), Listed("d", 20), Listed("e", None), Listed("f", 7)]
    assert chosen(Wanted(aligned_to=10), files) == ["b", "d", "c", "a", "f", "e"]
    assert chosen(Wanted(aligned_to=10, offset=1, most_files=2), files) == ["d", "c"]


@given(st.text(min_size=1, max_size=5), st.integers(0, 10))
def test_a_random_sample_is_the_same_at_every_look(seed: str, count: int) -> None:
    wanted = Wanted(sample=seed, most_files=count)
    assert chosen(wanted) == chosen(wanted, page=10)
    assert len(chosen(wanted)) == count
    assert set(chosen(wanted)) <= set(chosen(Wanted(sample=seed, most_files=count + 1)))


def test_a_random_sample_takes_from_the_whole_dataset_and_not_from_its_front() -> None:
    files = [Listed(f"f.{n:04d}") for n in range(1000)]
    sample = chosen(Wanted(sample="1", most_files=100), files, page=50)
    assert len({name[:4] for name in sample}) == 10, "files of every hundred"
    assert chosen(Wanted(sample="2", most_files=100), files, page=50) != sample


def test_the_order_of_a_sample_does_not_depend_on_what_else_is_there() -> None:
    fewer = [f for f in FILES if f.lfn not in ("f.03", "f.07")]
    assert chosen(Wanted(sample="x"), fewer) == [n for n in chosen(Wanted(sample="x")) if n not in ("f.03", "f.07")]


def test_explicit_lists_take_texts_scopes_and_objects() -> None:
    given_files = ["a", "mc:b", {"lfn": "c", "scope": "mc"}, {"scope": "mc"}, ""]
    assert names_given(given_files) == {"a", "b", "c"}


def test_a_pattern_that_is_none_is_named() -> None:
    with pytest.raises(PatternError, match=re.escape("'a[' is not a regular expression")):
        patterns("ok, a[")
