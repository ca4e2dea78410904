"""Attempts of a pending task that came to nothing are one line of its log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tasks_app.dashboard.folding import Line, folded

START = datetime(2026, 9, 1, 12, tzinfo=UTC)
WHAT = {
    "P": ("pending", "refiner", "the parent task 7 is running"),
    "B": ("pending", "job_generator", "no site takes its jobs"),
    "r": ("registered", "pending", "returns to registered after 10 seconds"),
    "R": ("registered", "ada", "submitted"),
    "D": ("defined", "refiner", "parameters are refined"),
}


def _log(kinds: str) -> list[Line]:
    """Lines by their letters, the earliest first, a minute apart; the log has the latest first."""
    lines = [Line(START + timedelta(minutes=n), *WHAT[kind]) for n, kind in enumerate(kinds)]
    return lines[::-1]


def test_attempts_that_came_to_nothing_are_one_line_with_their_number() -> None:
    latest, submitted = folded(_log("RPrPrP"))
    assert (latest.tries, latest.since, latest.at) == (2, START + timedelta(minutes=1), START + timedelta(minutes=5))
    assert submitted.reason == "submitted" and submitted.tries == 0


def test_an_attempt_that_got_on_is_told_in_full() -> None:
    lines = folded(_log("RPrPrD"))
    assert [(line.status, line.tries) for line in lines] == [
        ("defined", 0), ("registered", 0), ("pending", 1), ("registered", 0),
    ]  # fmt: skip


def test_pending_for_another_cause_stays_a_line_of_its_own() -> None:
    assert [line.tries for line in folded(_log("RPrBrB"))] == [1, 0, 0, 0]


def test_a_log_without_attempts_stays_as_it_is() -> None:
    assert folded(_log("RPrD")) == _log("RPrD") and folded([]) == []
