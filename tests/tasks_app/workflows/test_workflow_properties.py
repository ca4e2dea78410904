"""What holds for any acyclic definition: it has an order, the way to DAGMan and back changes nothing, drops keep the books."""

from __future__ import annotations

import time
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_app.domain.failure_reasons import failed
from tasks_app.workflows.rules.dagman_file import Dag, DagNode, dag_of, read_dag, written
from tasks_app.workflows.rules.definition import Binary, Definition, InputFile, Keep, Line, OutputFile, Package, Stage
from tasks_app.workflows.rules.definition_files import read_definition
from tasks_app.workflows.rules.implied_graph import Graph, graph_of
from tasks_app.workflows.rules.line_drops import drop
from tasks_app.workflows.rules.package_states import PACKAGE_MOVES, PackageStatus, launchable, summary
from tasks_app.workflows.rules.stickiness import is_deleted, kept_files
from tasks_app.workflows.rules.task_groups import Names, planned_tasks
from tasks_app.workflows.rules.workflow_checks import checked
from tasks_app.workflows.rules.workflow_document import as_document
from tests.thorough import cases

PROPERTY = settings(max_examples=cases(80, 600), deadline=None)
SOFTWARE = ("reco", "reco-A", "store.v2", "Z_9", "child")
U, S, L, OK, F, C, _HELD = PackageStatus


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    """Lines of one to three packages in one to four stages; each package may read what packages before it write."""
    made: list[str] = []
    stages = []
    for stage in range(draw(st.integers(1, 4))):
        lines = []
        for _ in range(draw(st.integers(1, 5))):
            packages = []
            early = stage > 0 and bool(made) and draw(st.booleans())
            for sequence in range(draw(st.integers(1, 3))):
                reads = draw(st.lists(st.sampled_from(made), unique=True, max_size=4)) if made else []
                if early and not sequence and not reads:
                    reads = [made[0]]
                inputs = [InputFile(name) for name in reads]
                if draw(st.booleans()):
                    inputs.append(InputFile("raw", dataset="lab.raw"))
                outputs = [f"f{len(made) + n}" for n in range(draw(st.integers(0, 3)))]
                made += outputs
                files = tuple(map(OutputFile, outputs))
                run = draw(st.sampled_from(["", 'a "b\\" \\', "x $1 'y'"]))
                packages.append(
                    Package((Binary(draw(st.sampled_from(SOFTWARE)), run=run, inputs=tuple(inputs), outputs=files),))
                )
            lines.append(Line(tuple(packages), early))
        stages.append(Stage(tuple(lines)))
    limits = draw(st.dictionaries(st.sampled_from(["looping", "seg fault"]), st.integers(0, 3)))
    return Definition("wf", tuple(stages), priority=draw(st.integers(-9, 9)), restarts=limits)


@PROPERTY
@given(definitions())
def test_any_acyclic_definition_compiles_and_is_the_same_after_writing_and_reading(definition: Definition) -> None:
    again, graph = checked(as_document(definition))
    assert again == definition
    place = {index: at for at, index in enumerate(graph.order())}
    assert len(place) == len(graph.nodes)
    assert all(place[parent] < place[child] for parent, child in graph.edges)
    depths = graph.depths()
    assert all(depths[parent] < depths[child] for parent, child in graph.edges)


@PROPERTY
@given(definitions())
def test_the_way_to_dagman_and_back_changes_nothing(definition: Definition) -> None:
    graph = graph_of(definition)
    dag = dag_of(definition, graph)
    again = read_dag(written(dag))
    assert again == dag
    names = [node.name for node in graph.nodes]
    assert again.edges == {(names[parent], names[child]) for parent, child in graph.edges}
    assert all(" ." not in name and "+" not in name for name in names) and len(set(names)) == len(names)


@PROPERTY
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30),
    st.lists(st.tuples(st.integers(0, 9), st.integers(-9, 9), st.booleans()), min_size=7, max_size=7),
    st.text(max_size=20).filter(lambda text: "\n" not in text),
)
def test_any_dag_is_the_same_after_writing_and_reading(
    pairs: list[tuple[int, int]], numbers: list[tuple[int, int, bool]], text: str
) -> None:
    nodes = tuple(
        DagNode(f"n{at}", "x.sub", (("k", text),), retries, priority, done=done)
        for at, (retries, priority, done) in enumerate(numbers)
    )
    dag = Dag(nodes, frozenset((f"n{a}", f"n{b}") for a, b in pairs), {"sam": 2})
    assert read_dag(written(dag)) == dag


@PROPERTY
@given(definitions(), st.data())
def test_drops_keep_the_books(definition: Definition, data: st.DataObject) -> None:
    graph = graph_of(definition)
    indexes = st.sets(st.integers(0, len(graph.nodes) - 1))
    done, first, second = data.draw(indexes), data.draw(indexes), data.draw(indexes)
    one = drop(graph, first, successful=done)
    assert not set(one.canceled) & done and set(one.canceled) >= first - done
    assert set(one.canceled) - first <= {child for index in one.canceled for child in graph.children[index]}
    gone_files = {name for index in one.canceled for name in graph.nodes[index].outputs}
    for node in graph.nodes:
        if node.index not in one.canceled and node.index not in done:
            assert set(one.removed.get(node.index, ())) == set(node.inputs) & gone_files
    two = drop(graph, second, successful=done, canceled=one.canceled)
    both = drop(graph, first | second, successful=done)
    assert not set(two.canceled) & set(one.canceled)
    if set(one.canceled) | set(two.canceled) == set(both.canceled):
        assert one.files | two.files >= both.files


@PROPERTY
@given(definitions(), st.data())
def test_whatever_fails_is_restarted_or_dropped_every_workflow_ends(
    definition: Definition, data: st.DataObject
) -> None:
    """Packages run as they may be launched; each failure is booked once, and what cannot be restarted is dropped."""
    graph = graph_of(definition)
    states = [U] * len(graph.nodes)
    history: list[dict[str, int]] = [{} for _ in graph.nodes]
    failures = 0
    for _ in range(200):
        ready = launchable(definition, graph, states)
        if not ready:
            break
        for index in ready:
            move(states, index, S)
            move(states, index, L)
            if not data.draw(st.booleans()):
                move(states, index, OK)
                continue
            move(states, index, F)
            failures += 1
            said = failed(data.draw(st.sampled_from(["looping", "seg fault"])), history[index], definition.restarts)
            history[index] = dict(said.history)
            if said.restarts:
                move(states, index, U)
                continue
            done = [at for at, state in enumerate(states) if state is OK]
            gone = [at for at, state in enumerate(states) if state is C]
            for other in drop(graph, [index], successful=done, canceled=gone).canceled:
                move(states, other, C)
    assert sum(sum(counts.values()) for counts in history) == failures
    assert set(states) <= {OK, C}
    assert summary(graph, states) == ("successful" if OK in states else "canceled")


def move(states: list[PackageStatus], index: int, to: PackageStatus) -> None:
    assert to in PACKAGE_MOVES[states[index]] or states[index] is C
    states[index] = to


def test_a_workflow_of_2000_lines_compiles_in_less_than_two_seconds() -> None:
    text = (
        "job big\nstage\nrepeat i 1..1000\nline\nbinary reco\nin raw{i} from lab.raw\nout a{i} b{i}\nend\n"
        "stage\nrepeat i 1..1000\nline\nbinary recoA\nin a{i} b{i}\nout c{i}\nend"
    )
    began = time.process_time()
    definition, graph = read_definition(text)
    dag = written(dag_of(definition, graph))
    took = time.process_time() - began
    assert (len(graph.nodes), len(graph.edges), dag.count("PARENT")) == (2000, 1000, 1000)
    assert took < 2


def test_a_canceled_package_that_follows_nothing_is_no_cycle() -> None:
    graph: Graph = graph_of(Definition("j", (Stage((Line((Package((Binary("A"),)), Package((Binary("B"),)))),)),)))
    assert drop(graph, [0]).canceled == (0, 1)


@PROPERTY
@given(definitions(), st.data())
def test_a_task_writes_files_that_all_go_or_none_and_nobody_wishes_to_keep_those_that_go(
    definition: Definition, data: st.DataObject
) -> None:
    def wished(binary: Binary) -> Binary:
        keep = st.sampled_from(Keep)
        reads = tuple(replace(file, keep=data.draw(keep)) for file in binary.inputs)
        return replace(
            binary, inputs=reads, outputs=tuple(replace(one, keep=data.draw(keep)) for one in binary.outputs)
        )

    stages = tuple(
        Stage(
            tuple(
                replace(ln, packages=tuple(Package((wished(p.binaries[0]),)) for p in ln.packages)) for ln in one.lines
            )
        )
        for one in definition.stages
    )
    definition = replace(definition, stages=stages)
    graph, kept = graph_of(definition), kept_files(definition)
    for task in planned_tasks(graph, Names("user.ada.wf.1")):
        goes = {is_deleted(graph.nodes[index].package, kept) for index in task.nodes}
        assert len(goes) == 1
        if goes == {True}:
            names = {name for index in task.nodes for name in graph.nodes[index].outputs}
            files = [f for *_, p in definition.packages() for b in p.binaries for f in (*b.inputs, *b.outputs)]
            assert {file.keep for file in files if file.name in names} == {Keep.DELETABLE}
