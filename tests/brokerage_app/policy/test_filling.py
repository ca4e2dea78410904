from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.policy.configuration import DEFAULTS, Configuration, Row
from brokerage_app.policy.filling import (
    FillLimits,
    Occupancy,
    WaitingTask,
    choose,
    is_busy,
    is_empty,
    is_large_enough,
    jobs_lacking,
    may_be_filled,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seen", "lacking", "busy"),
    [
        pytest.param(Occupancy("Q", 4, 3), 2, False, id="H19"),
        (Occupancy("Q", 0, 0), 5, False),
        (Occupancy("Q", 0, 5), 0, False),
        (Occupancy("Q", 0, 7), -2, False),  # 20 x 0.375 = 7.5
        (Occupancy("Q", 0, 8), -3, True),
        (Occupancy("Q", 100, 49), 1, False),
        (Occupancy("Q", 100, 75), -25, False),
        (Occupancy("Q", 100, 76), -26, True),
        (Occupancy("Q", 4, 3, slots=320, cores=8), 17, False),  # 2 x 40 x 0.25 - 3
        (Occupancy("Q", 4, 40, slots=320, cores=8), -20, False),
        (Occupancy("Q", 4, 41, slots=320, cores=8), -21, True),
        (Occupancy("Q", 4, 3, slots=0, cores=0), 2, False),
    ],
)
def test_when_a_queue_is_empty_and_when_it_is_busy(seen: Occupancy, lacking: float, busy: bool) -> None:
    assert jobs_lacking(seen) == lacking
    assert (is_empty(seen), is_busy(seen)) == (lacking > 0, busy)


@given(
    st.builds(
        Occupancy, st.just("Q"), *[st.integers(0, 10_000)] * 2, st.none() | st.integers(0, 10_000), st.integers(0, 64)
    )
)
def test_no_queue_is_empty_and_busy(seen: Occupancy) -> None:
    assert not (is_empty(seen) and is_busy(seen))


@pytest.mark.parametrize(
    ("seen", "since", "filled"),
    [
        (Occupancy("Q"), NOW - timedelta(seconds=1800), True),
        (Occupancy("Q"), NOW - timedelta(seconds=1799), False),
        (Occupancy("Q"), None, False),
        (Occupancy("Q", slots=8), None, True),
        (Occupancy("Q", queued=9), NOW - timedelta(days=1), False),
    ],
)
def test_a_queue_is_filled_when_it_stays_empty(seen: Occupancy, since: datetime | None, filled: bool) -> None:
    assert may_be_filled(seen, since, NOW) is filled


@pytest.mark.parametrize(
    ("ready", "remaining", "full_chain", "large"),
    [
        (50, 100, False, True),
        (49, 100, False, False),
        (50, 99, False, False),
        (10, 100, True, True),
        (9, 100, True, False),
    ],
)
def test_only_large_tasks_are_sent(ready: int, remaining: int, full_chain: bool, large: bool) -> None:
    assert is_large_enough(WaitingTask(1, "SCORE", ready, remaining, full_chain), FillLimits()) is large


def test_a_queue_gets_the_first_tasks_of_each_resource_type() -> None:
    tasks = [WaitingTask(i, "MCORE" if i % 2 else "SCORE", 50, 100) for i in range(10)]
    tasks.insert(0, WaitingTask(99, "SCORE", 1, 100))
    found = choose([(task, FillLimits()) for task in tasks], {"MCORE": 2})
    assert [task.task_id for task in found] == [0, 1, 2, 4]


def test_limits_are_configured_by_label() -> None:
    assert FillLimits.from_configuration(DEFAULTS, "managed") == FillLimits()
    rows = [
        ("MAX_PREASSIGNED_TASKS_managed", "1"),
        ("MIN_FILES_READY_managed", "5"),
        ("MIN_FILES_READY_managed_FC", "2"),
    ]
    some = Configuration(tuple(Row("jedi", "queue_filler", key, value, "int") for key, value in rows))
    assert FillLimits.from_configuration(some, "managed", "atlas") == FillLimits(1, 5, 2, 100)
    assert FillLimits.from_configuration(some, "test") == FillLimits()
