from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.policy.shares import Share, ShareTree
from tasks_app.labs.simulating.simulation_report import fair
from tasks_app.labs.simulating.world import SHARES

TREE = ShareTree(SHARES)
LEAVES = [leaf.name for leaf in TREE.leaves]
amounts = st.dictionaries(st.sampled_from(LEAVES), st.floats(0, 1e6), max_size=len(LEAVES))


def test_with_work_for_all_the_fair_targets_are_those_of_the_documents() -> None:
    executing = {"MC simul": 40000.0, "MC merge": 6000.0, "Reprocessing": 25000.0, "User Analysis": 22000.0}
    executing |= {"Group Analysis": 1000.0, "Express": 6000.0}
    targets = TREE.fair_targets(executing, dict.fromkeys(LEAVES, 1e6))
    assert targets == pytest.approx({name: TREE.usage(executing)[name].target for name in LEAVES})


def test_what_a_share_cannot_use_goes_to_its_siblings_first() -> None:
    executing = {
        "MC simul": 50.0,
        "User Analysis": 5.0,
        "Group Analysis": 15.0,
        "Express": 0.0,
        "MC merge": 0.0,
        "Reprocessing": 30.0,
    }
    queued = {"MC simul": 1e6, "Group Analysis": 1e6, "Reprocessing": 1e6}
    targets = TREE.fair_targets(executing, queued)
    assert targets["User Analysis"] == 5 and targets["Express"] == 0 and targets["MC merge"] == 0
    # Express leaves its 10 to the branches; analysis has 20/90 of all, less what users take.
    assert targets["Group Analysis"] == pytest.approx(100 * 20 / 90 - 5)
    assert targets["MC simul"] == pytest.approx(100 * 70 / 90 * 0.6)


def test_a_share_beyond_its_part_comes_after_all_others_even_if_its_branch_is_below_its_part() -> None:
    executing = {
        "MC simul": 33.0,
        "MC merge": 10.0,
        "Reprocessing": 29.0,
        "User Analysis": 8.0,
        "Group Analysis": 10.0,
        "Express": 10.0,
    }
    queued = dict.fromkeys(LEAVES, 1e3)
    assert TREE.sorted_leaves(executing)[:2] == ("User Analysis", "Group Analysis")
    order = TREE.fair_order(executing, queued)
    assert order[0] == "User Analysis" and order[-1] == "Group Analysis"


@given(executing=amounts, queued=amounts)
def test_fair_targets_give_away_what_executes_and_nobody_gets_more_than_it_wants(
    executing: dict[str, float], queued: dict[str, float]
) -> None:
    targets = TREE.fair_targets(executing, queued)
    total = sum(executing.values())
    assert sum(targets.values()) == pytest.approx(total, abs=1e-3)
    for name, target in targets.items():
        assert -1e-9 <= target <= executing.get(name, 0) + queued.get(name, 0) + 1e-3
    assert sorted(TREE.fair_order(executing, queued)) == sorted(LEAVES)


@given(executing=amounts, queued=amounts)
def test_another_way_to_work_them_out_agrees(executing: dict[str, float], queued: dict[str, float]) -> None:
    wanted = {name: executing.get(name, 0.0) + queued.get(name, 0.0) for name in LEAVES}
    expected = fair(SHARES, sum(executing.values()), wanted)
    assert TREE.fair_targets(executing, queued) == pytest.approx(expected, rel=1e-6, abs=1e-3)


def test_the_order_of_the_rows_changes_nothing_but_ties() -> None:
    rows = list(SHARES)
    executing = {
        "MC simul": 30.0,
        "MC merge": 1.0,
        "Reprocessing": 20.0,
        "User Analysis": 3.0,
        "Group Analysis": 2.0,
        "Express": 11.0,
    }
    queued = dict.fromkeys(LEAVES, 7.0)
    expected = TREE.fair_order(executing, queued)
    for seed in range(10):
        Random(seed).shuffle(rows)
        assert ShareTree(rows).fair_order(executing, queued) == expected


def test_a_share_of_no_value_gets_nothing() -> None:
    tree = ShareTree([Share("A", 0), Share("B", 1)])
    assert tree.fair_targets({"A": 5.0, "B": 5.0}, {"B": 100.0}) == {"A": 0.0, "B": 10.0}
