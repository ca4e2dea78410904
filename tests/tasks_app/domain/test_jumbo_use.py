"""USEJUMBO of a task: what it holds at first and after a change, and consumers that leave their ranges to jumbo jobs."""

from __future__ import annotations

import pytest

from tasks_app.domain.jumbo_use import UseJumbo, consumers_wait, read_use, use_of

U = UseJumbo


@pytest.mark.parametrize(
    ("wanted", "before", "value"),
    [
        (2, None, "W"),
        (None, None, None),
        (0, None, None),
        (1, "R", "R"),
        (1, "Y", "W"),
        (1, "D", "W"),
        (None, "L", "D"),
        (0, "D", "D"),
    ],
)
def test_a_task_that_wants_jumbo_jobs_waits_for_the_first(
    wanted: int | None, before: str | None, value: str | None
) -> None:
    assert use_of(wanted, before) == value


def test_the_older_word_for_waiting_is_read() -> None:
    assert read_use("Y") is U.WAITING
    assert (read_use("R"), read_use(None), read_use("")) == (U.RUNNING, None, None)
    assert all(use.words for use in U)


@pytest.mark.parametrize(
    ("use", "scouting", "places", "jumbo_queues", "wanted"),
    [
        (U.WAITING, False, 0, 1, True),
        (U.RUNNING, False, 0, 1, True),
        (U.PENDING, False, 0, 2, True),
        (U.RUNNING, False, 1, 1, False),
        (U.RUNNING, True, 0, 1, False),
        (U.RUNNING, False, 0, 0, False),
        (U.DISABLED, False, 0, 1, False),
        (None, False, 0, 1, False),
    ],
)
def test_consumers_wait_where_only_jumbo_jobs_have_a_place(
    use: UseJumbo | None, scouting: bool, places: int, jumbo_queues: int, wanted: bool
) -> None:
    assert consumers_wait(use, scouting=scouting, places=places, jumbo_queues=jumbo_queues) is wanted
