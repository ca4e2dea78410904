"""Submissions of far too much: what they cost before they are refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tasks_app.api.v2.why_resources import WhatIfSerializer
from tasks_app.params.amounts import MOST_FILES
from tasks_app.params.faults import MOST_FAULTS
from tasks_app.params.job_groups import read_groups
from tasks_app.params.resubmission import check_changes
from tasks_app.params.schema import ParamErrors, parse, sound
from tests.tasks_app.params import dictionaries as d
from tests.tasks_app.params.test_schema import faults_of


def test_the_check_ends_when_there_are_more_faults_than_are_told() -> None:
    with pytest.raises(ParamErrors) as caught:
        parse({**d.smallest(), **{f"key{n}": n for n in range(900)}})
    assert len(caught.value.errors) == MOST_FAULTS + 1
    assert caught.value.errors[-1].message == "Only the first 500 errors are shown; the rest was not checked."


def calls_of(check: Callable[[], object]) -> int:
    """How many functions of Python a check calls: what it costs, whatever else the machine does."""
    counted = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal counted
        counted += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        check()
    finally:
        sys.setprofile(before)
    return counted


def _reading(count: int = 1, **more: Any) -> dict[str, Any]:
    items = [d.template("input", f"${{IN{n}}}", "user.ada.x", **more) for n in range(count)]
    return d.smallest(noInput=None, nEvents=None, nEventsPerJob=None, jobParameters=items)


MANY = 60_000
TOO_MUCH: dict[str, tuple[dict[str, Any], str]] = {
    "files": (_reading(2, files=["a/b"] * MANY), "jobParameters[1].files"),
    "files with names of keys": (_reading(2, files=[{"lfn": "a"}] * MANY), "jobParameters[1].files"),
    "parameters": (d.smallest(**{f"k{n}": 1 for n in range(MANY)}), ""),
    "keys of an item": (_reading(**{f"k{n}": 1 for n in range(MANY)}), "jobParameters[0]"),
    "keys of a step": (d.smallest(mergeSpec={f"k{n}": 1 for n in range(MANY)}), "mergeSpec"),
    "items": (d.smallest(jobParameters=[{}] * MANY), "jobParameters"),
    "sites": (d.smallest(excludedSite=["x y"] * MANY), "excludedSite"),
    "addresses": (d.smallest(pfnList=[""] * MANY), "pfnList"),
    "datasets of items": (
        _reading(2, files=None) | {"jobParameters": [d.template("input", "${IN}", "é," * MANY)]},
        "jobParameters[0].dataset",
    ),
    "datasets of streams": (_reading() | {f"dsForS{n}": "é," * 6000 for n in range(10)}, "dsForS1"),
    "patterns": (_reading(40, include="(," * 40), "jobParameters[24].include"),
    "placeholders": (d.smallest(jobParameters=[d.constant("${IN[}" * MANY)]), "jobParameters[0].value"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_what_is_too_much_is_refused_by_its_number_before_it_is_looked_at(what: str) -> None:
    raw, field = TOO_MUCH[what]
    assert calls_of(lambda: faults_of(raw)) < 3000
    assert faults_of(raw) == {field: "length"}
    assert sound(raw, ()) is None


@pytest.mark.parametrize(
    "raw",
    [
        _reading(files=["a/b"] * MANY),
        _reading(files=[n for n in range(MANY)]),
        d.smallest(multiStepExec={"a": [10**19] * MANY}),
        d.smallest(jobParameters=[{f"k{n}": 1 for n in range(50)}] * 1000),
    ],
    ids=["names", "numbers", "values", "keys"],
)
def test_a_list_of_faults_costs_no_more_than_what_is_told_of_it(raw: dict[str, Any]) -> None:
    def refused() -> None:
        with pytest.raises(ParamErrors):
            parse(raw)

    assert calls_of(refused) < 3 * MANY


def test_a_hundred_thousand_names_of_files_cost_a_few_calls_each() -> None:
    assert calls_of(lambda: parse(_reading(2, files=[f"f{n}" for n in range(MOST_FILES // 2)]))) < 10 * MOST_FILES


def test_changes_of_a_task_are_counted_too() -> None:
    changes = {f"dsForS{n}": "a," * 6000 for n in range(10)}
    with pytest.raises(ParamErrors) as caught:
        check_changes(changes)
    assert [(error.field, error.rule) for error in caught.value.errors] == [("dsForS1", "length")]


@pytest.mark.parametrize("body", [{"changes": [""] * MANY}, {f"k{n}": 1 for n in range(MANY)}], ids=["entries", "keys"])
def test_bodies_of_other_calls_are_refused_without_a_fault_for_each_part(body: dict[str, Any]) -> None:
    asked = WhatIfSerializer(data=body)
    assert calls_of(asked.is_valid) < 2 * MANY
    assert 0 < len(asked.errors) <= MOST_FAULTS


def steps_of(check: Callable[[], object]) -> int:
    """How many lines of Python run in a check, in loops each time: for what calls no functions."""
    counted = 0

    def count(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        nonlocal counted
        counted += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        check()
    finally:
        sys.settrace(before)
    return counted


def _grouped(count: int, *others: Any) -> dict[str, Any]:
    raw = _reading(files=[*({"lfn": f"f{n}", "boundaryID": n // 100} for n in range(count)), *others])
    return raw | {"groupBoundaryID": 3}


@pytest.mark.parametrize("others", [(), ("last",)], ids=["all have a group", "the last has none"])
def test_listed_files_in_groups_cost_steps_in_proportion_to_their_number(others: tuple[str, ...]) -> None:
    def steps(count: int) -> int:
        raw = _grouped(count, *others)
        return steps_of(lambda: faults_of(raw) if others else parse(raw))

    assert steps(400) < 5 * steps(100)


def _once(datasets: int) -> str:
    """So many datasets of which each file is read once, and twice as many groups."""
    outside = "".join(f"<inds onetime='1'><name>d{n}</name></inds>" for n in range(datasets))
    files = ((n % datasets, n) for n in range(2 * datasets))
    jobs = "".join(f"<job><inds><name>d{name}</name><file>f{n}</file></inds></job>" for name, n in files)
    return f"<submission>{outside}{jobs}</submission>"


def test_groups_in_xml_cost_steps_in_proportion_to_its_length() -> None:
    def steps(count: int) -> int:
        text = _once(count)
        read_groups.cache_clear()
        return steps_of(lambda: read_groups(text))

    assert steps(400) < 5 * steps(100)


def test_groups_share_the_outputs_for_all_of_them() -> None:
    jobs = "<job/><job><option name='n' prepend='1'/></job>"
    text = f"<submission>{'<output>x</output>' * 50}{jobs}</submission>"
    first, second = read_groups(text).groups
    assert first.outputs is second.outputs
    assert first.outputs == ("x",)
