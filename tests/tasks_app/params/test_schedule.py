from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.params.schedule import Schedule, is_cron, moment, schedule_of
from tasks_app.params.schema import ParamErrors, parse
from tests.tasks_app.params import dictionaries as d

START = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)


@given(every=st.integers(60, 10**6), late=st.integers(0, 10**7), due=st.integers(0, 10**6))
def test_the_next_time_is_on_the_grid_and_the_first_after_now(every: int, late: int, due: int) -> None:
    schedule = Schedule(every_s=every)
    before = START + timedelta(seconds=due)
    now = before + timedelta(seconds=late)
    following = schedule.next_after(before, now)
    assert now < following <= now + timedelta(seconds=every)
    assert (following - before) % timedelta(seconds=every) == timedelta()
    assert schedule.missed(before, now) == (following - before) // timedelta(seconds=every) - 1


def test_a_cron_line_is_read_in_utc() -> None:
    schedule = Schedule(cron="0 3 * * *")
    assert schedule.first(START) == datetime(2031, 5, 7, 3, tzinfo=UTC)
    due = schedule.first(START)
    assert schedule.next_after(due, due) == datetime(2031, 5, 8, 3, tzinfo=UTC)
    late = datetime(2031, 5, 9, 12, tzinfo=UTC)
    assert schedule.next_after(due, late) == datetime(2031, 5, 10, 3, tzinfo=UTC)
    assert schedule.missed(due, late) == 2
    assert Schedule(cron="* * * * *").missed(START, START + timedelta(days=30)) == 1000


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("0 * * * *", True),
        ("*/5 1-3 * * 1", True),
        ("0 3 * *", False),
        ("0 3 * * * *", False),
        ("61 * * * *", False),
        ("0 0 31 2 *", False),
        ("@daily", False),
        ("", False),
        ("x y z u v", False),
    ],
)
def test_what_is_a_cron_line(text: str, is_one: bool) -> None:
    assert is_cron(text) is is_one


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Schedule(3600), "every hour"),
        (Schedule(7200), "every 2 hours"),
        (Schedule(86_400), "every day"),
        (Schedule(90), "every 90 seconds"),
        (Schedule(cron="0 3 * * *"), "at the times of 0 3 * * * (UTC)"),
    ],
)
def test_a_schedule_in_words(schedule: Schedule, words: str) -> None:
    assert schedule.words() == words


def periodic(**changes: Any) -> dict[str, Any]:
    raw = d.smallest(periodic={"every_s": 3600, **changes})
    return {name: value for name, value in raw.items() if name not in ("nEvents", "nEventsPerJob")}


def test_the_schedule_of_a_dictionary() -> None:
    raw = parse(periodic(jobs=3, until="2031-05-06T07:08:00", most_open=9)).raw
    assert schedule_of(raw) == Schedule(3600, "", 3, START, 9)
    assert schedule_of({}) is None
    assert moment("2031-05-06T09:08:00+02:00") == START


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"every_s": 59}, "periodic.every_s"),
        ({"every_s": None}, "periodic"),
        ({"cron": "0 * * * *"}, "periodic"),
        ({"every_s": None, "cron": "often"}, "periodic.cron"),
        ({"until": "tomorrow"}, "periodic.until"),
        ({"jobs": 0}, "periodic.jobs"),
        ({"jobs": 10, "most_open": 9}, "periodic.most_open"),
        ({"sites": ["A"]}, "periodic.sites"),
    ],
)
def test_a_wrong_schedule_is_refused_and_the_field_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ParamErrors) as caught:
        parse({**periodic(), "periodic": {"every_s": 3600, **changes}})
    assert field in {error.field for error in caught.value.errors}


@pytest.mark.parametrize(
    ("more", "field"),
    [({"nEvents": 10}, "nEvents"), ({"nFiles": 10}, "nFiles"), ({"noInput": False}, "noInput")],
)
def test_nothing_else_says_how_much_there_is_to_do(more: dict[str, Any], field: str) -> None:
    with pytest.raises(ParamErrors) as caught:
        parse({**periodic(), **more})
    assert field in {error.field for error in caught.value.errors}
