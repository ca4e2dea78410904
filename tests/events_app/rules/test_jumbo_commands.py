"""Command lines of jumbo jobs."""

from __future__ import annotations

import pytest

from events_app.rules.jumbo_commands import jumbo_command


@pytest.mark.parametrize(
    ("command", "inputs", "wanted"),
    [
        ("--in=a.1 --out=o", {"lab.in": ["a.1"]}, "--in=tmpin__cnt_lab.in --out=o"),
        ("--in=a.1,a.10", {"lab.in": ["a.1", "a.10"]}, "--in=tmpin__cnt_lab.in"),
        ("--in a.10 a.1", {"lab.in": ["a.1", "a.10"]}, "--in tmpin__cnt_lab.in tmpin__cnt_lab.in"),
        ("--in=a.1 --more=b", {"x": ["a.1"], "y": ["b"]}, "--in=tmpin__cnt_x --more=tmpin__cnt_y"),
        ("--out=o", {"lab.in": ["a.1"]}, "--out=o"),
        ("--out=o", {}, "--out=o"),
    ],
)
def test_a_placeholder_stands_for_the_files_of_a_dataset(
    command: str, inputs: dict[str, list[str]], wanted: str
) -> None:
    assert jumbo_command(command, inputs) == wanted
