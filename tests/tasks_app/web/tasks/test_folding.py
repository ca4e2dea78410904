"""Attempts of a pending task that came to nothing are one line of its log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from tasks_app.models import Task, TaskStatusLog
from tasks_app.web.tasks.folding import Line, latest_lines

pytestmark = pytest.mark.django_db
START = datetime(2026, 9, 1, 12, tzinfo=UTC)
TASK = 77
WHAT = {
    "P": ("pending", "refiner", "the parent task 7 is running"),
    "B": ("pending", "job_generator", "no site takes its jobs"),
    "r": ("registered", "pending", "returns to registered after 10 seconds"),
    "R": ("registered", "ada", "submitted"),
    "D": ("defined", "refiner", "parameters are refined"),
}


def at(number: int) -> datetime:
    return START + timedelta(minutes=number)


def log(kinds: str, task_id: int = TASK) -> None:
    """Entries by their letters, the earliest first, a minute apart."""
    rows = [(at(n), *WHAT[kind]) for n, kind in enumerate(kinds)]
    TaskStatusLog.objects.bulk_create(
        TaskStatusLog(task_id=task_id, at=moment, status=status, by=by, reason=reason)
        for moment, status, by, reason in rows
    )


def folded(kinds: str, most: int = 1000) -> list[Line]:
    log(kinds)
    return latest_lines(TASK, 100, most)


def test_attempts_that_came_to_nothing_are_one_line_with_their_number() -> None:
    log("RPrD", task_id=TASK + 1)
    latest, submitted = folded("RPrPrP")
    assert (latest.tries, latest.since, latest.at, latest.is_cut) == (2, at(1), at(5), False)
    assert submitted.reason == "submitted" and submitted.tries == 0


def test_an_attempt_that_got_on_is_told_in_full() -> None:
    assert [(line.status, line.tries, line.since) for line in folded("RPrPrD")] == [
        ("defined", 0, None),
        ("registered", 0, None),
        ("pending", 1, at(1)),
        ("registered", 0, None),
    ]


def test_pending_for_another_cause_stays_a_line_of_its_own() -> None:
    assert [line.tries for line in folded("RPrBrB")] == [1, 0, 0, 0]


def test_two_waits_are_two_lines() -> None:
    assert [(line.status, line.tries, line.since) for line in folded("PrPRPrPrP")] == [
        ("pending", 2, at(4)),
        ("registered", 0, None),
        ("pending", 1, at(0)),
    ]


def test_a_log_without_attempts_stays_as_it_is() -> None:
    lines = [Line(at(n), *WHAT[kind]) for n, kind in enumerate("RPrD")]
    assert folded("RPrD") == lines[::-1] and latest_lines(TASK + 1, 100) == []


def test_a_long_wait_is_counted_whole_and_leaves_room_for_what_was_before(reader: Client, busy_task: Task) -> None:
    TaskStatusLog.objects.filter(task_id=busy_task.id).delete()
    log("RP" + 300 * "rP", task_id=busy_task.id)
    latest, submitted = latest_lines(busy_task.id, 100)
    assert (latest.tries, latest.since) == (300, at(1)) and submitted.reason == "submitted"
    text = reader.get(f"/tasks/{busy_task.id}/").content.decode()
    assert "retried without success 300 times since" in text and "possibly earlier" not in text


@pytest.mark.parametrize("most", [20, 21])
def test_a_wait_that_began_before_what_is_read_may_have_more_attempts(most: int) -> None:
    latest, *_ = folded("RP" + 30 * "rP", most)
    assert (latest.tries, latest.is_cut) == ((most - 1) // 2, True)
