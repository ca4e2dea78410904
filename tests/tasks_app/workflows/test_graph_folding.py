"""Graphs as boxes: one for each package, or for those of one place in all lines of a stage; and where they stand."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_app.drawing.layered import HEIGHT, MOST_ARROWS, WIDTH, layered
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.graph_folding import Folded, fold
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.package_states import PackageStatus
from tests.thorough import cases

_P = PackageStatus


FIRST = """stage
repeat i 1..%d
line
  binary A
    run a
    out a{i}
end
"""
THEN = """stage
repeat i 1..%d
line
  package
    binary B
      run b
      in a{i}
      out b{i}
  package
    binary C
      run c
      in b{i}
end
"""


def lines_of(number: int) -> Graph:
    return read_definition("job many\n" + FIRST % number + THEN % number)[1]


def folded(
    graph: Graph, states: list[PackageStatus] | None = None, chain: tuple[int, ...] = (), most: int = 200
) -> Folded:
    return fold(graph, states or [_P.UNSCHEDULED] * len(graph.nodes), chain, most=most)


def test_few_packages_are_a_box_each() -> None:
    graph = lines_of(2)
    found = folded(graph, chain=(0, 2, 3))
    assert [box.nodes for box in found.boxes] == [(n,) for n in range(6)] and not found.is_folded
    assert found.edges == graph.edges and found.chain_edges == {(0, 2), (2, 3)}
    assert [box.depth for box in found.boxes] == list(graph.depths())
    assert [box.in_chain for box in found.boxes] == [True, False, True, True, False, False]


def test_many_packages_are_put_together_by_stage_place_and_software() -> None:
    graph = lines_of(100)
    states = [_P.SUCCESSFUL] * 40 + [_P.FAILED] * 60 + [_P.UNSCHEDULED] * 200
    found = folded(graph, states, (40, 100, 101))
    assert [(box.stage, box.sequence, box.software, len(box.nodes)) for box in found.boxes] == [
        (1, 1, "A", 100),
        (2, 1, "B", 100),
        (2, 2, "C", 100),
    ]
    assert found.boxes[0].counts == {_P.SUCCESSFUL: 40, _P.FAILED: 60}
    assert found.edges == ((0, 1), (1, 2)) and found.chain_edges == {(0, 1), (1, 2)} and found.is_folded


def test_when_even_these_are_too_many_they_are_put_together_by_place_and_stage() -> None:
    text = "job odd\nstage\n" + "".join(f"line\nbinary S{n}\nrun a\nout a{n}\n" for n in range(30))
    graph = read_definition(text)[1]
    found = folded(graph, most=10)
    assert [(len(box.nodes), box.software) for box in found.boxes] == [(30, "S0 and 29 more")]


def test_boxes_that_wait_for_each_other_have_places_too() -> None:
    text = (
        "job knot\nstage\nline\nbinary A\nrun a\nout a1\nline\nbinary B\nrun b\nin a1\nout b1\n"
        "line\nbinary A\nrun a\nin b1\nout a2\nline\nbinary B\nrun b\nin a2\nout b2\n"
    )
    graph = read_definition(text)[1]
    found = folded(graph, most=2)
    assert found.edges == ((0, 1), (1, 0)) and len(found.boxes) == 2
    drawn = layered([box.depth for box in found.boxes], found.edges)
    assert len(drawn.arrows) == 2 and drawn.boxes[0] != drawn.boxes[1]


def test_a_graph_of_nothing_is_drawn_empty_and_one_box_stands_alone() -> None:
    assert layered([], []).boxes == () and layered([], []).width == 0
    alone = layered([0], [])
    assert alone.width > WIDTH and alone.height > HEIGHT and not alone.arrows


def test_too_many_arrows_are_counted_and_the_bold_ones_stay() -> None:
    half = 60
    edges = [(a, half + b) for a in range(half) for b in range(half)]
    drawn = layered([0] * half + [1] * half, edges, {(0, half)})
    assert len(drawn.arrows) == MOST_ARROWS and drawn.left_out == half * half - MOST_ARROWS
    assert drawn.arrows[-1].is_bold and (drawn.arrows[-1].start, drawn.arrows[-1].end) == (0, half)


@given(
    st.lists(st.integers(0, 5), max_size=40), st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=60)
)
@settings(max_examples=cases(60, 600))
def test_no_two_boxes_overlap_and_all_stand_in_the_picture(depths: list[int], pairs: list[tuple[int, int]]) -> None:
    edges = sorted({(a, b) for a, b in pairs if a < len(depths) and b < len(depths) and depths[a] < depths[b]})
    drawn = layered(depths, edges)
    places = [(box.x, box.y) for box in drawn.boxes]
    assert len(set(places)) == len(places)
    for x, y in places:
        assert 0 <= x <= drawn.width - WIDTH and 0 <= y <= drawn.height - HEIGHT
    for (x1, y1), (x2, y2) in zip(sorted(places), sorted(places)[1:], strict=False):
        assert x1 != x2 or y2 - y1 >= HEIGHT
    assert all(re.fullmatch(r"M[-\d]+ [-\d]+ C[-\d ]+", arrow.path) for arrow in drawn.arrows)


def test_a_package_is_called_by_all_of_its_binaries_and_by_three_when_there_are_many() -> None:
    for number, said in ((2, "P0, P1"), (5, "P0, P1, P2 and 2 more")):
        binaries = "".join(f"binary P{n}\nrun a\n" for n in range(number))
        graph = read_definition(f"job j\nstage\nline\npackage\nscript run\n{binaries}binary P0\nrun b\n")[1]
        assert folded(graph).boxes[0].software == said == graph.nodes[0].package.software
        assert graph.nodes[0].name == "Stage1Line1Package1P0", "names in DAGMan's file stay short"
