from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.params.resubmission import apply_changes
from tasks_app.params.schema import parse
from tasks_app.refining.base import DatasetSpec, Refined, refine
from tasks_app.refining.incexec import MEASURED, OldDataset, compare, rule_again, task_columns_again
from tests.tasks_app.params import dictionaries as d

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
LATER = datetime(2026, 6, 4, 12, tzinfo=UTC)


def refined(raw: dict[str, Any], now: datetime = LATER) -> Refined:
    return refine(parse(raw), task_id=7, user="mia", now=now)


def spec(name: str, type_: str = "input", master: int | None = None) -> DatasetSpec:
    return DatasetSpec(name, type_, master=master)


def test_datasets_are_compared_by_name_and_type() -> None:
    old = [
        OldDataset(1, "a", "input", "done"),
        OldDataset(2, "b", "input", "done"),
        OldDataset(3, "c", "input", "removed"),
    ]
    found = compare(old, [spec("a"), spec("c"), spec("d"), spec("a", "output")])
    assert (found.unchanged, found.reappeared, found.inserted, found.removed) == ({0: 1}, {1: 3}, (2, 3), (2,))
    assert not found.is_empty


def test_what_was_removed_before_is_not_removed_again() -> None:
    assert compare([OldDataset(1, "a", "input", "removed")], []).is_empty


@pytest.mark.parametrize("type_", ["output", "log", "lib", "trn_log", "random_seed", "in_constituent"])
def test_products_and_what_agents_made_stay(type_: str) -> None:
    assert compare([OldDataset(1, "a", type_)], []).removed == ()


def test_a_secondary_follows_its_master() -> None:
    old = [
        OldDataset(1, "a", "input"),
        OldDataset(2, "s", "input", "ready", 1),
        OldDataset(3, "t", "input", "removed", 1),
    ]
    found = compare(old, [spec("b"), spec("s", master=0), spec("t", master=0)])
    assert (found.removed, found.inserted, found.new_masters) == ((1,), (0,), {2: 0, 3: 0})
    same = compare(old, [spec("a"), spec("s", master=0)])
    assert (same.new_masters, same.is_empty) == ({}, True)


names = st.sampled_from(["a", "b", "c", "d"])
types = st.sampled_from(["input", "output"])


@given(
    old=st.lists(st.tuples(names, types, st.sampled_from(["ready", "removed"])), unique_by=lambda row: row[:2]),
    new=st.lists(st.tuples(names, types), unique=True),
)
def test_each_new_dataset_has_one_fate_and_each_old_one_at_most_one(
    old: list[tuple[str, str, str]], new: list[tuple[str, str]]
) -> None:
    before = [OldDataset(n, name, type_, status) for n, (name, type_, status) in enumerate(old)]
    found = compare(before, [spec(name, type_) for name, type_ in new])
    assert sorted([*found.inserted, *found.reappeared, *found.unchanged]) == list(range(len(new)))
    ids = [*found.reappeared.values(), *found.unchanged.values(), *found.removed]
    assert len(set(ids)) == len(ids)
    assert all(before[n].status == "removed" for n in found.reappeared.values())
    assert all(before[n].status != "removed" for n in [*found.removed, *found.unchanged.values()])


def test_refining_the_same_parameters_changes_no_dataset() -> None:
    new = refined(d.reconstruction()).datasets
    old = [
        OldDataset(100 + n, s.datasetname, s.type, "ready", None if s.master is None else 100 + s.master)
        for n, s in enumerate(new)
    ]
    assert compare(old, new).is_empty


# --- columns ---

MEASUREMENTS: dict[str, object] = {name: 4711 for name in MEASURED}


def test_measurements_and_the_start_stay() -> None:
    old = {**refined(d.reconstruction(), NOW).task, **MEASUREMENTS, "attemptnr": 2}
    columns = task_columns_again(refined(d.reconstruction()), old, {})
    assert all(columns[name] == 4711 for name in MEASURED)
    assert (columns["starttime"], columns["attemptnr"]) == (NOW, 2)


def test_what_was_never_measured_comes_from_the_parameters() -> None:
    columns = task_columns_again(refined(d.generation()), {"splitrule": "US=2", "cputime": None}, {})
    assert (columns["cputime"], columns["starttime"]) == (900, LATER)


def test_a_new_memory_counts_although_another_was_measured() -> None:
    params = parse(apply_changes(d.reconstruction(), {"ramCount": 3000}))
    again = refine(params, task_id=7, user="mia", now=LATER)
    assert task_columns_again(again, MEASUREMENTS, {"ramCount": 3000})["ramcount"] == 3000


@pytest.mark.parametrize(
    ("old", "new", "changes", "wanted"),
    [
        ("NF=2,US=2", "NF=2,US=2", {}, "NF=2,US=2"),
        ("NF=2,US=3", "NF=2,US=2", {}, "NF=2,US=3"),
        ("NF=2", "NF=2,US=2", {}, "NF=2"),
        ("NF=2,NG=7,US=3", "NF=5,US=2", {"nFilesPerJob": 5}, "NF=5,NG=7,US=3"),
        ("NF=2", "NF=2,LS=3", {}, "NF=2,LS=3"),
        ("NF=2,LS=1", "NF=2", {}, "NF=2"),
    ],
)
def test_the_old_rule_stays_but_for_the_changes(old: str, new: str, changes: dict[str, Any], wanted: str) -> None:
    assert str(rule_again(old, new, changes)) == wanted
