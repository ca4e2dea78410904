"""The graph as a DAGMan file of HTCondor, and the way back. Pure.

Written: JOB lines in the order of packages, then VARS, RETRY, PRIORITY, SCRIPT, CATEGORY, MAXJOBS, and one PARENT line for each
set of parents. Each command stands on one line, since DAGMan takes no other form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tasks_app.params.faults import Faults, shown
from tasks_app.workflows.rules.definition import Acquisition, Definition
from tasks_app.workflows.rules.implied_graph import Graph, Node

MOST_EDGES: Final = 200_000
MOST_NODES: Final = 20_000
LONGEST_FILE: Final = 20_000_000
SAM_LIMIT: Final = 2
"""Packages that use a SAM station at once."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_VARIABLE: Final = re.compile(r"""[ \t]*([A-Za-z_][A-Za-z0-9_]{0,59})[ \t]*=[ \t]*"((?:[^"\\]|\\["\\])*)\"""")
_RESERVED: Final = frozenset({"PARENT", "CHILD", "ALL_NODES"})


@dataclass(frozen=True, slots=True)
class DagNode:
    """One node: what its JOB, VARS, RETRY, PRIORITY, SCRIPT and CATEGORY lines say."""

    name: str
    submit: str
    variables: tuple[tuple[str, str], ...] = ()
    retries: int = 0
    priority: int = 0
    before: str = ""
    after: str = ""
    category: str = ""
    done: bool = False


@dataclass(frozen=True)
class Dag:
    """Nodes in order, pairs of names of a parent and a child, and how many nodes of a category run at once."""

    nodes: tuple[DagNode, ...]
    edges: frozenset[tuple[str, str]]
    limits: Mapping[str, int] = field(default_factory=dict)


def dag_of(definition: Definition, graph: Graph) -> Dag:
    """What DAGMan would run. A node is retried as often as all reasons together allow a restart."""
    retries = sum(definition.restarts.values())
    names = [node.name for node in graph.nodes]
    nodes = tuple(_node(node, definition, retries) for node in graph.nodes)
    limits = {"sam": SAM_LIMIT} if any(node.category for node in nodes) else {}
    return Dag(nodes, frozenset((names[parent], names[child]) for parent, child in graph.edges), limits)


def _node(node: Node, definition: Definition, retries: int) -> DagNode:
    package = node.package
    run = (
        " ".join((package.script, *(f"'{b.run}'" for b in package.binaries)))
        if package.script
        else package.binaries[0].run
    )
    fetched = [file.name for file in package.inputs() if file.acquisition is Acquisition.PREFETCH]
    outputs = ",".join(node.outputs)
    given = {
        "path": f"{definition.name}/{node.path}",
        "software": package.binaries[0].software,
        "version": package.binaries[0].version,
        "inputs": ",".join(node.inputs),
        "outputs": outputs,
        "run": run,
        "machines": ",".join(package.nodes),
    }
    return DagNode(
        node.name,
        f"{package.binaries[0].software}.sub",
        tuple((key, value) for key, value in given.items() if value),
        retries,
        definition.priority,
        " ".join(("prefetch", *fetched)) if fetched else "",
        "check_outputs $JOB $RETURN" if outputs else "",
        "sam" if any(binary.sam for binary in package.binaries) else "",
    )


def written(dag: Dag) -> str:
    """The text of a DAGMan file."""
    lines = [f"JOB {node.name} {node.submit}{' DONE' if node.done else ''}" for node in dag.nodes]
    for node in dag.nodes:
        if node.variables:
            given = " ".join(f'{key}="{_escaped(value)}"' for key, value in node.variables)
            lines.append(f"VARS {node.name} {given}")
    lines += [f"RETRY {node.name} {node.retries}" for node in dag.nodes if node.retries]
    lines += [f"PRIORITY {node.name} {node.priority}" for node in dag.nodes if node.priority]
    for node in dag.nodes:
        lines += [f"SCRIPT PRE {node.name} {node.before}"] if node.before else []
        lines += [f"SCRIPT POST {node.name} {node.after}"] if node.after else []
    lines += [f"CATEGORY {node.name} {node.category}" for node in dag.nodes if node.category]
    lines += [f"MAXJOBS {category} {number}" for category, number in sorted(dag.limits.items())]
    lines += [f"PARENT {' '.join(parents)} CHILD {' '.join(children)}" for parents, children in families(dag)]
    return "".join(f"{line}\n" for line in lines)


def families(dag: Dag) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Children by the set of their parents: every child of a family waits for every parent of it. In the order of nodes."""
    place = {node.name: number for number, node in enumerate(dag.nodes)}
    parents: dict[str, list[str]] = {}
    for parent, child in sorted(dag.edges, key=lambda edge: (place[edge[1]], place[edge[0]])):
        parents.setdefault(child, []).append(parent)
    found: dict[tuple[str, ...], list[str]] = {}
    for child, names in parents.items():
        found.setdefault(tuple(names), []).append(child)
    return [(names, tuple(children)) for names, children in sorted(found.items(), key=lambda item: place[item[0][0]])]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def read_dag(text: str) -> Dag:
    """What a DAGMan file says. Raises ParamErrors with every fault, each with its line, such as `line 12`."""
    faults = Faults()
    reader = _DagReader(faults)
    if len(text) > LONGEST_FILE:
        faults.add("", "length", f"It has more than {LONGEST_FILE} characters.")
        faults.raise_if_any()
    for number, line in enumerate(text.split("\n"), 1):
        reader.line(f"line {number}", line)
    faults.raise_if_any()
    return Dag(tuple(reader.nodes.values()), frozenset(reader.edges), reader.limits)


class _DagReader:
    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.nodes: dict[str, DagNode] = {}
        self.edges: set[tuple[str, str]] = set()
        self.limits: dict[str, int] = {}
        self.commands: Mapping[str, Callable[[str, list[str], str], None]] = {
            "JOB": self._job,
            "VARS": self._variables,
            "RETRY": self._retry,
            "PRIORITY": self._priority,
            "SCRIPT": self._script,
            "CATEGORY": self._category,
            "MAXJOBS": self._limit,
            "PARENT": self._family,
        }

    def line(self, where: str, line: str) -> None:
        words = line.split()
        if not words or words[0].startswith("#"):
            return
        command = words[0].upper()
        if command not in self.commands:
            self.faults.add_unknown(
                where, f"{shown(words[0])} is not a command that is read here", command, self.commands
            )
            return
        self.commands[command](where, words[1:], line)

    def _known(self, where: str, words: Sequence[str], least: int = 1) -> DagNode | None:
        if len(words) < least:
            self.faults.add(where, "required", "Something is missing at the end of the line.")
            return None
        if words[0] not in self.nodes:
            self.faults.add_unknown(where, f"No JOB line before declares {shown(words[0])}", words[0], self.nodes)
            return None
        return self.nodes[words[0]]

    def _number(self, where: str, word: str, low: int) -> int:
        if re.fullmatch(r"-?[0-9]{1,6}", word) is None or int(word) < low:
            self.faults.add(where, "between", f"Expected a whole number from {low}, got {shown(word)}.")
            return 0
        return int(word)

    def _job(self, where: str, words: list[str], line: str) -> None:
        if len(words) not in (2, 3) or (len(words) == 3 and words[2].upper() != "DONE"):
            self.faults.add(where, "form", "A JOB line has a name, a submit file, and at most DONE.")
        elif _NAME.fullmatch(words[0]) is None or words[0].upper() in _RESERVED:
            said = f"{shown(words[0])} cannot name a node: use letters, digits, _ and -, and no word of DAGMan."
            self.faults.add(where, "form", said)
        elif words[0] in self.nodes:
            self.faults.add(where, "once", f"The node {words[0]} is declared twice.")
        elif len(self.nodes) >= MOST_NODES:
            self.faults.add(where, "at most", f"There are more than {MOST_NODES} nodes.")
        else:
            self.nodes[words[0]] = DagNode(words[0], words[1], done=len(words) == 3)

    def _variables(self, where: str, words: list[str], line: str) -> None:
        if (node := self._known(where, words, 2)) is None:
            return
        at = line.index(words[0], line.upper().index("VARS") + 4) + len(words[0])
        end, found = len(line.rstrip()), dict(node.variables)
        while at < end:
            one = _VARIABLE.match(line, at)
            if one is None:
                self.faults.add(where, "form", f'Expected name="value" at character {at + 1}.')
                return
            found[one[1]] = re.sub(r'\\(["\\])', r"\1", one[2])
            at = one.end()
        self.nodes[node.name] = replace(node, variables=tuple(found.items()))

    def _retry(self, where: str, words: list[str], line: str) -> None:
        if node := self._known(where, words, 2):
            if len(words) > 2:
                self.faults.add(where, "form", "A RETRY line has a node and a number; UNLESS-EXIT is not read here.")
            self.nodes[node.name] = replace(node, retries=self._number(where, words[1], 0))

    def _priority(self, where: str, words: list[str], line: str) -> None:
        if node := self._known(where, words, 2):
            self.nodes[node.name] = replace(node, priority=self._number(where, words[1], -999_999))

    def _script(self, where: str, words: list[str], line: str) -> None:
        kind = words[0].upper() if words else ""
        if kind not in ("PRE", "POST"):
            self.faults.add(
                where, "one of", "A SCRIPT line begins with PRE or POST and a node; DEFER and HOLD are not read here."
            )
        elif node := self._known(where, words[1:], 2):
            text = " ".join(words[2:])
            self.nodes[node.name] = replace(node, before=text) if kind == "PRE" else replace(node, after=text)

    def _category(self, where: str, words: list[str], line: str) -> None:
        if node := self._known(where, words, 2):
            self.nodes[node.name] = replace(node, category=words[1])

    def _limit(self, where: str, words: list[str], line: str) -> None:
        if len(words) != 2:
            self.faults.add(where, "form", "A MAXJOBS line has a category and a number.")
        else:
            self.limits[words[0]] = self._number(where, words[1], 0)

    def _family(self, where: str, words: list[str], line: str) -> None:
        at = next((number for number, word in enumerate(words) if word.upper() == "CHILD"), 0)
        parents, children = words[:at], words[at + 1 :]
        if not parents or not children:
            said = "A PARENT line names parents, the word CHILD and children, all on one line."
            self.faults.add(where, "form", said)
            return
        known = [self._known(where, [name]) is not None for name in dict.fromkeys((*parents, *children))]
        if len(self.edges) + len(parents) * len(children) > MOST_EDGES:
            self.faults.add(where, "at most", f"There are more than {MOST_EDGES} pairs of a parent and a child.")
        elif all(known):
            self.edges.update((parent, child) for parent in parents for child in children)
