from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.drawing.scales import Frame, Scale, TimeScale, marks_between, marks_from_zero, shade, time_ticks

START = datetime(2026, 1, 31, 22, 10, tzinfo=UTC)


def test_places_on_a_scale() -> None:
    y = Frame(100, 60, 10, 90, 5, 55).y(0, 4)
    assert [y(0), y(1), y(4)] == [55.0, 42.5, 5.0]
    assert Scale(3, 3, 0, 10)(3) == 0.0, "a scale of one number"
    x = TimeScale(START, START + timedelta(hours=1), 0, 100)
    assert [x(START + timedelta(minutes=m)) for m in (-5, 0, 15, 60, 99)] == [0.0, 0.0, 25.0, 100.0, 100.0]


@pytest.mark.parametrize(
    ("largest", "marks"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (3, [0, 1, 2, 3]),
        (9, [0, 5, 10]),
        (40, [0, 10, 20, 30, 40]),
        (90, [0, 25, 50, 75, 100]),
    ],
)
def test_marks_from_zero_are_whole(largest: float, marks: list[float]) -> None:
    assert marks_from_zero(largest) == marks


@given(st.floats(0, 1e12))
def test_marks_from_zero_hold_the_largest(largest: float) -> None:
    marks = marks_from_zero(largest)
    assert 2 <= len(marks) <= 5 and marks[0] == 0 and marks[-1] >= largest and all(mark == int(mark) for mark in marks)


def test_marks_between() -> None:
    assert marks_between(60, 120, 7) == [60, 70, 80, 90, 100, 110, 120]
    assert marks_between(-1, 1, 5) == [-1.0, -0.5, 0.0, 0.5, 1.0]


@given(st.floats(1, 4e8))
def test_times_are_round_and_few(seconds: float) -> None:
    x = TimeScale(START, START + timedelta(seconds=seconds), 0, 900)
    ticks = time_ticks(x)
    assert len(ticks) <= 10 and [tick.at for tick in ticks] == sorted({tick.at for tick in ticks})
    assert len(ticks) >= 3 or seconds < 10


def test_words_of_times() -> None:
    day = TimeScale(START, START + timedelta(hours=6), 0, 900)
    assert [tick.text for tick in time_ticks(day)][:3] == ["23:00", "01 Feb", "01:00"]
    assert time_ticks(day, dated=True)[1].text == "01 Feb 00:00"
    assert time_ticks(TimeScale(START, START + timedelta(seconds=9), 0, 900))[1].text == "22:10:01"
    assert [tick.text for tick in time_ticks(TimeScale(START, START + timedelta(days=3), 0, 900))][:2] == [
        "01 Feb",
        "12:00",
    ]


def test_small_numbers_have_a_shade() -> None:
    assert [shade(value, 1000) for value in (None, 0, 1, 30, 1000)] == [0, 0, 1, 3, 6]
