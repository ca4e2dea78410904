"""What is wrong with a definition whose form is right: names without a file, two producers, cycles, restrictions. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from jedisite.vocabulary.words import plural
from tasks_app.params.faults import Faults, FieldError, ParamErrors, shown
from tasks_app.workflows.rules.definition import Acquisition, Binary, Definition, InputFile, Package
from tasks_app.workflows.rules.implied_graph import Graph, Node, graph_of
from tasks_app.workflows.rules.workflow_document import read_document

LONGEST_CYCLE = 20
"""Packages of a cycle that are named."""


def checked(document: object) -> tuple[Definition, Graph]:
    """The definition that a document holds, and its graph. Raises ParamErrors with every fault, with paths such as
    `stages[0].lines[2].packages[0].binaries[0].inputs[1].name`."""
    faults = Faults()
    definition = read_document(document, faults)
    if definition is None:
        faults.raise_if_any()
        raise ParamErrors((FieldError("", "form", "The document holds no workflow."),))
    graph = graph_of(definition)
    check(definition, graph, faults)
    faults.raise_if_any()
    return definition, graph


def check(definition: Definition, graph: Graph, faults: Faults) -> None:
    """Add every fault of meaning. Raises ParamErrors past the most that are told."""
    producers, kept_back = _check_producers(definition, faults)
    places = _places(definition)
    for place, package in places:
        _check_package(place, package, faults)
    for place, package in places:
        _check_inputs(place, package, producers, faults)
        for file in package.inputs():
            if file.name in kept_back:
                reads = _reads_at(place, package, file.name)
                said = f"{shown(file.name)} is read at {reads} and not forwarded: set forward, or leave out local."
                faults.add(f"{producers[file.name]}.forward", "read by others", said)
    for number, line in enumerate(definition.stages[0].lines):
        if line.early_start:
            said = "Early start means nothing in the first stage: no stage before it writes files."
            faults.add(f"stages[0].lines[{number}].early_start", "early start", said)
    for s, stage in enumerate(definition.stages):
        for n, line in enumerate(stage.lines):
            first = graph.by_path[f"{s + 1:03d}/{n + 1:03d}/001"]
            if s and line.early_start and not any(name in producers for name in first.inputs):
                said = "Its first package reads no file that another package writes, so it waits for none anyway."
                faults.add(f"stages[{s}].lines[{n}].early_start", "early start", said)
    if cycle := graph.cycle():
        _add_cycle([graph.nodes[index] for index in cycle], faults)


def _add_cycle(nodes: Sequence[Node], faults: Faults) -> None:
    """Each package of a cycle with the file for which it waits, and where it reads that; told where the first one does."""
    steps = [_step(before, node) for before, node in pairwise([*nodes, nodes[0]])]
    told = [why for _, why in steps]
    more = len(nodes) - LONGEST_CYCLE
    if more > 0:
        told = [*told[: LONGEST_CYCLE - 1], f"… (and {more} more)", told[-1]]
    said = f"These packages wait for each other, so none can start: {' → '.join([nodes[0].path, *told])}."
    faults.add(steps[-1][0], "cycle", said)


def _step(before: Node, node: Node) -> tuple[str, str]:
    """Where and why a package waits for one before it in a cycle."""
    written = set(before.outputs)
    name = next((name for name in node.inputs if name in written), "") if node.waits else ""
    place = _place(node.stage, node.line, node.sequence)
    at = _reads_at(place, node.package, name) if name else place
    return at, f"{node.path} ({f'reads {name} at {at}' if name else f'comes after it in its line, at {at}'})"


def _place(stage: int, line: int, sequence: int) -> str:
    return f"stages[{stage - 1}].lines[{line - 1}].packages[{sequence - 1}]"


def _reads_at(place: str, package: Package, name: str) -> str:
    """The path of the first input of that name."""
    return next(
        f"{at}.inputs[{n}]"
        for at, binary in _binaries(place, package)
        for n, file in enumerate(binary.inputs)
        if file.name == name
    )


def _places(definition: Definition) -> list[tuple[str, Package]]:
    """Each package with the path of its record."""
    return [(_place(stage, line, sequence), package) for stage, line, sequence, _, package in definition.packages()]


def _binaries(place: str, package: Package) -> Iterator[tuple[str, Binary]]:
    return ((f"{place}.binaries[{n}]", binary) for n, binary in enumerate(package.binaries))


def _check_producers(definition: Definition, faults: Faults) -> tuple[dict[str, str], set[str]]:
    """The place that writes each file, and the files that are not forwarded; a file that two places write is a fault."""
    found: dict[str, str] = {}
    kept_back: set[str] = set()
    for place, package in _places(definition):
        for at, binary in _binaries(place, package):
            for n, file in enumerate(binary.outputs):
                where = f"{at}.outputs[{n}]"
                if found.get(file.name, "").startswith(f"{at}."):
                    faults.add(f"{where}.name", "once", f"{shown(file.name)} is an output of this binary already.")
                elif file.name in found:
                    said = f"{shown(file.name)} is written by {found[file.name]} as well: a base name has one producer."
                    faults.add(f"{where}.name", "one producer", said)
                found.setdefault(file.name, where)
                if not file.forward:
                    kept_back.add(file.name)
    return found, kept_back


def _check_package(place: str, package: Package, faults: Faults) -> None:
    if len(package.binaries) > 1 and not package.script:
        said = f"It has {len(package.binaries)} binaries, and a script must run them: give script."
        faults.add(f"{place}.script", "required", said)
    if package.nodes and not set(package.nodes) - set(package.not_nodes):
        said = f"not_nodes leaves out each of the {plural(len(set(package.nodes)), 'node')} on which it may run."
        faults.add(f"{place}.nodes", "restriction", said)
    for name in ("nodes", "not_nodes"):
        given = Counter[str](getattr(package, name))
        for node in [node for node, times in given.items() if times > 1][:3]:
            faults.add(f"{place}.{name}", "once", f"{shown(node)} stands in it twice.")


def _check_inputs(place: str, package: Package, producers: dict[str, str], faults: Faults) -> None:
    written: set[str] = set()
    own = {file.name for file in package.outputs()}
    for at, binary in _binaries(place, package):
        seen: set[str] = set()
        for n, file in enumerate(binary.inputs):
            where = f"{at}.inputs[{n}]"
            if file.name in seen:
                faults.add(f"{where}.name", "once", f"{shown(file.name)} is an input of this binary already.")
            seen.add(file.name)
            if file.name in own and file.name not in written:
                said = f"{shown(file.name)} is written by this binary or a later one of its own package, so it is not there."
                faults.add(f"{where}.name", "in order", said)
            _check_input(where, file, producers, faults)
        written |= {file.name for file in binary.outputs}


def _check_input(where: str, file: InputFile, producers: dict[str, str], faults: Faults) -> None:
    if maker := producers.get(file.name):
        if file.acquisition is not Acquisition.NONE or file.dataset:
            what = "dataset" if file.dataset else "acquisition"
            said = f"{shown(file.name)} is written by {maker}, so it comes from there: leave out {what}."
            faults.add(f"{where}.{what}", "one source", said)
    elif file.acquisition is Acquisition.NONE and not file.dataset:
        said = (
            f"No package writes {shown(file.name)}. If it is there already, name its dataset; if the binary or the site "
            "fetches it, give acquisition self or pre-fetch"
        )
        faults.add_unknown(f"{where}.name", said, file.name, producers, "known file")
    elif file.acquisition is Acquisition.SELF and file.dataset:
        said = "With acquisition self the binary knows where the file is: leave out dataset."
        faults.add(f"{where}.dataset", "one source", said)
