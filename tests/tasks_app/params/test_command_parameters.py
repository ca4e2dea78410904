"""The check of what is given with a command, at its door."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.domain.task_commands import TaskCommand
from tasks_app.params.command_parameters import PARAMETERS, check, check_keys
from tasks_app.params.faults import Faults, ParamErrors
from tasks_app.params.kinds import Key

TEXT, MAYBE = Key("text", "text", "what is written", required=True, longest=5), Key("more", "flag", "more of it")


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        ({"text": "why"}, []),
        ({"text": "why", "more": 1}, []),
        ({}, [("text", "required")]),
        ({"text": None, "more": True}, [("text", "required")]),
        ({"text": ""}, [("text", "required")]),
        ({"text": "  "}, [("text", "not empty")]),
        ({"text": "too long", "more": "yes"}, [("text", "length"), ("more", "type")]),
    ],
)
def test_each_value_that_is_missing_or_does_not_fit_is_named(
    given: dict[str, Any], faults: list[tuple[str, str]]
) -> None:
    found = Faults()
    checked = check_keys((TEXT, MAYBE), given, found)
    try:
        found.raise_if_any()
    except ParamErrors as exc:
        assert [(error.field, error.rule) for error in exc.errors] == faults
    else:
        assert not faults and checked == {name: True if name == "more" else value for name, value in given.items()}


@pytest.mark.parametrize("given", [{}, {"site": "A", "cloud": "B"}, {"mode": "soft"}])
def test_a_task_is_reassigned_to_one_place(given: dict[str, Any]) -> None:
    with pytest.raises(ParamErrors, match="Name exactly one of site, nucleus, cloud"):
        check(TaskCommand.REASSIGN, given)
    with pytest.raises(ParamErrors, match="site: This text must not be empty"):
        check(TaskCommand.REASSIGN, {"site": " "})
    assert check(TaskCommand.REASSIGN, {"nucleus": "B"}) == {"nucleus": "B"}


def test_each_parameter_of_one_name_is_of_one_kind() -> None:
    """The body of the API has one field for it."""
    kinds: dict[str, set[str]] = {}
    for keys in PARAMETERS.values():
        for key in keys:
            kinds.setdefault(key.name, set()).add(key.kind)
    assert [name for name, found in kinds.items() if len(found) > 1] == []
