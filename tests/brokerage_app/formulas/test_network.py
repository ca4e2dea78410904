import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.formulas.network import (
    express_floor,
    most_recent,
    network_weight,
    queued_weight,
    throughput_weight,
)


@pytest.mark.parametrize(
    ("files", "mbps", "closeness", "cap", "weight"),
    [
        (30, 60, None, 150, 1.75),
        (0, 250, None, 150, 2.0),
        (75, None, 4, 150, 1.568182),
        (0, None, None, 150, 1.65),
        (150, 0.5, None, 150, 1.0),
        (30, 60, None, 300, 1.8),
        (900, 0, None, 150, 1.0),
        (0, None, 0, 150, 2.0),
        (0, None, 11, 150, 1.5),
        (0, None, -1, 150, 1.5),
        (5, 250, None, 0, 1.5),
    ],
)
def test_network_weight(files: int, mbps: float | None, closeness: float | None, cap: int, weight: float) -> None:
    found = network_weight(queued_files=files, mbps=mbps, closeness=closeness, cap=cap)
    assert found.total == pytest.approx(weight, abs=1e-6)


def test_where_the_storage_is_the_same_nothing_is_transferred() -> None:
    found = network_weight(queued_files=999, cap=150, mbps=0, same_storage=True)
    assert (found.total, found.queued, found.throughput) == (2.5, 2.5, 2.5)


@pytest.mark.parametrize(
    ("mbps", "weight"),
    [
        (200.1, 2.0),
        (200, 1.9),
        (100.1, 1.9),
        (100, 1.8),
        (75.1, 1.8),
        (75, 1.7),
        (50.1, 1.7),
        (50, 1.5),
        (20.1, 1.5),
        (20, 1.3),
        (10.1, 1.3),
        (10, 1.2),
        (2.1, 1.2),
        (2, 1.1),
        (1.1, 1.1),
        (1, 1.0),
        (0, 1.0),
    ],
)
def test_steps_of_the_throughput(mbps: float, weight: float) -> None:
    assert throughput_weight(mbps, 0) == weight


def test_steps_may_be_others() -> None:
    assert throughput_weight(60, None, ((50, 1.6),)) == 1.6


def test_the_importance_of_the_queue_goes_from_none_to_all() -> None:
    weights = [network_weight(queued_files=75, mbps=250, cap=150, importance=q).total for q in (-1, 0, 0.25, 1, 2)]
    assert weights == pytest.approx([2.0, 2.0, 1.875, 1.5, 1.5])


def test_the_most_recent_value_counts() -> None:
    assert most_recent(None, 0.0, 5.0) == 0.0
    assert most_recent(3.0, 0.0) == 3.0
    assert most_recent(None, None) is None


def test_express_work_asks_for_a_good_network() -> None:
    assert (express_floor(), express_floor(1.7, 0.5)) == (1.7, 0.85)


@given(files=st.integers(0, 10**6), more=st.integers(0, 10**6), cap=st.integers(1, 10**4))
def test_more_files_never_raise_the_weight_and_it_stays_between_1_and_2(files: int, more: int, cap: int) -> None:
    assert 1 <= queued_weight(files + more, cap) <= queued_weight(files, cap) <= 2


@given(slow=st.floats(0, 1e4), more=st.floats(0, 1e4))
def test_more_throughput_never_lowers_the_weight(slow: float, more: float) -> None:
    assert 1 <= throughput_weight(slow, None) <= throughput_weight(slow + more, None) <= 2
