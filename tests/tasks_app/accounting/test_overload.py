from __future__ import annotations

import pytest

from tasks_app.accounting.overload import FastLimits, ShareAtQueue, fast_rebrokerage


@pytest.mark.parametrize(
    ("seen", "limits", "excess"),
    [
        (ShareAtQueue("S", "Q", 100, 10, 200), FastLimits(most_queued=10), 40),  # 30 % of 200 may stay
        (ShareAtQueue("S", "Q", 100, 30, 200), FastLimits(most_queued=10), 10),  # 3 × 30
        (ShareAtQueue("S", "Q", 100, 0, 100), FastLimits(most_queued=80), 20),
        (ShareAtQueue("S", "Q", 100, 10, 200), FastLimits(), None),
        (ShareAtQueue("S", "Q", 100, 10, 200, slots_set=True), FastLimits(most_queued=10), None),
        (ShareAtQueue("S", "Q", 10, 0, 10), FastLimits(most_queued=10), None),
    ],
)
def test_overloaded_queues_give_jobs_back(seen: ShareAtQueue, limits: FastLimits, excess: int | None) -> None:
    found = fast_rebrokerage(seen, limits)
    assert (found and found.excess) == excess
    assert found is None or found.kill == 10
