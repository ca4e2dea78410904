from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.priorities import (
    Boost,
    Raise,
    SerialPriority,
    SiteUsage,
    boost_of,
    massage,
    read_boosts,
    user_job_priority,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("serial", "offset", "priority"),
    [
        (37, 0, 992),  # H18
        (0, 0, 1000),
        (1, 0, 999),
        (5, 0, 999),
        (6, 0, 998),
        (0, -500, 500),
        (10, 200, 1198),  # 1000 + 200 - 2
    ],
)
def test_the_more_jobs_a_user_has_the_lower_is_the_priority(serial: int, offset: int, priority: int) -> None:
    assert user_job_priority(serial, offset=offset) == priority


def test_priorities_go_on_from_one_bunch_to_the_next() -> None:
    some = SerialPriority(base=500, serial=3)
    assert [some.at(i) for i in range(5)] == [499, 499, 499, 498, 498]
    assert [some.after(2).at(i) for i in range(3)] == [499, 498, 498]
    assert [SerialPriority(500, 30, boost=200).at(i) for i in (0, 100)] == [700, 700]


@given(base=st.integers(0, 5000), serial=st.integers(0, 10**6), jobs=st.integers(1, 50))
def test_a_users_jobs_keep_their_order(base: int, serial: int, jobs: int) -> None:
    priorities = [SerialPriority(base, serial).at(i) for i in range(jobs)]
    assert priorities == sorted(priorities, reverse=True)
    assert priorities[0] <= base


def test_boosts_are_read_and_bad_ones_left_out() -> None:
    assert read_boosts(None) == ()
    assert read_boosts({"name": "ada"}) == ()
    good = [
        {"name": "ada", "type": "user", "prio": 100, "expire": None},
        {"name": "phys", "type": "group", "prio": "50", "expire": "20260302"},
    ]
    bad = [
        {"name": "ada"},
        7,
        {"name": "a", "type": "robot", "prio": 1},
        {**good[0], "prio": "x"},
        {**good[0], "expire": "z"},
    ]
    found = read_boosts([*bad, *good])
    assert found == (Boost("ada", False, 100), Boost("phys", True, 50, datetime(2026, 3, 2, tzinfo=UTC)))


@pytest.mark.parametrize(
    ("user", "group", "now", "offset"),
    [
        ("ada", "", NOW, 100),
        ("bob", "", NOW, None),
        ("phys", "", NOW, None),
        ("bob", "phys", NOW, 50),
        ("ada", "phys", NOW, 100),
        ("bob", "phys", datetime(2026, 3, 2, tzinfo=UTC) - timedelta(microseconds=1), 50),
        ("bob", "phys", datetime(2026, 3, 2, tzinfo=UTC), None),
    ],
)
def test_a_boost_holds_for_its_user_or_group_until_its_day(
    user: str, group: str, now: datetime, offset: int | None
) -> None:
    boosts = (Boost("ada", False, 100), Boost("phys", True, 50, datetime(2026, 3, 2, tzinfo=UTC)))
    assert boost_of(boosts, user, group, now) == offset


ADA, BOB, EVE = ("ada", ""), ("bob", ""), ("", "phys")


def test_users_below_the_mean_get_their_best_jobs_to_the_top() -> None:
    usages = [
        SiteUsage(ADA, "A", 90, 10, 900),
        SiteUsage(BOB, "A", 0, 40, 700),
        SiteUsage(BOB, "B", 0, 3, 800),
        SiteUsage(EVE, "B", 60, 5, 400),
    ]
    # Mean 50; bob lacks 50, 25 at each of two sites: at A 25 jobs, five units wide; at B all three.
    assert massage(usages) == [Raise(BOB, "A", 25, 695, 300), Raise(BOB, "B", 3, 800, 200)]
    assert massage(usages, {BOB: 1.0}) == [Raise(BOB, "A", 12, 698, 300), Raise(BOB, "B", 3, 800, 200)]


@pytest.mark.parametrize(
    "usages",
    [
        [],
        [SiteUsage(ADA, "A", 0, 10, 500)],  # alone, so nobody has more
        [SiteUsage(ADA, "A", 10, 5, 500), SiteUsage(BOB, "A", 10, 5, 500)],
        [SiteUsage(ADA, "A", 100, 5, 500), SiteUsage(BOB, "A", 0, 0)],  # nothing waits
        [SiteUsage(ADA, "A", 100, 5, 500), SiteUsage(BOB, "B", 1, 5, 500)],  # at B, bob has as much as the mean
        [SiteUsage(ADA, "A", 100, 5, 500), SiteUsage(BOB, "A", 0, 5, 1000)],  # at the top already
    ],
)
def test_nobody_is_moved_up_without_need(usages: list[SiteUsage]) -> None:
    assert massage(usages) == []


rows = st.builds(
    SiteUsage,
    st.sampled_from([ADA, BOB, EVE]),
    st.sampled_from("ABC"),
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.integers(0, 2000),
)


@given(st.lists(rows, unique_by=lambda r: (r.who, r.site)))
def test_a_raise_ends_at_the_top_and_moves_no_more_than_waits(usages: list[SiteUsage]) -> None:
    by_key = {(row.who, row.site): row for row in usages}
    for step in massage(usages):
        row = by_key[step.who, step.site]
        assert 0 < step.jobs <= row.activated
        assert row.highest + step.by == 1000
        assert step.least <= row.highest
