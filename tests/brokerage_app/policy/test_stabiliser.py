from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.policy.configuration import DEFAULTS, Row
from brokerage_app.policy.stabiliser import StabiliserLimits, UserRoom, share_rate, user_room

N6 = {"queued": 260, "running": 100, "started_per_h": 12.0, "users": 5, "user_running": 30}


def test_a_user_gets_the_part_of_the_queue_that_the_running_jobs_are() -> None:
    room = user_room(**N6, user_queued=60)
    assert room == UserRoom(full=True, queue_most=200, part=0.3, most=60, queued=60)
    assert not room.exceeded and room.left == 0


def test_one_job_more_is_too_many() -> None:
    assert user_room(**N6, user_queued=61).exceeded


@pytest.mark.parametrize(
    ("queued", "started_per_h", "full"),
    [(95, 0.0, False), (99, 0.0, False), (100, 0.0, True), (130, 20.0, False), (159, 20.0, False), (160, 20.0, True)],
)
def test_a_queue_with_few_waiting_jobs_takes_everybodys(queued: int, started_per_h: float, full: bool) -> None:
    room = user_room(queued=queued, running=0, started_per_h=started_per_h, users=1, user_queued=queued, user_running=0)
    assert room.full is full


def test_a_user_without_running_jobs_gets_one_users_part() -> None:
    room = user_room(queued=300, running=20, started_per_h=5.0, users=10, user_queued=10, user_running=0)
    assert (room.queue_most, room.part, room.most, room.exceeded) == (100, 0.1, 10, False)


def test_a_user_without_jobs_there_is_never_in_the_way() -> None:
    room = user_room(queued=300, running=0, started_per_h=0.0, users=100, user_queued=0, user_running=0)
    assert not room.full and room.most == 5


@pytest.mark.parametrize(
    ("rate", "of_share", "running", "expected"), [(12.0, 50, 100, 6.0), (12.0, 0, 100, 0.0), (12.0, 0, 0, 0.0)]
)
def test_the_rate_of_a_share(rate: float, of_share: int, running: int, expected: float) -> None:
    assert share_rate(rate, of_share, running) == expected


def test_limits_come_from_the_configuration() -> None:
    assert StabiliserLimits.from_configuration(DEFAULTS) == StabiliserLimits()
    changed = DEFAULTS.having(Row("jedi", "anal_jobbroker", "MAX_EXPECTED_WAIT_HOUR", "24", "int", "atlas"))
    assert StabiliserLimits.from_configuration(changed, vo="atlas").wait_h == 24
    assert StabiliserLimits.from_configuration(changed).wait_h == 12


numbers = st.integers(0, 10_000)


@given(
    jobs=st.fixed_dictionaries(
        {
            "queued": numbers,
            "running": numbers,
            "started_per_h": st.floats(0, 1e4),
            "users": st.integers(0, 500),
            "user_queued": numbers,
            "user_running": numbers,
        }
    )
)
def test_the_room_is_finite_and_never_below_what_every_user_may_have(jobs: dict[str, Any]) -> None:
    room = user_room(**jobs)
    assert 5 <= room.most < float("inf")
    assert room.queue_most >= 100
    more = user_room(**{**jobs, "running": jobs["running"] + 10, "user_running": jobs["user_running"] + 10})
    assert more.queue_most >= room.queue_most
