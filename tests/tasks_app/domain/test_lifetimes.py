"""How long the outputs of an ended task are kept."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tasks_app.domain.lifetimes import Ending, Kind, ending_of


@pytest.mark.parametrize(
    ("kind", "status", "type", "tokens", "files", "expected"),
    [
        ("generic", "done", "output", (), 5, Ending()),
        ("generic", "failed", "output", (), 0, Ending()),
        ("generic", "failed", "log", (), 5, Ending()),
        ("generic", "done", "output", ("tr",), 5, Ending(timedelta(days=14))),
        ("production", "done", "output", (), 5, Ending()),
        ("production", "finished", "output", ("tr",), 5, Ending(timedelta(days=14))),
        ("production", "done", "log", (), 5, Ending()),
        ("production", "failed", "log", (), 5, Ending(timedelta(days=30))),
        ("production", "aborted", "log", (), 5, Ending(timedelta(days=30))),
        ("analysis", "done", "output", (), 5, Ending(timedelta(days=14))),
        ("analysis", "done", "output", (), 0, Ending(delete=True)),
        ("analysis", "done", "output", ("tr",), 5, Ending(delete=True)),
        ("analysis", "failed", "log", (), 5, Ending(timedelta(days=14))),
    ],
)
def test_what_becomes_of_an_output(
    kind: str, status: str, type: str, tokens: tuple[str, ...], files: int, expected: Ending
) -> None:
    assert ending_of(Kind(kind), status, type=type, attributes=tokens, files=files) == expected
