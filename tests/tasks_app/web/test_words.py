from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain import words
from tasks_app.domain.states import JobStatus, TaskStatus
from tasks_app.models import Task

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "under 1 s"),
        (0.0001, "1 ms"),
        (0.25, "250 ms"),
        (45, "45 s"),
        (60, "1 min"),
        (7800, "2 h 10 min"),
        (90_000, "1 d 1 h"),
        (86_400, "1 d"),
        (-60, "-1 min"),
    ],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "now"), (5, "5 s ago"), (125, "2 min ago"), (-5, "in 5 s"), (200_000, "2 d ago")]
)
def test_ago(seconds: float, text: str) -> None:
    assert words.ago(NOW - timedelta(seconds=seconds), NOW) == text


@pytest.mark.parametrize(
    ("number", "text"), [(None, "–"), (0, "0 B"), (999, "999 B"), (12_345, "12.3 kB"), (5e15, "5.0 PB")]
)
def test_size(number: float | None, text: str) -> None:
    assert words.size(number) == text


def test_counts_are_cut_at_the_cap() -> None:
    assert words.capped(10_000) == "10\u202f000"
    assert words.capped(10_001) == "10\u202f000+"


@given(st.floats(0, 1e9))
def test_a_duration_never_has_more_than_two_units(seconds: float) -> None:
    assert 1 <= len(words.duration(seconds).split()) // 2 <= 2


def test_a_finished_task_did_only_a_part() -> None:
    assert words.tone("finished") == "ok"
    assert words.tone("finished", "task") == "warn"


@pytest.mark.parametrize("status", [*TaskStatus, *JobStatus, "never heard of", "", None])
def test_every_status_has_a_tone_with_an_icon(status: str | None) -> None:
    assert words.tone(status) in words.ICONS


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ("MB", "MB"),
        ("MBPerCore", "MB a core"),
        ("MBPerCoreFixed", "MB a core"),
        ("kBPerEvent", "kB an event"),
        ("mHS06sPerEventFixed", "mHS06 s an event"),
    ],
)
def test_units_of_parameters_are_said_in_words(parameter: str, said: str) -> None:
    assert words.unit(parameter) == said


@pytest.mark.django_db
def test_the_page_of_a_task_says_its_memory_in_words(reader: Client, make_task: Callable[..., Task]) -> None:
    task = make_task(ram_count=2000, ram_unit="MBPerCore")
    assert "MB a core" in reader.get(f"/tasks/{task.id}/").text
