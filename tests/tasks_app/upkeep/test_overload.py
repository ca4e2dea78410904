from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.upkeep.rules.overload import FastLimits, ShareAtQueue, fast_rebrokerage


@pytest.mark.parametrize(
    ("seen", "limits", "excess"),
    [
        pytest.param(ShareAtQueue("S", "Q", 400, 50, 800), FastLimits(most_queued=100), 160, id="H13"),
        pytest.param(ShareAtQueue("S", "Q", 400, 50, 1500), FastLimits(most_queued=100), None, id="H14"),
        pytest.param(ShareAtQueue("S", "Q", 400, 120, 800), FastLimits(most_queued=100), 40, id="H15"),
        pytest.param(ShareAtQueue("S", "Q", 400, 50, 800), FastLimits(), None, id="H16"),
        pytest.param(ShareAtQueue("S", "Q", 400, 50, 800, True), FastLimits(most_queued=100), None, id="slots are set"),
        (ShareAtQueue("S", "Q", 100, 10, 200), FastLimits(most_queued=10), 40),  # 30 % of 200 may stay
        (ShareAtQueue("S", "Q", 100, 30, 200), FastLimits(most_queued=10), 10),  # 3 × 30
        (ShareAtQueue("S", "Q", 100, 0, 100), FastLimits(most_queued=80), 20),
        (ShareAtQueue("S", "Q", 90, 30, 200), FastLimits(most_queued=10), None),  # as many as three times the running
        (ShareAtQueue("S", "Q", 10, 0, 10), FastLimits(most_queued=10), None),
        (ShareAtQueue("S", "Q", 100, 0, 101), FastLimits(most_queued=1), 70),  # 30.3 may stay, 69.7 are over
        (
            ShareAtQueue("S", "Q", 30, 0, 100),
            FastLimits(part_of_share=0.29, most_queued=1),
            1,
        ),  # 0.29 × 100 is 28.99…96
    ],
)
def test_overloaded_queues_give_jobs_back(seen: ShareAtQueue, limits: FastLimits, excess: int | None) -> None:
    found = fast_rebrokerage(seen, limits)
    assert (found and found.excess) == excess
    assert found is None or (found.kill == 10 and found.reason.code == "job_queue_overloaded")


@given(queued=st.integers(0, 5000), running=st.integers(0, 2000), more=st.integers(0, 5000), limit=st.integers(0, 2000))
def test_what_stays_is_within_the_largest_limit(queued: int, running: int, more: int, limit: int) -> None:
    found = fast_rebrokerage(ShareAtQueue("S", "Q", queued, running, queued + more), FastLimits(most_queued=limit))
    largest = max(3 * running, limit, 0.3 * (queued + more))
    stays = queued - (found.excess if found else 0)
    assert stays <= largest + 1e-5
    assert found is None or 0 < found.excess <= queued
