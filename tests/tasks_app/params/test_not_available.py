"""What this site has not is refused with a sentence that says what to do instead, and listed as that."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.params import not_available
from tasks_app.params.faults import Faults
from tasks_app.params.keys import KEYS
from tasks_app.params.not_available import NOT_AVAILABLE
from tasks_app.params.schema import describe
from tasks_app.params.splitrule import SplitRule


def refused(given: dict[str, Any]) -> list[tuple[str, str]]:
    faults = Faults()
    not_available.check_given(given, faults)
    return [(fault.field, fault.rule) for fault in faults.found]


@pytest.mark.parametrize(
    ("name", "value"),
    [("registerEsFiles", True), ("esConvertible", True), ("mergeEsOnOS", True), ("pushJob", True)],
)
def test_what_is_asked_for_is_refused(name: str, value: object) -> None:
    assert refused({name: value}) == [(name, "not available")]


@pytest.mark.parametrize(("value", "fields"), [(1, []), (None, []), (False, ["mergeSpec.useLocalIO"])])
def test_merge_jobs_that_read_over_the_network_are_refused(value: object, fields: list[str]) -> None:
    assert [field for field, _ in refused({"mergeSpec": {"useLocalIO": value}})] == fields


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("registerEsFiles", False),
        ("esConvertible", False),
        ("pushJob", None),
        ("prestagingRuleID", {}),
        ("altStageOut", "off"),
    ],
)
def test_a_value_that_asks_for_nothing_is_taken(name: str, value: object) -> None:
    assert refused({name: value}) == []


def test_a_split_rule_is_refused_by_the_parameter_of_its_code() -> None:
    faults = Faults()
    not_available.check_rule(SplitRule.parse("NF=2,ES=1,NJ=0,XJ=0,RE=1"), faults)
    assert sorted(fault.field for fault in faults.found) == ["registerEsFiles"]


def test_every_parameter_that_is_refused_is_one_and_its_description_says_so() -> None:
    assert NOT_AVAILABLE.keys() <= KEYS.keys()
    said = {one.name: one.refused for one in describe() if not one.inside}
    assert {name for name, sentence in said.items() if sentence} == set(NOT_AVAILABLE)
    assert said["esConvertible"] == (
        "This asks for event service where it helps to fill queues, which this site does not offer. "
        "Use nEventsPerWorker for a task of event service, or esFraction for a part of the tasks."
    )


def test_every_sentence_is_whole() -> None:
    steps = {name: one for keys in not_available.STEPS.values() for name, one in keys.items()}
    for name, one in {**NOT_AVAILABLE, **not_available.ITEMS, **steps}.items():
        assert one.sentence.endswith(".") and one.instead[0].isupper(), name
