from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.inputs.rules.scout_share import CHUNKS, MasterFiles, release, will_scout
from tasks_app.params.splitrule import SplitRule
from tasks_app.scouts.rules.scouts import (
    Due,
    Refresh,
    RefreshView,
    ScoutProgress,
    chunk_is_scout,
    judged_when,
    measure_again,
    refresh_when,
    scout_priority,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def released(rule: str, *masters: MasterFiles) -> list[int] | None:
    """Files released for scouts, or None when there are no scouts."""
    found = release(SplitRule.parse(rule), masters)
    return [n for _, n in found.files] if found.scouting else None


def files(count: int, **more: object) -> MasterFiles:
    return MasterFiles(1, count, count, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "masters", "wanted"),
    [
        ("US=2", [files(500)], [10]),
        ("US=2,NF=7", [files(500)], [70]),
        ("US=2,NF=0", [files(500)], [10]),
        ("US=2,NF=7", [files(70)], None),
        ("US=2,NF=7", [files(71)], [70]),
        ("US=2", [files(3)], None),
        ("US=2", [files(3, mutable=True)], [3]),  # more may come
        ("US=2", [MasterFiles(1, 50, 4)], [4]),  # others are pending
        ("US=1", [files(500)], None),
        ("US=3", [files(500)], None),
        ("", [files(500)], None),
        ("US=2,LX=3,GB=4", [files(500)], None),
        ("US=2,NE=100", [files(50, events=(200,) * 50)], [5]),
        ("US=2,NE=100", [files(50, events=(30,) * 50)], [34]),
        ("US=2,NE=100,NF=2", [files(50, events=(200,) * 50)], [20]),
        ("US=2,NF=5,EI=100,DY=20", [files(500)], [250]),  # a chunk counts event ranges
        ("US=2,RR=1,NG=5", [files(500, job_files=(3, 4, 5) * 5)], [39]),
        ("US=2,RR=1", [files(500)], [10]),
        # dataset after dataset: 3 chunks, then 5, then the last 2
        ("US=2,NF=2", [files(6), files(9), files(80)], [6, 9, 4]),
        ("US=2,NF=2", [files(600), files(9)], [20, 0]),
    ],
)
def test_ten_chunks_are_released(rule: str, masters: list[MasterFiles], wanted: list[int] | None) -> None:
    assert released(rule, *masters) == wanted


def test_without_scouts_everything_is_released() -> None:
    found = release(SplitRule.parse("US=1"), [files(500), MasterFiles(2, 30, 20)])
    assert found.files == ((1, 500), (2, 20))


@given(
    counts=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=5),
    per_job=st.integers(0, 9),
    events=st.integers(0, 50),
)
def test_no_more_is_released_than_is_ready_and_ten_chunks_hold(
    counts: list[tuple[int, int]], per_job: int, events: int
) -> None:
    rule = SplitRule.parse(f"US=2,NF={per_job}" if per_job else "US=2" + (f",NE={events}" if events else ""))
    masters = [
        MasterFiles(i, max(a, b), min(a, b), events=(7,) * min(a, b)) for i, (a, b) in enumerate(counts, start=1)
    ]
    found = release(rule, masters)
    assert [i for i, _ in found.files] == [m.dataset_id for m in masters]
    assert all(0 <= n <= m.ready for (_, n), m in zip(found.files, masters, strict=True))
    if found.scouting and not events:
        assert sum(n for _, n in found.files) <= CHUNKS * max(per_job, 1)
    if not found.scouting:
        assert all(n == m.ready for (_, n), m in zip(found.files, masters, strict=True))


def test_merging_never_scouts() -> None:
    rule = SplitRule.parse("US=2")
    assert will_scout(rule) and not will_scout(rule, merging=True)
    assert chunk_is_scout(rule, unreleased=5, mutable=False)
    assert chunk_is_scout(rule, unreleased=0, mutable=True)
    assert not chunk_is_scout(rule, unreleased=0, mutable=False)


def test_scouts_go_first() -> None:
    assert (scout_priority(100), scout_priority(950)) == (901, 950)


@pytest.mark.parametrize(
    ("progress", "due"),
    [
        (ScoutProgress(10, 8, 2), Due.COMPLETE),
        (ScoutProgress(10, 8, 1, 20, 9), None),
        (ScoutProgress(10, 5, 0, 20, 10), Due.EARLY),
        (ScoutProgress(10, 5, 0, 20, 10, checked_at=NOW - timedelta(minutes=9)), None),
        (ScoutProgress(10, 5, 0, 20, 10, checked_at=NOW - timedelta(minutes=10)), Due.EARLY),
        (ScoutProgress(10, 0, 0), None),
        (ScoutProgress(10, 0, 0, avalanche=True), Due.COMMAND),
        (ScoutProgress(4, 4, 0, 4, 1, awaits_more=True), None),
        (ScoutProgress(4, 4, 0, 4, 4, awaits_more=True), Due.EARLY),
    ],
)
def test_when_scouts_are_judged(progress: ScoutProgress, due: Due | None) -> None:
    assert judged_when(progress, NOW) == due


@pytest.mark.parametrize(
    ("view", "wanted"),
    [
        (RefreshView("scouting", False, 1), Refresh.NUMBERS),
        (RefreshView("scouting", False, 7), Refresh.NUMBERS),
        (RefreshView("running", False, 4), Refresh.NUMBERS),
        (RefreshView("running", False, 5), Refresh.VERDICT),
        (RefreshView("running", False, 0), Refresh.NO),
        (RefreshView("running", True, 50), Refresh.NO),
        (RefreshView("paused", False, 50), Refresh.NO),
        (RefreshView("running", False, 50, NOW - timedelta(minutes=1)), Refresh.NO),
    ],
)
def test_when_numbers_are_measured_again(view: RefreshView, wanted: Refresh) -> None:
    assert refresh_when(view, NOW) == wanted
    assert refresh_when(replace(view, checked_at=NOW), NOW) == Refresh.NO


@pytest.mark.parametrize(
    ("before", "now", "again"), [(4, 5, True), (5, 6, False), (3, 9, True), (99, 100, True), (100, 900, False)]
)
def test_five_and_a_hundred_finished_jobs_start_a_new_measurement(before: int, now: int, again: bool) -> None:
    assert measure_again(before, now) is again
