"""The worked examples of the DØ job definition, D1 to D12."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks_app.domain.failure_reasons import failed
from tasks_app.workflows.rules import package_states
from tasks_app.workflows.rules.dagman_file import dag_of, families, read_dag, written
from tasks_app.workflows.rules.definition import Definition, Keep
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.line_drops import drop
from tasks_app.workflows.rules.package_states import PackageStatus, launchable, on_dead_node, summary
from tasks_app.workflows.rules.stickiness import kept_files, stickiest

CASE_IV = (Path(__file__).parent / "samples/case_iv.txt").read_text()
U, S, L, OK, F, C, _HELD = PackageStatus


def read(text: str) -> tuple[Definition, Graph]:
    return read_definition(text)


def named_edges(graph: Graph) -> set[tuple[str, str]]:
    return {(graph.nodes[a].path, graph.nodes[b].path) for a, b in graph.edges}


def lines_of(definition: Definition, graph: Graph, word: str) -> list[str]:
    text = written(dag_of(definition, graph))
    return [line for line in text.splitlines() if line.startswith(f"{word} ")]


def test_d1_one_package_is_one_node_without_edges() -> None:
    definition, graph = read("job j\nstage\nline\nbinary reco\n in x from d\n out y")
    assert [node.path for node in graph.nodes] == ["001/001/001"] and graph.edges == ()
    assert lines_of(definition, graph, "JOB") == ["JOB Stage1Line1Package1Reco reco.sub"]


def test_d2_only_a_file_of_the_same_name_makes_an_edge() -> None:
    text = "job j\nstage\nline\nbinary A\n out x\nstage\nline\nbinary B\n in x\nline\nbinary C\n in y from elsewhere"
    assert named_edges(read(text)[1]) == {("001/001/001", "002/001/001")}


def test_d3_the_first_package_of_a_line_with_early_start_waits_for_nothing_and_the_second_for_the_first() -> None:
    text = (
        "job j\nstage\nline\nbinary merge\n in a from d\n out merged\nstage\nline\nbinary A\n in merged\n"
        "line early-start\npackage\nbinary B\n in merged\n out b\npackage\nbinary C\n in b"
    )
    definition, graph = read(text)
    assert named_edges(graph) == {("001/001/001", "002/001/001"), ("002/002/001", "002/002/002")}
    assert lines_of(definition, graph, "PARENT") == [
        "PARENT Stage1Line1Package1Merge CHILD Stage2Line1Package1A",
        "PARENT Stage2Line2Package1B CHILD Stage2Line2Package2C",
    ]


def test_d4_case_iv_for_three_files_has_12_nodes_and_9_edges_in_3_lines() -> None:
    definition, graph = read(CASE_IV)
    assert (len(graph.nodes), len(graph.edges)) == (12, 9)
    assert lines_of(definition, graph, "PARENT") == [
        f"PARENT Stage1Line{i}Package1Reco CHILD Stage2Line{3 * i - 2}Package1RecoA "
        f"Stage2Line{3 * i - 1}Package1Store Stage2Line{3 * i}Package1RecoA"
        for i in (1, 2, 3)
    ]
    assert set(lines_of(definition, graph, "JOB")) == {
        *(f"JOB Stage1Line{i}Package1Reco reco.sub" for i in (1, 2, 3)),
        *(f"JOB Stage2Line{i}Package1RecoA recoA.sub" for i in (1, 3, 4, 6, 7, 9)),
        *(f"JOB Stage2Line{i}Package1Store store.sub" for i in (2, 5, 8)),
    }
    assert read_dag(written(dag_of(definition, graph))) == dag_of(definition, graph)


def test_d5_of_a_job_on_hold_nothing_may_be_launched() -> None:
    definition, graph = read("job j\nhold\nstage\nline\nbinary A\n in x from d")
    states = [U] * len(graph.nodes)
    assert (launchable(definition, graph, states), summary(graph, states, hold=True)) == ([], "held")
    released, _ = read("job j\nhold no\nstage\nline\nbinary A\n in x from d")
    assert (launchable(released, graph, states), summary(graph, states)) == ([0], "waiting")


def test_d6_a_dead_node_takes_what_is_scheduled_and_launched_there() -> None:
    assert on_dead_node("n5", ["n5", "n5", "n5", "n6", "n5"], [L, S, OK, L, F]) == [0, 1]
    for state in (L, S):
        assert F in package_states.PACKAGE_MOVES[state]


def test_d7_a_reason_counts_first_and_then_its_limit_decides() -> None:
    first = failed("looping", {}, {"looping": 1})
    assert (first.history, first.restarts) == ({"looping": 1}, True)
    second = failed("looping", first.history, {"looping": 1})
    assert (second.history, second.restarts) == ({"looping": 2}, False)
    assert not failed("seg fault", {}, {"looping": 1}).restarts


def test_d8_what_waits_for_a_package_that_is_restarted_goes_on_waiting() -> None:
    definition, graph = read(CASE_IV)
    states = [U] * 12
    states[0] = F
    said = failed("missing output", {}, definition.restarts)
    assert said.restarts
    assert U in package_states.PACKAGE_MOVES[F]
    assert launchable(definition, graph, states) == [1, 2]
    states[0] = U
    assert launchable(definition, graph, states) == [0, 1, 2]


def test_d9_what_a_dropped_line_would_have_written_is_waited_for_no_more() -> None:
    text = (
        "job j\nstage\nline\nbinary A\n in a from d\n out reco1_1\nline\nbinary A\n in b from d\n out reco9_1\n"
        "stage\nline\nbinary C\n in reco1_1 reco9_1"
    )
    definition, graph = read(text)
    found = drop(graph, [0])
    assert (found.canceled, found.removed) == ((0,), {2: ("reco1_1",)})
    assert launchable(definition, graph, [C, OK, U]) == [2]
    assert drop(graph, [0], successful=[0]).canceled == (), "what it wrote is there"


def test_d9b_what_reads_nothing_any_more_is_canceled() -> None:
    _, graph = read(CASE_IV)
    found = drop(graph, [1])
    assert [graph.nodes[index].path for index in found.canceled] == [
        "001/002/001",
        "002/004/001",
        "002/005/001",
        "002/006/001",
    ]
    assert found.removed == {} and len(graph.nodes) - len(found.canceled) == 8


@pytest.mark.parametrize(
    ("wishes", "holds"),
    [
        ([Keep.RETAIN, Keep.DELETABLE, Keep.DELETABLE], Keep.RETAIN),
        ([Keep.TEMPORARY, Keep.RETAIN], Keep.RETAIN),
        ([Keep.DELETABLE, Keep.TEMPORARY], Keep.TEMPORARY),
        ([], Keep.DELETABLE),
    ],
)
def test_d10_the_stickiest_wish_holds(wishes: list[Keep], holds: Keep) -> None:
    assert stickiest(wishes) is holds


def test_d10_files_of_case_iv_stay_and_what_was_fetched_need_not() -> None:
    kept = kept_files(read(CASE_IV)[0])
    assert (kept["reco1_1"], kept["filt1"], kept["raw1"]) == (Keep.RETAIN, Keep.RETAIN, Keep.DELETABLE)


def test_d11_chained_binaries_are_one_package_which_restarts_as_a_whole() -> None:
    chain = "binary A\n in a from d\n out b\nbinary B\n in b\n out c\nbinary C\n in c"
    text = f"job j\nstage\nline\npackage\nscript chain.sh\n{chain}"
    _, graph = read(text)
    assert len(graph.nodes) == 1
    assert (graph.nodes[0].inputs, graph.nodes[0].outputs) == (("a",), ("b", "c"))
    assert U in package_states.PACKAGE_MOVES[F]


def test_d12_a_package_that_reads_of_two_waits_for_both() -> None:
    first = "line\nbinary A\n in a from d\n out x\nline\nbinary C\n in a from d\n out y"
    text = f"job j\nstage\n{first}\nstage\nline\nbinary B\n in x y"
    definition, graph = read(text)
    parents = ("Stage1Line1Package1A", "Stage1Line2Package1C")
    assert families(dag_of(definition, graph)) == [(parents, ("Stage2Line1Package1B",))]
    assert launchable(definition, graph, [OK, U, U]) == [1]
    assert launchable(definition, graph, [OK, OK, U]) == [2]
