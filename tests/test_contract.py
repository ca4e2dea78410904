"""The comparison of recorded answers with ours says what differs, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract import FOLDER, differences, encoded, exchanges, mapped


@pytest.mark.parametrize(
    ("recorded", "ours", "found"),
    [
        ({"a": 1}, {"a": 2.5, "b": None}, []),
        ({"a": None}, {"a": [1]}, []),
        ({"a": 1}, {}, ["a: missing"]),
        ({"a": {"b": 1}}, {"a": {"b": "1"}}, ["a.b: number there, text here"]),
        ({"a": True}, {"a": 1}, ["a: boolean there, number here"]),
        ({"a": "x"}, {"a": None}, ["a: text there, null here"]),
        ([1, "x"], [1, "y", 3], ["[2]: text there, number here"]),
        ({"a": [1]}, {"a": []}, ["a: empty"]),
        ({"a": []}, {"a": [1]}, []),
        ({"t": {"__datetime__": "2026-11-20T11:24:24.985767"}}, {"t": {"__datetime__": "2026-11-20T11:24:24"}}, []),
        ({"t": {"__datetime__": "2026-11-20T11:24:24"}}, {"t": "2026-11-20T11:24:24"}, ["t: time there, text here"]),
        (
            {"t": {"__datetime__": "2026-11-20T11:24:24"}},
            {"t": {"__datetime__": "2026-11-20T11:24:24+00:00"}},
            ["t: time there, bad time '2026-11-20T11:24:24+00:00' here"],
        ),
    ],
)
def test_shapes_are_compared_field_by_field(recorded: Any, ours: Any, found: list[str]) -> None:
    assert differences(recorded, ours) == found


def test_ids_are_mapped_in_numbers_texts_and_inside_of_texts() -> None:
    ids = {10000001: 7, "10000001": "7", "LOCAL_Q": "SITE_A"}
    given = {"a": [10000001, "10000001", True, 1], "b": '{"id": 10000001, "other": 110000001}', "c": "/x/LOCAL_Q.json"}
    assert mapped(given, ids) == {
        "a": [7, "7", True, 1],
        "b": '{"id": 7, "other": 110000001}',
        "c": "/x/SITE_A.json",
    }


def test_every_recording_can_be_read_and_sent_again() -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
    found = [exchange for name in names for exchange in exchanges(name)]
    assert len(names) > 30 and len(found) > 400
    for exchange in found:
        kind, data = encoded(exchange, exchange.body)
        assert bool(data) == bool(exchange.body), exchange.name
        assert data[:2] != b"\x1f\x8b" or kind == "application/json"
