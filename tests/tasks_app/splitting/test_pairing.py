from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.params.splitrule import SplitRule
from tasks_app.splitting.chunk import Chunk, InputFile, Secondary
from tasks_app.splitting.limits import SplitLimits
from tasks_app.splitting.pairing import keeps_numbers, pair_again
from tasks_app.splitting.splitter import split
from tests.tasks_app.splitting.test_splitter import ids


def records(*file_ids: int) -> list[InputFile]:
    return [InputFile(n, str(n)) for n in file_ids]


@pytest.mark.parametrize(
    ("rule", "kept"), [("NF=2", True), ("NE=9", True), ("NF=2,DY=5", False), ("", False), ("NF=0", False)]
)
def test_numbers_are_kept_when_jobs_have_fixed_sizes(rule: str, kept: bool) -> None:
    assert keeps_numbers(SplitRule.parse(rule)) is kept


def test_files_that_are_tried_again_meet_their_numbers() -> None:
    pairs = pair_again(records(1, 2, 3, 4), {3: 70, 2: 60}, records(11, 12, 13, 14), {14: 70, 11: 60})
    assert (ids(pairs.masters), ids(pairs.numbers)) == ([2, 3, 1, 4], [11, 14, 12, 13])


def test_numbers_of_jobs_that_may_come_back_are_given_away_last() -> None:
    pairs = pair_again(records(1, 2, 3), {1: 60}, records(11, 12, 13), {11: 99, 13: 60})
    assert (ids(pairs.masters), ids(pairs.numbers)) == ([1, 2, 3], [13, 12, 11])


def test_a_job_whose_number_is_gone_gets_one_that_nobody_had() -> None:
    pairs = pair_again(records(1, 2), {1: 60, 2: 70}, records(11, 12, 13), {13: 70})
    assert (ids(pairs.masters), ids(pairs.numbers)) == ([1, 2], [11, 13, 12])


def test_jobs_of_several_files_get_their_numbers_whole() -> None:
    old = {1: 70, 2: 70, 3: 60, 4: 60}
    pairs = pair_again(records(1, 2, 3, 4, 5, 6), old, records(11, 12, 13), {11: 70, 13: 60}, per_job=1)
    chunk = Chunk(1, pairs.masters, (Secondary(2, pairs.numbers, files_per_job=1),))
    jobs = [(ids(g.files), ids(g.secondaries[0])) for g in split(chunk, SplitLimits(files_per_job=2)).groups]
    assert jobs == [([3, 4], [13]), ([1, 2], [11]), ([5, 6], [12])]


def test_numbers_that_a_job_no_longer_needs_come_last() -> None:
    pairs = pair_again(records(1), {1: 60}, records(11, 12, 13), {11: 60, 12: 60})
    assert ids(pairs.numbers) == [11, 13, 12]


@given(
    masters=st.lists(st.integers(0, 30), unique=True),
    numbers=st.lists(st.integers(100, 130), unique=True),
    old=st.dictionaries(st.integers(0, 30), st.integers(1, 5)),
    old_numbers=st.dictionaries(st.integers(100, 130), st.integers(1, 7)),
    per_job=st.none() | st.integers(1, 3),
)
def test_pairing_only_changes_the_order(
    masters: list[int], numbers: list[int], old: dict[int, int], old_numbers: dict[int, int], per_job: int | None
) -> None:
    pairs = pair_again(records(*masters), old, records(*numbers), old_numbers, per_job=per_job)
    assert sorted(ids(pairs.masters)) == sorted(masters)
    assert sorted(ids(pairs.numbers)) == sorted(numbers)
