"""States of useJumbo, numbers and places of jumbo jobs, and consumers that leave their ranges to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events_app.rules.jumbo_tasks import (
    MOST_TASKS,
    JumboEvent,
    after,
    end_of_jumbo,
    may_begin,
    new_jobs,
    places_of,
    why_none,
)
from tasks_app.domain.jumbo_use import ENABLED, UseJumbo

E, U = JumboEvent, UseJumbo


@pytest.mark.parametrize(
    ("use", "event", "left", "wanted"),
    [
        (None, E.ENABLE, 0, U.WAITING),
        (U.DISABLED, E.ENABLE, 0, U.WAITING),
        (U.WAITING, E.SUBMIT, 3, U.RUNNING),
        (U.LACK, E.SUBMIT, 3, U.RUNNING),
        (U.PENDING, E.SUBMIT, 3, U.PENDING),
        (U.PENDING, E.SUBMIT, 0, U.RUNNING),
        (U.WAITING, E.NO_PLACE, 3, U.PENDING),
        (U.RUNNING, E.NO_PLACE, 3, U.PENDING),
        (U.RUNNING, E.NO_PLACE, 0, U.RUNNING),
        (U.LACK, E.NO_PLACE, 3, U.LACK),
        (U.RUNNING, E.END, 3, U.LACK),
        (U.PENDING, E.END, 3, U.LACK),
        (U.WAITING, E.END, 3, U.LACK),
        (U.RUNNING, E.NONE_LEFT, 0, U.LACK),
        (U.PENDING, E.NONE_LEFT, 0, U.LACK),
        (U.WAITING, E.NONE_LEFT, 0, U.WAITING),
        (U.RUNNING, E.DISABLE, 0, U.DISABLED),
        (None, E.END, 0, None),
    ],
)
def test_what_changes_the_state(use: UseJumbo | None, event: JumboEvent, left: int, wanted: UseJumbo | None) -> None:
    assert after(use, event, left=left) is wanted


@given(use=st.sampled_from([None, U.DISABLED]), event=st.sampled_from(E), left=st.integers(0, 5))
def test_only_switching_on_begins_with_jumbo_jobs(use: UseJumbo | None, event: JumboEvent, left: int) -> None:
    assert (after(use, event, left=left) in ENABLED) is (event is E.ENABLE)


@pytest.mark.parametrize(("wanted", "active", "number"), [(2, 0, 2), (2, 1, 1), (1, 3, 0), (0, 0, 0)])
def test_as_many_jobs_are_made_as_are_missing(wanted: int, active: int, number: int) -> None:
    assert new_jobs(wanted, active) == number


def test_a_work_queue_begins_with_so_many_tasks_only() -> None:
    assert may_begin(U.WAITING, MOST_TASKS - 1) and not may_begin(U.WAITING, MOST_TASKS)
    assert may_begin(U.LACK, MOST_TASKS) and not may_begin(U.DISABLED, 0)


@pytest.mark.parametrize(
    ("active", "number", "per_queue", "wanted"),
    [
        ({}, 1, 1, ["A"]),
        ({}, 5, 1, ["A", "B"]),
        ({"A": 1}, 5, 1, ["B"]),
        ({"A": 1}, 5, 2, ["B", "A", "B"]),
        ({"A": 1, "B": 1}, 1, 1, []),
    ],
)
def test_each_queue_gets_one_before_any_gets_a_second(
    active: dict[str, int], number: int, per_queue: int, wanted: list[str]
) -> None:
    assert places_of(["A", "B"], active, number=number, per_queue=per_queue) == wanted


def test_without_queues_there_is_no_place() -> None:
    assert places_of([], {}, number=2, per_queue=1) == []


@given(
    queues=st.lists(st.sampled_from("ABCD"), unique=True),
    active=st.dictionaries(st.sampled_from("ABCD"), st.integers(0, 4)),
    number=st.integers(0, 12),
    per_queue=st.integers(1, 3),
)
def test_no_queue_gets_more_than_it_may(queues: list[str], active: dict[str, int], number: int, per_queue: int) -> None:
    found = places_of(queues, active, number=number, per_queue=per_queue)
    assert len(found) <= number and set(found) <= set(queues)
    assert all(active.get(queue, 0) + found.count(queue) <= per_queue for queue in found)
    assert len(found) == min(number, sum(max(0, per_queue - active.get(queue, 0)) for queue in queues))


@pytest.mark.parametrize(
    ("status", "processed", "pilot_error", "wanted"),
    [
        ("finished", True, 0, ("finished", 0)),
        ("failed", True, 1305, ("finished", 0)),
        ("finished", False, 0, ("failed", 123)),
        ("failed", False, 1305, ("failed", 123)),
        ("failed", False, 1144, ("cancelled", 123)),
        ("cancelled", True, 0, None),
        ("closed", False, 0, None),
    ],
)
def test_a_jumbo_job_is_finished_when_it_has_processed_a_range(
    status: str, processed: bool, pilot_error: int, wanted: tuple[str, int] | None
) -> None:
    assert end_of_jumbo(status, processed=processed, pilot_error=pilot_error) == wanted


@pytest.mark.parametrize(
    ("takers", "resting", "said"),
    [
        ([], {"A"}, "no queue takes its jumbo jobs: All 2 sites were skipped: 2 sites offline"),
        (["B", "A"], {"A", "B", "C"}, "a jumbo job has just ended without a range at A, B: the next one waits an hour"),
        (["A", "B"], {"A"}, "each queue that takes its jumbo jobs has 1 (maxJumboPerSite)"),
    ],
)
def test_why_a_task_gets_no_jumbo_job(takers: list[str], resting: set[str], said: str) -> None:
    assert why_none("All 2 sites were skipped: 2 sites offline.", takers, resting, 1) == said
