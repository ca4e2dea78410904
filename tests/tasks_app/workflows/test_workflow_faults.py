"""Definitions that are refused: every fault at once, each with its place and a sentence."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest

from tasks_app.params.faults import ParamErrors
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.workflow_checks import checked
from tasks_app.workflows.rules.workflow_document import as_document


def binary(software: str, reads: list[Any] = [], writes: list[str] = [], **more: Any) -> dict[str, Any]:  # noqa: B006
    inputs = [{"name": one} if isinstance(one, str) else one for one in reads]
    return {"software": software, "inputs": inputs, "outputs": [{"name": one} for one in writes], **more}


def line(*packages: Any, **more: Any) -> dict[str, Any]:
    found = [one if "binaries" in one else {"binaries": [one]} for one in packages]
    return {"packages": found, **more}


def workflow(*stages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"name": "j", "stages": [{"lines": lines} for lines in stages], **more}


def faults(document: object) -> dict[str, str]:
    with pytest.raises(ParamErrors) as caught:
        checked(document)
    return {error.field: error.message for error in caught.value.errors}


THERE = {"name": "raw", "dataset": "lab.raw"}
GOOD = workflow([line(binary("A", [THERE], ["x"]))], [line(binary("B", ["x"], ["y"]))])


def test_every_fault_is_said_at_once() -> None:
    document = workflow(
        [line(binary("A", ["nowhere"], ["x"])), line(binary("A", [THERE], ["x"]))],
        [line({"binaries": [binary("B", ["x"]), binary("B")], "nodes": ["n1"], "not_nodes": ["n1"]})],
    )
    found = faults(document)
    first = "stages[0].lines[0].packages[0].binaries[0]"
    assert set(found) == {
        f"{first}.inputs[0].name",
        "stages[0].lines[1].packages[0].binaries[0].outputs[0].name",
        "stages[1].lines[0].packages[0].script",
        "stages[1].lines[0].packages[0].nodes",
    }
    assert (
        f"is written by {first}.outputs[0] as well"
        in found["stages[0].lines[1].packages[0].binaries[0].outputs[0].name"]
    )
    assert "No package writes 'nowhere'" in found[f"{first}.inputs[0].name"]


def test_a_cycle_is_named_with_its_path() -> None:
    document = workflow(
        [line(binary("A", ["c"], ["a"])), line(binary("Z", [THERE], ["z"]))],
        [line(binary("B", ["a", "z"], ["b"])), line(binary("C", ["b"], ["c"])), line(binary("D", ["c"]))],
    )
    reads = "stages[{}].lines[{}].packages[0].binaries[0].inputs[0]"
    assert faults(document) == {
        reads.format(0, 0): "These packages wait for each other, so none can start: 001/001/001 → "
        f"002/001/001 (reads a at {reads.format(1, 0)}) → 002/002/001 (reads b at {reads.format(1, 1)}) → "
        f"001/001/001 (reads c at {reads.format(0, 0)})."
    }


def test_packages_of_a_line_are_part_of_a_cycle() -> None:
    document = workflow([line(binary("A", ["b"], ["a"]), binary("B", [], ["b"]))])
    at = "stages[0].lines[0].packages[0].binaries[0].inputs[0]"
    after = "001/001/002 (comes after it in its line, at stages[0].lines[0].packages[1])"
    assert f"001/001/001 → {after} → 001/001/001 (reads b at {at})" in faults(document)[at]


def of(document: dict[str, Any], stage: int) -> dict[str, Any]:
    return document["stages"][stage]["lines"][0]["packages"][0]["binaries"][0]


def of_path(stage: int, field: str) -> str:
    return f"stages[{stage}].lines[0].packages[0].binaries[0].{field}"


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        (lambda d: d.pop("stages"), "stages", "needs stages"),
        (lambda d: d.update(stages=[]), "stages", "empty"),
        (lambda d: d["stages"][0].update(lines=[]), "stages[0].lines", "at least one line"),
        (lambda d: d["stages"][1].update(number=3), "stages[1].number", "stage 2 is missing"),
        (lambda d: d["stages"][0].update(number=1.5), "stages[0].number", "whole number"),
        (lambda d: d.update(nmae="x"), "nmae", "Did you mean name?"),
        (lambda d: d.update(name="a b"), "name", "cannot be a name: it has letters"),
        (lambda d: d.update(hold="yes"), "hold", "true or false"),
        (lambda d: d.update(priority=10**9), "priority", "Expected"),
        (lambda d: d.update(restarts={"looping": -1}), "restarts.looping", "Expected 0"),
        (lambda d: d.update(originator="a\nb"), "originator", "cannot be an originator: it must stand on one line"),
        (
            lambda d: d["stages"][0]["lines"][0].update(early_start=True),
            "stages[0].lines[0].early_start",
            "first stage",
        ),
        (
            lambda d: d["stages"][1]["lines"].append(line(binary("E"), early_start=True)),
            "stages[1].lines[1].early_start",
            "no file",
        ),
        (lambda d: of(d, 1).update(cpu_percent=101), of_path(1, "cpu_percent"), "Expected 0 to 100"),
        (
            lambda d: of(d, 1)["inputs"][0].update(acquisition="fetch"),
            of_path(1, "inputs[0].acquisition"),
            "Did you mean pre-fetch?",
        ),
        (
            lambda d: of(d, 1)["inputs"][0].update(acquisition="self"),
            of_path(1, "inputs[0].acquisition"),
            "comes from there",
        ),
        (lambda d: of(d, 1)["inputs"].append({"name": "x"}), of_path(1, "inputs[1].name"), "already"),
        (lambda d: of(d, 1)["inputs"].append({"name": "y"}), of_path(1, "inputs[1].name"), "its own package"),
        (lambda d: of(d, 0)["outputs"][0].update(forward=False), of_path(0, "outputs[0].forward"), "not forwarded"),
        (
            lambda d: of(d, 0)["inputs"][0].update(acquisition="self"),
            of_path(0, "inputs[0].dataset"),
            "leave out dataset",
        ),
        (lambda d: of(d, 0)["inputs"][0].update(name="../x"), of_path(0, "inputs[0].name"), "a base name has letters"),
        (
            lambda d: d["stages"][0]["lines"][0]["packages"][0].update(nodes=["a", "a"]),
            "stages[0].lines[0].packages[0].nodes",
            "twice",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_place(change: Any, field: str, said: str) -> None:
    document = copy.deepcopy(GOOD)
    change(document)
    found = faults(document)
    assert list(found) == [field] and said in found[field]


@pytest.mark.parametrize(
    "document", [None, [], "job", 7, {}, {"name": "j", "stages": {}}, {"name": [], "stages": [None]}]
)
def test_what_is_no_workflow_is_refused(document: object) -> None:
    assert faults(document)


@pytest.mark.parametrize("text", ["{", "{]", '{"a":' * 100_000, "{" + "9" * 10_000 + "}"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ParamErrors, match="not JSON"):
        read_definition(text)


def test_json_that_loses_something_or_is_no_object_is_refused() -> None:
    with pytest.raises(ParamErrors, match="'a' stands twice"):
        read_definition('{"a": 1, "a": 2}')
    with pytest.raises(ParamErrors, match="Expected an object"):
        read_definition("[]")


def test_a_definition_is_the_same_after_writing_and_reading() -> None:
    definition, _ = checked(GOOD)
    assert checked(json.loads(json.dumps(as_document(definition))))[0] == definition


def test_too_many_packages_are_refused_before_any_is_looked_at() -> None:
    packages = [{"binaries": [{"software": "A"}]}] * 100
    found = faults(workflow([{"packages": packages}] * 101))
    assert any("more than 10 000 packages" in said.replace("\u202f", " ").replace(",", " ") for said in found.values())


def test_hostile_definitions_are_answered_soon() -> None:
    chain = [line(binary("A", [f"f{n + 1}"], [f"f{n}"])) for n in range(5000)]
    chain[-1]["packages"][0]["binaries"][0]["inputs"] = [{"name": "f0"}]
    unknown = [line(binary("A", [f"g{n}_{m}" for m in range(20)])) for n in range(4000)]
    began = time.process_time()
    assert any("and 4980 more" in said for said in faults(workflow(chain)).values())
    assert len(faults(workflow(unknown))) > 400
    assert time.process_time() - began < 8


def test_names_that_are_made_to_be_compared_are_not() -> None:
    """Names of one letter that are near each other take milliseconds a pair, and there may be thousands."""
    long = "z" * 100
    many = [line(binary("A", [f"y{long}{n}"], [f"{long}{n}"])) for n in range(600)]
    before = time.process_time()
    found = faults(workflow(many))
    assert time.process_time() - before < 10, "twice as long with comparisons, and minutes with more names"
    assert len(found) > 400 and not any("Did you mean" in said for said in found.values())
    few = faults(workflow([line(binary("A", ["rwa"], ["raw"]))]))
    assert "Did you mean raw?" in " ".join(few.values())
