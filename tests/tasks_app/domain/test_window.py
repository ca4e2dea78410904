"""Time windows of pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tasks_app.domain import window

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_a_window_ends_now_or_is_said_in_full() -> None:
    assert window.read({}, NOW) == window.Window("12h", NOW - timedelta(hours=12), NOW)
    assert window.read({}, NOW, "24h").since == NOW - timedelta(days=1)
    assert window.read({"window": "3d"}, NOW).title == "last 3 days"
    custom = window.read({"since": "2026-03-01T08:00", "until": "2026-03-01T10:00+01:00"}, NOW)
    assert (custom.since.hour, custom.until.hour, custom.length) == (8, 9, timedelta(hours=1))
    assert window.read(custom.parameters, NOW) == custom
    assert window.read({"window": "3d", "since": "2026-03-04T11:00"}, NOW).length == timedelta(hours=1)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"window": "2y"}, "window"),
        ({"since": "soon"}, "since"),
        ({"since": "2026-03-05"}, "since"),
        ({"since": "2020-01-01"}, "31 days"),
        ({"until": "0001-01-01T00:00+14:00"}, "since"),
    ],
)
def test_what_makes_no_sense_is_said_and_the_usual_window_shown(given: dict[str, str], named: str) -> None:
    found = window.read(given, NOW)
    assert named in found.fault and found.key == window.USUAL
