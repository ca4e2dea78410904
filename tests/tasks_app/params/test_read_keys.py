"""Keys of items: each kind of item has those that are read, and all others are refused or told."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.params.combinations import remarks
from tasks_app.params.items import ITEM_KEYS
from tasks_app.params.read_keys import CONSTANT, READ
from tasks_app.params.schema import ParamErrors, parse
from tests.tasks_app.params import dictionaries as d
from tests.tasks_app.params.dictionaries import Params

ITEMS = {
    "constant": d.constant("--x"),
    "primary": d.template("input", "${IN/T}", "lab.in"),
    "secondary": d.template("input", "${TWO}", "lab.two"),
    "sequence": d.template("pseudo_input", "${SEQNUMBER}", "seq_number"),
    "number": d.template("number", "${MAXEVENTS}"),
    "output": d.template("output", "o.${SN}.txt", "lab.o"),
}


def task(which: str, more: Params, **changes: Any) -> Params:
    """A task with an item of each kind, of which one has more keys."""
    items = [{**item, **(more if kind == which else {})} for kind, item in ITEMS.items()]
    usual = {"noInput": None, "nEvents": None, "nEventsPerJob": None, "nFilesPerJob": 4}
    log = {**d.log(), **(more if which == "log" else {})}
    return d.smallest(**{**usual, "jobParameters": items, "log": log, **changes})


@pytest.mark.parametrize(
    ("which", "more", "says"),
    [
        (
            "primary",
            {"nFilesPerJob": 2},
            "nFilesPerJob has no effect on the primary input: it is for a secondary input",
        ),
        ("primary", {"ratio": 2}, "it is for a secondary input or a sequence of numbers."),
        ("primary", {"attributes": "ratio=2"}, "ratio has no effect on the primary input"),
        ("primary", {"eventRatio": 2}, "it is for a secondary input."),
        ("primary", {"num_records": 2}, "it is for a sequence of numbers."),
        ("primary", {"destination": "X_DISK"}, "it is for an output or a log."),
        ("primary", {"mergeOnly": True}, "it is for an output."),
        ("primary", {"check": True}, "without a parent, whose files are those that are taken: give parent_tid."),
        ("primary", {"indexConsistent": True}, "on a single dataset: the other dataset of the pair needs it as well."),
        ("primary", {"files": []}, "This list is empty, so it would choose no file"),
        ("secondary", {"allowNoOutput": True}, "it is for an output."),
        ("secondary", {"transient": True}, "it is for an output or a log."),
        ("secondary", {"container": "lab.all/"}, "it is for an output or a log."),
        ("secondary", {"num_records": 7}, "it is for a sequence of numbers."),
        ("sequence", {"random": True}, "random has no effect on a sequence of numbers"),
        ("number", {"dataset": "lab.x"}, "dataset has no effect on a number"),
        ("number", {"offset": 5}, "on this number: ${FIRSTEVENT} and ${RNDMSEED} have a start."),
        ("output", {"mergeOnly": True}, "without mergeOutput, which makes merge jobs."),
        ("output", {"attributes": "nosplit"}, "nosplit has no effect on an output"),
        ("output", {"attributes": "ru"}, "reusable has no effect on an output"),
        *(
            ("output", {key: True}, f"{key} has no effect on an output: it is for the primary input")
            for key in ("random", "check", "usedup", "indexConsistent", "expand")
        ),
        *(("output", {key: "x"}, f"{key} has no effect on an output") for key in ("include", "exclude")),
        *(("output", {key: 2}, f"{key} has no effect on an output") for key in ("ratio", "num_records")),
        ("output", {"reusable": True}, "reusable has no effect on an output: it is for a secondary input"),
        ("constant", {"dataset": "lab.x"}, "dataset has no effect on a constant"),
        ("constant", {"files": ["f"]}, "files has no effect on a constant"),
        ("constant", {"offset": 1}, "offset has no effect on a constant"),
        ("constant", {"ratio": 1}, "ratio has no effect on a constant"),
        ("constant", {"param_type": "input"}, "param_type has no effect on a constant"),
        ("log", {"random": True}, "random has no effect on a log"),
    ],
)
def test_a_key_that_nothing_reads_is_refused_with_the_items_that_it_is_for(which: str, more: Params, says: str) -> None:
    with pytest.raises(ParamErrors) as found:
        parse(task(which, more))
    (fault,) = found.value.errors
    place = "log" if which == "log" else f"jobParameters[{list(ITEMS).index(which)}]"
    assert fault.field == f"{place}.{next(iter(more))}" and says in fault.message


@pytest.mark.parametrize(
    ("which", "more", "says"),
    [
        ("primary", {"token": "X"}, "jobParameters[1].token: token has no effect on the primary input."),
        ("primary", {"reusable": True}, "jobParameters[1].reusable: reusable has no effect on the primary input."),
        (
            "primary",
            {"attributes": "repeat"},
            "jobParameters[1].attributes: repeat has no effect on the primary input.",
        ),
        ("secondary", {"token": "X"}, "jobParameters[2].token: token has no effect on a secondary input."),
        ("log", {"hidden": True}, "log.hidden: hidden has no effect on a log."),
        ("log", {"allowNoOutput": True}, "log.allowNoOutput: allowNoOutput has no effect on a log."),
    ],
)
def test_what_workflow_systems_say_of_all_items_is_taken_and_told(which: str, more: Params, says: str) -> None:
    assert remarks(parse(task(which, more))) == [says]


@pytest.mark.parametrize(
    ("which", "more", "changes"),
    [
        ("primary", {"check": True}, {"parent_tid": 7}),
        ("primary", {"random": True, "usedup": True, "offset": 1, "attributes": "manytime"}, {}),
        ("primary", {"ratio": None, "check": False, "nFilesPerJob": None}, {}),
        ("secondary", {"ratio": 2, "reusable": True, "attributes": "nosplit"}, {}),
        ("secondary", {"eventRatio": 2, "random": True}, {}),
        ("sequence", {"num_records": 9, "offset": 3}, {}),
        ("output", {"token": "X", "container": "lab.all/", "transient": True, "allowNoOutput": True}, {}),
        ("output", {"attributes": "an"}, {}),
        ("constant", {"value": "${IN/E}", "param_type": "input", "dataset": "lab.in/"}, {}),
    ],
)
def test_what_is_read_is_taken_without_a_word(which: str, more: Params, changes: Params) -> None:
    assert remarks(parse(task(which, more, **changes))) == []


def test_datasets_with_the_same_indices_are_two() -> None:
    items = [{**ITEMS[kind], "indexConsistent": True} for kind in ("primary", "secondary")]
    assert remarks(parse(task("", {}, jobParameters=items))) == []


def test_every_key_is_for_some_item() -> None:
    read = frozenset().union(*READ.values())
    assert set(ITEM_KEYS) - read == {"attributes", "pseudo"}  # the words of attributes stand for themselves
    assert READ[CONSTANT] < read
