from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.policy.userthrottle import Caps
from tasks_app.upkeep.rules.usercaps import KINDS, UserLoad, dialog, kind_of, over, queue_step, still_over


@pytest.mark.parametrize(
    ("usage", "caps", "is_over", "stays"),
    [
        (UserLoad(95, 0, 0), Caps(100), False, True),
        (UserLoad(96, 0, 0), Caps(100), True, True),
        (UserLoad(85, 0, 0), Caps(100), False, False),
        (UserLoad(86, 0, 0), Caps(100), False, True),
        (UserLoad(0, 190, 0), Caps(100), False, True),
        (UserLoad(0, 191, 0), Caps(100), True, True),
        (UserLoad(0, 170, 0), Caps(100), False, False),
        (UserLoad(0, 0, 100), Caps(None, 100), False, True),
        (UserLoad(0, 0, 101), Caps(None, 100), True, True),
        (UserLoad(100, 0, 0, group=True), Caps(100), False, True),
        (UserLoad(101, 0, 0, group=True), Caps(100), True, True),
        (UserLoad(10**6, 10**6, 10**6), Caps(), False, False),
    ],
)
def test_where_tasks_are_throttled_and_where_they_stay_so(
    usage: UserLoad, caps: Caps, is_over: bool, stays: bool
) -> None:
    assert bool(over(usage, caps)) is is_over
    assert bool(still_over(usage, caps)) is stays


@pytest.mark.parametrize(
    ("usage", "caps", "step"),
    [
        (UserLoad(100, 0, 0), Caps(100), "hold"),
        (UserLoad(99, 0, 0), Caps(100), None),
        (UserLoad(90, 0, 0), Caps(100), None),
        (UserLoad(89, 0, 0), Caps(100), "let_go"),
        (UserLoad(0, 0, 64), Caps(100, 64), "hold"),
        (UserLoad(89, 0, 60), Caps(100, 64), None),
        (UserLoad(10**6, 0, 10**6), Caps(), "let_go"),
    ],
)
def test_queued_jobs_are_held_at_the_cap_and_let_go_below_it(usage: UserLoad, caps: Caps, step: str | None) -> None:
    assert queue_step(usage, caps) == step


@given(running=st.integers(0, 500), queued=st.integers(0, 1000), cores=st.integers(0, 500), cap=st.integers(1, 200))
def test_what_is_over_is_still_over(running: int, queued: int, cores: int, cap: int) -> None:
    usage, caps = UserLoad(running, queued, cores), Caps(cap, cap)
    if over(usage, caps):
        assert still_over(usage, caps)
    if queue_step(usage, caps) == "hold":
        assert still_over(usage, caps)


def test_the_reason_can_be_read_back_from_the_dialog() -> None:
    for kind in KINDS:
        assert kind_of(dialog(kind, "x", 120)) == kind
    assert kind_of("a file has been tried 5 times") is None
    assert kind_of(None) is None
