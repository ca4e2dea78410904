"""Which problems a rule tells, when it may speak, and what it says."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from tasks_app.alerts.rules.telling import MOST_SAID, Over, Problem, Wish, payload, subject, text

NOW = datetime(2030, 1, 15, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def problem(**more: Any) -> Problem:
    values = {
        "key": "failures:SITE_A",
        "kind": "failures",
        "tone": "bad",
        "sentence": "SITE_A fails 80% of its jobs.",
        "path": "/sites/SITE_A/",
        "owner": "SITE_A",
        "since": NOW - 20 * MINUTE,
        "first_seen": NOW - 10 * MINUTE,
    }
    return Problem(**{**values, **more})


def wish(**more: Any) -> Wish:
    values = {
        "kinds": frozenset(),
        "about": (),
        "only_bad": False,
        "after": 5 * MINUTE,
        "every": 30 * MINUTE,
        "quiet": None,
        "zone": "UTC",
    }
    return Wish(**{**values, **more})


@pytest.mark.parametrize(
    ("of_wish", "of_problem", "told"),
    [
        ({}, {}, True),
        ({"kinds": frozenset({"failures", "data"})}, {}, True),
        ({"kinds": frozenset({"data"})}, {}, False),
        ({"only_bad": True}, {}, True),
        ({"only_bad": True}, {"tone": "warn"}, False),
        ({"about": ("SITE_B", "SITE_*")}, {}, True),
        ({"about": ("SITE_B",)}, {}, False),
        ({"about": ("site_a",)}, {}, False),
        ({"about": ("*",)}, {"owner": ""}, True),
        ({}, {"first_seen": NOW - 5 * MINUTE}, True),
        ({}, {"first_seen": NOW - 4 * MINUTE}, False),
        ({"after": timedelta()}, {"first_seen": NOW}, True),
    ],
)
def test_what_a_rule_tells(of_wish: dict[str, Any], of_problem: dict[str, Any], told: bool) -> None:
    assert wish(**of_wish).tells(problem(**of_problem), NOW) is told


@pytest.mark.parametrize(
    ("quiet", "zone", "hour", "is_quiet"),
    [
        (None, "UTC", 3, False),
        ((time(22), time(7)), "UTC", 22, True),
        ((time(22), time(7)), "UTC", 3, True),
        ((time(22), time(7)), "UTC", 7, False),
        ((time(22), time(7)), "UTC", 12, False),
        ((time(1), time(5)), "UTC", 0, False),
        ((time(1), time(5)), "UTC", 1, True),
        ((time(1), time(5)), "UTC", 5, False),
        ((time(22), time(7)), "Europe/Zurich", 21, True),
        ((time(22), time(7)), "Europe/Zurich", 6, False),
        ((time(22), time(7)), "America/Chicago", 12, True),
    ],
)
def test_quiet_hours_are_those_of_a_place(quiet: Any, zone: str, hour: int, is_quiet: bool) -> None:
    now = NOW.replace(hour=hour)
    assert wish(quiet=quiet, zone=zone).is_quiet(now) is is_quiet
    assert wish(quiet=quiet, zone=zone).may_speak(now, None) is not is_quiet


def test_a_rule_speaks_once_in_its_time() -> None:
    assert not wish().may_speak(NOW, NOW - 29 * MINUTE)
    assert wish().may_speak(NOW, NOW - 30 * MINUTE)


def test_one_problem_is_the_subject_itself() -> None:
    assert subject([problem()], []) == "SITE_A fails 80% of its jobs."
    assert subject([], [Over("SITE_A fails.", "/")]) == "Over: SITE_A fails."
    assert subject([problem(), problem()], []) == "2 new problems"
    assert subject([problem()], [Over("x.", "/"), Over("y.", "/")]) == "1 new problem, 2 over"
    assert len(subject([problem(sentence="long " * 100)], [])) <= 120


def test_many_problems_are_told_in_a_bounded_text() -> None:
    many = [problem(sentence=f"Problem {n}.") for n in range(MOST_SAID + 3)]
    said = text(many, [Over(f"Ended {n}.", "/x/") for n in range(MOST_SAID + 1)], "https://grid.lab", rule="nights")
    assert said.startswith("* Problem 0. Since 2030-01-15 11:40 UTC. https://grid.lab/sites/SITE_A/\n")
    assert "* and 3 more problems\n\nOver:\n* Ended 0. https://grid.lab/x/\n" in said and "Problem 20" not in said
    assert said.endswith("* and 1 more\n\nThe alert rule nights tells this. https://grid.lab/attention/")
    assert "http" not in text(many, [], "", rule="nights"), "a site that does not know its address gives none"


def test_a_webhook_gets_every_problem() -> None:
    many = [problem() for _ in range(MOST_SAID + 3)]
    sent = payload(many, [Over("It was.", "/x/")], "https://grid.lab", rule="nights", now=NOW)
    assert len(sent["problems"]) == MOST_SAID + 3
    assert sent["problems"][0] == {
        "key": "failures:SITE_A",
        "kind": "failures",
        "tone": "bad",
        "sentence": "SITE_A fails 80% of its jobs.",
        "since": "2030-01-15T11:40:00+00:00",
        "about": "SITE_A",
        "page": "https://grid.lab/sites/SITE_A/",
    }
    assert sent["over"] == [{"sentence": "It was.", "page": "https://grid.lab/x/"}]
    assert (sent["rule"], sent["at"]) == ("nights", "2030-01-15T12:00:00+00:00")
