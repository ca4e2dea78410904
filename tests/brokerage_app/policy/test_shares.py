"""How CPU is divided: the worked numbers of the facts about brokerage (1.4, 1.7, N22), and what holds for any tree."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from brokerage_app.policy.attributes import TaskAttributes
from brokerage_app.policy.division import distribute, divide, generating_order, serving_order
from brokerage_app.policy.shares import Share, ShareTree, Usage, faults, metrics
from brokerage_app.policy.workqueues import QueueRow, Tried


def row(number: int, share: int | None, *, stretchable: bool = False, partition: int | None = None) -> QueueRow:
    return QueueRow(
        number, f"q{number}", "managed", "atlas", share=share, stretchable=stretchable, partition_id=partition
    )


A, B, C, D = 1, 2, 3, 4
FLAT = (row(A, 50), row(B, 30, stretchable=True), row(C, 15, stretchable=True), row(D, 5))
P, P1, P2, P3, N = 10, 11, 12, 13, 20
PARTED = (
    row(P, 60, partition=-1),
    row(P1, 70, partition=P),
    row(P2, 20, stretchable=True, partition=P),
    row(P3, 10, partition=P),
    row(N, 40),
)


@pytest.mark.parametrize(
    ("queues", "working", "expected"),
    [
        (FLAT, {A, B, C, D}, {A: 5000, B: 3000, C: 1500, D: 500}),
        (FLAT, {B, C, D}, {A: 0, B: 6333.333, C: 3166.667, D: 500}),
        (FLAT, {A, B, D}, {A: 5000, B: 4500, C: 0, D: 500}),
        (FLAT, {A, D}, {A: 9090.909, B: 0, C: 0, D: 909.091}),
        (FLAT, set(), {A: 0, B: 0, C: 0, D: 0}),
        (PARTED, {P1, P2, P3, N}, {P: 6000, P1: 4200, P2: 1200, P3: 600, N: 4000}),
        (PARTED, {P2, P3, N}, {P: 6000, P1: 0, P2: 5400, P3: 600, N: 4000}),
        (PARTED, {P2, P3}, {P: 10000, P1: 0, P2: 9000, P3: 1000, N: 0}),
    ],
)
def test_cpu_is_divided_by_shares_and_what_is_unused_goes_to_the_stretchable(queues, working, expected):
    found = distribute(10_000, queues, working)
    assert found == {key: pytest.approx(value, abs=5e-4) for key, value in expected.items()}


def test_queues_without_a_share_are_outside_and_all_of_their_partition():
    queues = [row(1, None), row(2, 10), row(3, None, partition=-1), row(4, 5, partition=3)]
    assert distribute(100, queues, {1, 2, 4}) == {2: 100}


def test_inside_a_partition_with_a_share_none_is_nothing_and_a_negative_share_is_nothing():
    queues = [
        row(1, 10, partition=-1),
        row(2, None, partition=1),
        row(3, 7, partition=1),
        row(4, -5),
        row(5, 9, partition=77),
    ]
    assert distribute(100, queues, {2, 3, 4, 5}) == {1: 100, 2: 0, 3: 100, 4: 0}


def test_when_all_shares_are_0_what_is_there_is_split_equally():
    assert distribute(90, [row(1, 0), row(2, 0), row(3, 0), row(4, 0)], {1, 2, 3}) == {1: 30, 2: 30, 3: 30, 4: 0}
    assert distribute(90, [row(1, 0, stretchable=True), row(2, 30), row(3, 60)], {1, 2}) == {1: 60, 2: 30, 3: 0}


@st.composite
def work_queues(draw) -> tuple[list[QueueRow], set[int]]:
    share, flag = st.integers(0, 100), st.booleans()
    rows = [row(number, draw(share), stretchable=draw(flag)) for number in range(1, draw(st.integers(1, 6)))]
    for number in range(100, 100 * draw(st.integers(1, 4)), 100):
        rows.append(row(number, draw(share), stretchable=draw(flag), partition=-1))
        for sub in range(number + 1, number + draw(st.integers(2, 5))):
            rows.append(row(sub, draw(share), stretchable=draw(flag), partition=number))
    plain = [one.id for one in rows if not one.is_partition]
    return rows, set(draw(st.lists(st.sampled_from(plain))) if plain else ())


@given(queues=work_queues(), total=st.floats(0, 1e7), seed=st.integers(0, 9))
def test_nothing_is_lost_nobody_idle_gets_any_and_the_order_of_rows_says_nothing(queues, total, seed):
    rows, working = queues
    found = distribute(total, rows, working)
    assert min(found.values(), default=0) >= 0
    alone = [one.id for one in rows if not one.is_partition]
    assert all(found[key] == 0 for key in alone if key not in working)
    top = {one.id for one in rows if one.partition_id in (None, -1)}
    assert sum(found[key] for key in top) == pytest.approx(total if working else 0)
    for partition in (one.id for one in rows if one.is_partition):
        inner = sum(found[one.id] for one in rows if one.partition_id == partition)
        assert inner == pytest.approx(found[partition])
    assert distribute(total, random.Random(seed).sample(rows, len(rows)), working) == found


TREE = ShareTree(
    [
        Share("Production", 70),
        Share("MC", 60, "Production"),
        Share("MC simul", 75, "MC", processing_type="simul"),
        Share("MC merge", 25, "MC", processing_type="merge"),
        Share("Reprocessing", 40, "Production", processing_type="reprocessing"),
        Share("Analysis", 20),
        Share("User Analysis", 90, "Analysis", prod_source_label="user", working_group=" "),
        Share("Group Analysis", 10, "Analysis", prod_source_label="user"),
        Share("Express", 10, processing_type="urgent"),
    ]
)
EXECUTING = {
    "MC simul": 40_000,
    "MC merge": 6000,
    "Reprocessing": 25_000,
    "User Analysis": 22_000,
    "Group Analysis": 1000,
    "Express": 6000,
}


@pytest.mark.parametrize(
    ("leaf", "percent", "target", "ratio"),
    [
        ("MC simul", 31.5, 31_500, 1.2698),
        ("MC merge", 10.5, 10_500, 0.5714),
        ("Reprocessing", 28, 28_000, 0.8929),
        ("User Analysis", 18, 18_000, 1.2222),
        ("Group Analysis", 2, 2000, 0.5),
        ("Express", 10, 10_000, 0.6),
    ],
)
def test_targets_and_usage_follow_from_the_tree(leaf, percent, target, ratio):
    usage = TREE.usage(EXECUTING)[leaf]
    assert TREE.percents[leaf] == pytest.approx(percent)
    assert (usage.target, usage.ratio) == (pytest.approx(target), pytest.approx(ratio, abs=5e-5))


def test_inner_shares_have_the_sums_of_their_leaves():
    usage = TREE.usage(EXECUTING, {"MC merge": 5, "MC simul": 7})
    assert usage["Production"] == Usage(71_000, 12, pytest.approx(70_000))
    assert usage["Production"].ratio == pytest.approx(71 / 70)
    assert usage["Analysis"].ratio == pytest.approx(23 / 20)
    assert usage["MC"].ratio == pytest.approx(1.095, abs=5e-4)


def test_leaves_are_sorted_branch_by_branch():
    assert TREE.sorted_leaves(EXECUTING) == (
        "Express",
        "Reprocessing",
        "MC merge",
        "MC simul",
        "Group Analysis",
        "User Analysis",
    )


def test_ties_keep_their_order_and_a_share_without_a_target_comes_last():
    tree = ShareTree([Share("zero", 0), Share("b", 1), Share("a", 1)])
    assert tree.sorted_leaves({}) == ("zero", "b", "a")
    assert tree.sorted_leaves({"a": 1.0, "b": 1.0}) == ("b", "a", "zero")
    assert tree.usage({"a": 1.0})["zero"].ratio == 1e6


def test_jobs_of_the_share_test_are_sent_first():
    assert TREE.serving_order(EXECUTING, {})[0] == "Test"
    tree = ShareTree([Share("a", 9), Share("Test", 1)])
    assert tree.serving_order({"Test": 100.0}, {}) == ("Test", "a")


def test_figures_of_leaves_are_ratios_to_targets():
    tree = ShareTree([Share("a", 3), Share("b", 1), Share("idle", 0)])
    found = metrics(tree.usage({"a": 100.0, "b": 100.0}, {"a": 30.0}), ["a", "b", "idle"])
    assert found["a"] == {"usage": pytest.approx(2 / 3), "queue": 0.2, "norm_usage": 0.5, "norm_queue": 0.15}
    assert found["idle"] == {"usage": 999_999, "queue": 999_999, "norm_usage": 0, "norm_queue": 0}


def test_what_an_idle_branch_leaves_raises_the_targets_of_the_busy_ones():
    tree = ShareTree([Share("Production", 70), Share("Analysis", 20), Share("Express", 10)])
    found = tree.branches(
        {
            "Production": Usage(80_000, 0, 70_000),
            "Analysis": Usage(26_000, 0, 20_000),
            "Express": Usage(1000, 500, 10_000),
        }
    )
    assert (found["Express"].idle, found["Express"].equivalent) == (True, pytest.approx(0.1))
    assert found["Production"].equivalent == pytest.approx(1.038962, abs=5e-7)
    assert found["Analysis"].equivalent == pytest.approx(1.181819, abs=5e-7)


def task(label: str = "managed", **more) -> TaskAttributes:
    return TaskAttributes(vo="atlas", prod_source_label=label, **more)


@pytest.mark.parametrize(
    ("share", "asked", "fits"),
    [
        ({"prod_source_label": "man"}, task(), True),  # the beginning is enough
        ({"prod_source_label": "aged"}, task(), False),
        ({"prod_source_label": "user|managed"}, task(), True),
        ({"prod_source_label": "user"}, task(None), True),  # what a task does not say fits
        ({"processing_type": "evgen"}, task(), True),
        ({"processing_type": "evgen"}, task(processing_type="simul"), False),
        ({"campaign": "mc23"}, task(), True),
        ({"campaign": "mc23"}, task(campaign="mc20"), False),
        ({"trans_path": ".*reco"}, task(trans_path="a/reco.py"), True),
        ({"working_group": "GP_"}, task(working_group="GP_Top"), True),
        ({"working_group": "GP_"}, task(), False),  # no group is one blank
        ({"working_group": " "}, task(), True),
        ({"rtype": "cloud"}, task(site_resource_type="GRID"), True),  # not bound to a site
        ({"rtype": "cloud"}, task(site="A", site_resource_type="GRID"), False),
        ({"rtype": "GRID"}, task(site="A", site_resource_type="GRID"), True),
        ({"rtype": "GRID"}, task(site="A"), False),  # nobody knows the site
        ({"processing_type": "(", "campaign": "x"}, task(processing_type="y"), False),
        ({"processing_type": "(a+)+X"}, task(processing_type="a" * 60), False),
        ({"processing_type": "(a+)+X"}, task(processing_type="a" * 60 + "X"), True),
        ({"processing_type": "(?=x)"}, task(processing_type="x"), False),
        ({"vo": "cms"}, task(), False),
        ({"vo": "atlas"}, task(), True),
    ],
)
def test_every_pattern_of_a_share_fits_the_beginning_of_what_the_task_says(share, asked, fits):
    tree = ShareTree([Share("s", 1, **share)])
    assert (tree.choose(asked) is not None) is fits


def test_the_first_leaf_in_the_order_of_the_tree_gets_the_task():
    assert TREE.choose(task("user")).name == "MC simul"  # it says no processing type
    assert TREE.choose(task("user", processing_type="x")).name == "User Analysis"
    assert TREE.choose(task("user", processing_type="x", working_group="GP_T")).name == "Group Analysis"
    assert TREE.choose(task(processing_type="urgent")).name == "Express"
    assert TREE.choose(task(processing_type="x")) is None


def test_a_leaf_that_is_named_needs_no_match_and_an_inner_share_is_no_leaf():
    asked = task(processing_type="urgent")
    assert TREE.choose(asked, "Reprocessing").name == "Reprocessing"
    assert TREE.choose(asked, "Production").name == "Express"
    assert [TREE.is_leaf(name) for name in ("MC", "MC simul", "nowhere", None)] == [False, True, False, False]


def test_every_leaf_tried_is_explained():
    chosen, tried = TREE.explain(task("user", processing_type="x", working_group="GP_T"), "MC")
    assert chosen.name == "Group Analysis"
    assert tried == (
        Tried("MC", False, "the task names it, and it is not a share without children"),
        Tried("MC simul", False, "processingType 'simul' does not match 'x'"),
        Tried("MC merge", False, "processingType 'merge' does not match 'x'"),
        Tried("Reprocessing", False, "processingType 'reprocessing' does not match 'x'"),
        Tried("User Analysis", False, "workingGroup ' ' does not match 'GP_T'"),
        Tried("Group Analysis", True, "prodSourceLabel 'user' fits"),
    )
    assert TREE.explain(task("user"), "Express")[1] == (Tried("Express", True, "the task names it"),)
    assert all(not one.matched for one in TREE.explain(task(processing_type="x"))[1])


def test_the_list_for_a_vo_and_label_is_in_order_of_under_use():
    names = [share.name for share in TREE.aligned("atlas", "user", EXECUTING)]
    assert names == ["Express", "Reprocessing", "MC merge", "MC simul", "Group Analysis", "User Analysis"]
    tree = ShareTree([Share("a", 1, prod_source_label="managed"), Share("b", 1, vo="cms"), Share("c", 1, vo="atlas")])
    assert [share.name for share in tree.aligned("atlas", "user", {"c": 1.0})] == ["c"]
    assert [share.name for share in tree.aligned("atlas", None, {"c": 1.0})] == ["a", "c"]


def test_circles_and_lost_parents_are_named_and_left_out_of_the_tree():
    rows = [
        Share("a", 1, "b"),
        Share("b", 1, "a"),
        Share("self", 1, "self"),
        Share("lost", 1, "nowhere"),
        Share("ok", 1),
    ]
    found = faults([*rows, Share("under lost", 1, "lost"), Share("under a", 1, "a")])
    assert sorted(found) == ["a", "b", "lost", "self"]
    assert found["lost"] == "There is no share 'nowhere'."
    assert "'b' is below 'a'" in found["a"]
    assert [leaf.name for leaf in ShareTree(rows).leaves] == ["ok"]


@st.composite
def trees(draw) -> list[Share]:
    rows: list[Share] = []
    for number in range(draw(st.integers(1, 14))):
        parent = draw(st.none() | st.sampled_from([one.name for one in rows])) if rows else None
        rows.append(Share(f"s{number}", draw(st.integers(1, 100)), parent))
    return rows


@given(rows=trees(), data=st.data())
def test_leaves_have_all_of_the_whole_and_each_leaf_is_sorted_once(rows, data):
    tree = ShareTree(rows)
    executing = {leaf.name: data.draw(st.floats(0, 1e6)) for leaf in tree.leaves}
    assert sum(tree.percents[leaf.name] for leaf in tree.leaves) == pytest.approx(100)
    usage = tree.usage(executing)
    assert sum(usage[leaf.name].target for leaf in tree.leaves) == pytest.approx(sum(executing.values()))
    assert sorted(tree.sorted_leaves(executing)) == sorted(leaf.name for leaf in tree.leaves)


@given(rows=trees(), data=st.data())
def test_a_leaf_that_executes_more_never_moves_to_the_front(rows, data):
    tree = ShareTree(rows)
    leaves = [leaf.name for leaf in tree.leaves]
    assume(len(leaves) > 1)
    executing = {name: float(data.draw(st.integers(1, 1000))) for name in leaves}
    name = data.draw(st.sampled_from(leaves))
    before = tree.sorted_leaves(executing).index(name)
    after = tree.sorted_leaves({**executing, name: executing[name] * 3}).index(name)
    assert after >= before


def test_a_queue_that_cannot_use_its_part_leaves_the_rest_to_stretchable_ones_then_to_all():
    wishes = {A: 1000, B: 4000, C: 1e9, D: 1e9}
    assert divide(10_000, FLAT, wishes) == pytest.approx({A: 1000, B: 4000, C: 4500, D: 500})
    wishes[C] = 2000
    assert divide(10_000, FLAT, wishes) == pytest.approx({A: 1000, B: 4000, C: 2000, D: 3000})


def test_queues_are_served_by_what_they_have_of_their_part():
    executing = {P1: 50, P2: 5, P3: 5, N: 40}
    queued = dict.fromkeys((P1, P2, P3, N), 1000)
    assert serving_order(PARTED, executing, queued) == (P2, P3, N, P1)
    assert serving_order([row(30, None), *PARTED], executing, queued)[0] == 30
    assert serving_order([row(1, None), row(2, None)], {1: 5}, {2: 5}) == ()


def test_a_partition_gets_jobs_as_one_queue_and_in_it_queued_jobs_count():
    executing, waiting = {P1: 50, P2: 5, N: 45}, (P1, P2, P3, N)
    assert generating_order(PARTED, executing, {}, waiting) == (P3, P2, P1, N)
    assert generating_order(PARTED, executing, {P3: 60}, waiting) == (P2, P1, P3, N)
    assert generating_order(PARTED, {**executing, N: 10}, {}, waiting) == (N, P3, P2, P1)


@given(parts=st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 50)), min_size=1, max_size=8))
def test_nobody_gets_more_than_it_can_use_and_all_is_given_away(parts):
    rows = [row(n, share, stretchable=stretches) for n, (share, stretches, _) in enumerate(parts)]
    wishes = {n: float(wish) for n, (_, _, wish) in enumerate(parts)}
    found = divide(100, rows, wishes)
    assert all(found[n] <= wishes[n] + 1e-9 for n in wishes)
    assert sum(found.values()) == pytest.approx(min(100, sum(wishes.values())))
