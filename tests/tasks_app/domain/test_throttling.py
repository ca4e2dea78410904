from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.final import Books
from tasks_app.domain.states import TASK_MOVES, TaskStatus
from tasks_app.domain.throttling import (
    BoostLimits,
    BoostView,
    ExhaustedView,
    FailureView,
    PauseLimits,
    PendingView,
    auto_pause,
    boost,
    finish_achieved,
    leave_exhausted,
    leave_pending,
    pending_wait,
    release_throttled,
    throttle_by_attempts,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
T = TaskStatus


def ago(**more: float) -> datetime:
    return NOW - timedelta(**more)


@pytest.mark.parametrize(
    ("largest", "before", "minutes", "count"),
    [
        (4, 0, None, None),
        (5, 0, 120, 1),
        (6, 0, 120, 1),  # a pass that came late
        (6, 1, None, None),  # throttled for 5 already
        (9, 0, 120, 1),
        (9, 1, None, None),
        (10, 1, 480, 2),
        (15, 2, 1080, 3),
        (20, 1, 1920, 4),
        (50, None, None, None),  # noThrottle
    ],
)
def test_many_attempts_throttle(largest: int, before: int | None, minutes: int | None, count: int | None) -> None:
    step = throttle_by_attempts("running", largest, before, NOW)
    assert (step and step.until) == (None if minutes is None else NOW + timedelta(minutes=minutes))
    assert (step and step.num_throttled) == count
    assert step is None or (step.status, step.reason.code) == (T.THROTTLED, "task_many_attempts")
    assert throttle_by_attempts("scouting", largest, before, NOW) is None


@given(st.integers(-5, 10**6), st.integers(0, 300))
def test_each_multiple_of_five_throttles_once(largest: int, before: int) -> None:
    step = throttle_by_attempts("running", largest, before, NOW)
    if step:
        assert step.num_throttled is not None and step.num_throttled > before
        assert step.until and step.until <= NOW + timedelta(days=365)
        assert throttle_by_attempts("running", largest, step.num_throttled, NOW) is None


@pytest.mark.parametrize(
    ("status", "until", "unused", "goes_on"),
    [
        ("throttled", NOW, 5, True),
        ("throttled", NOW + timedelta(seconds=1), 5, False),
        ("throttled", NOW + timedelta(days=1), 0, True),
        ("throttled", None, 5, True),
        ("running", NOW, 0, False),
    ],
)
def test_throttling_ends(status: str, until: datetime | None, unused: int, goes_on: bool) -> None:
    step = release_throttled(status, until, unused, NOW)
    assert bool(step) is goes_on
    assert step is None or step.back


NEAR_END = BoostView("running", 100, 95, 99, 500, "Simulation")


@pytest.mark.parametrize(
    ("more", "hurried"),
    [
        ({}, True),
        ({"files_done": 94}, False),
        ({"files": 1000, "files_done": 960, "jobs_to_do": 80}, True),  # H12: 40 files of two jobs each
        ({"files": 1000, "files_done": 940, "jobs_to_do": 80}, False),
        ({"jobs_to_do": 100}, False),
        ({"jobs_to_do": 0}, False),
        ({"status": "scouting"}, False),
        ({"parent": "running"}, False),
        ({"parent": "exhausted"}, False),
        ({"parent": "done"}, True),
        ({"files": 0, "files_done": 0}, False),
        ({"priority": 900, "share": "Express"}, False),
        ({"priority": 900}, True),
    ],
)
def test_the_last_jobs_are_hurried(more: dict[str, object], hurried: bool) -> None:
    step = boost(replace(NEAR_END, **more))  # type: ignore[arg-type]
    assert bool(step) is hurried
    assert step is None or (step.priority, step.share, step.status) == (900, "Express", None)


def test_a_boost_never_lowers() -> None:
    step = boost(replace(NEAR_END, priority=1200))
    assert step and step.priority == 1200
    assert boost(replace(NEAR_END, jobs_to_do=100), BoostLimits(jobs_below=101))


FAILING = FailureView("running", 1000, 500, 500, 100, 800.0, 100.0)
HALF = PauseLimits(max_failed_percent=50)


@pytest.mark.parametrize(
    ("view", "limits", "paused"),
    [
        (FAILING, HALF, True),
        (replace(FAILING, failed=499), HALF, False),
        (replace(FAILING, jobs=999), HALF, False),
        (replace(FAILING, remaining=99), HALF, False),
        (replace(FAILING, no_auto_pause=True), HALF, False),
        (replace(FAILING, status="ready"), HALF, False),
        (FAILING, PauseLimits(), False),
        (FAILING, PauseLimits(max_lost_percent=12.5), True),
        (FAILING, PauseLimits(max_lost_percent=13), False),
        (replace(FAILING, finished=0, failed=0), HALF, False),
    ],
)
def test_failing_tasks_are_paused(view: FailureView, limits: PauseLimits, paused: bool) -> None:
    step = auto_pause(view, limits)
    assert bool(step) is paused
    assert step is None or (step.status, step.reason.code) == (T.PAUSED, "task_auto_paused")


@pytest.mark.parametrize(
    ("label", "priority", "minutes"),
    [
        ("managed", 100, 60),
        ("managed", 899, 60),
        ("managed", 900, 30),
        ("managed", 949, 30),
        ("managed", 950, 10),
        ("user", 100, 20),
        ("panda", 1000, 20),
    ],
)
def test_how_long_a_task_rests(label: str, priority: int, minutes: int) -> None:
    assert pending_wait(label, priority) == timedelta(minutes=minutes)


RESTING = PendingView("ready", ago(minutes=60), ago(days=1), NOW)


@pytest.mark.parametrize(
    ("view", "wanted"),
    [
        (RESTING, "back"),
        (replace(RESTING, due=ago(minutes=-1)), None),
        (replace(RESTING, frozen_since=ago(days=7)), "exhausted"),
        (replace(RESTING, frozen_since=ago(days=7), since=NOW), "exhausted"),
        (replace(RESTING, frozen_since=ago(days=8), parent="running"), "back"),
        (replace(RESTING, frozen_since=ago(days=8), parent="done"), "exhausted"),
        (replace(RESTING, frozen_since=None, since=ago(days=30)), "back"),
        (replace(RESTING, old_status=None, frozen_since=ago(days=30)), None),
    ],
)
def test_pending_tasks_try_again_or_are_given_up(view: PendingView, wanted: str | None) -> None:
    step = leave_pending(view, NOW)
    assert (step and ("back" if step.back else step.status)) == wanted


def test_one_minute_is_one() -> None:
    step = leave_pending(replace(RESTING, since=ago(minutes=1)), NOW)
    assert step is not None and step.reason.detail == "returns to ready after 1 minute"
    step = leave_pending(replace(RESTING, since=NOW - timedelta(seconds=10)), NOW)
    assert step is not None and step.reason.detail == "returns to ready after 10 seconds"


@pytest.mark.parametrize(
    ("view", "limit", "ends"),
    [
        (ExhaustedView(ago(days=10)), None, True),
        (ExhaustedView(ago(days=9.9)), None, False),
        (ExhaustedView(ago(days=10), wait_for_ever=True), None, False),
        (ExhaustedView(ago(hours=48)), timedelta(hours=48), True),
    ],
)
def test_exhausted_tasks_are_finished_in_the_end(view: ExhaustedView, limit: timedelta | None, ends: bool) -> None:
    step = leave_exhausted(view, NOW, limit) if limit else leave_exhausted(view, NOW)
    assert bool(step) is ends
    assert step is None or step.status == T.FINISHING


@pytest.mark.parametrize(
    ("books", "untried", "ends"),
    [
        (Books(100, 90, goal=900), 0, True),
        (Books(100, 90, goal=900), 1, False),
        (Books(100, 89, goal=900), 0, False),
        (Books(100, 90), 0, False),
        (Books(100, 100, goal=900), 0, False),  # it ends by itself
    ],
)
def test_a_goal_that_is_reached_ends_the_task(books: Books, untried: int, ends: bool) -> None:
    step = finish_achieved("running", books, untried)
    assert bool(step) is ends
    assert step is None or (step.status, step.soft_finish) == (T.FINISHING, True)
    assert finish_achieved("scouting", books, untried) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (T.RUNNING, T.THROTTLED),
        (T.RUNNING, T.PAUSED),
        (T.PENDING, T.EXHAUSTED),
        (T.EXHAUSTED, T.FINISHING),
        (T.RUNNING, T.FINISHING),
    ],
)
def test_the_steps_are_moves_that_the_table_allows(old: TaskStatus, new: TaskStatus) -> None:
    assert new in TASK_MOVES[old]
