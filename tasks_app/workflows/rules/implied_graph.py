"""Which package waits for which: the graph that the base names of files and the order in lines imply. Pure.

A package waits for the package that writes a file which it reads, and for the one before it in its line. The first package of a
line with early start waits for nothing, except in stage 1, where early start means nothing. All walks are loops: their
steps grow as packages and files do.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tasks_app.workflows.rules.definition import Definition, Package

_NOT_IN_NODES: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Node:
    """A package at its place. `index` is its place among all packages; `waits` says whether it waits for the files it reads."""

    index: int
    stage: int
    line: int
    sequence: int
    package: Package
    waits: bool
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def line_path(self) -> str:
        return f"{self.stage:03d}/{self.line:03d}"

    @property
    def path(self) -> str:
        """`001/002/001`: stage, line and place in the line."""
        return f"{self.line_path}/{self.sequence:03d}"

    @property
    def name(self) -> str:
        """`Stage1Line2Package1Reco`, a name that DAGMan takes."""
        software = _NOT_IN_NODES.sub("_", self.package.binaries[0].software)
        return f"Stage{self.stage}Line{self.line}Package{self.sequence}{software[:1].upper()}{software[1:]}"


@dataclass(frozen=True)
class Graph:
    """Packages in the order of stage, line and place; `parents` and `children` by index, each in order."""

    nodes: tuple[Node, ...]
    parents: tuple[tuple[int, ...], ...]

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.nodes]
        for child, parents in enumerate(self.parents):
            for parent in parents:
                found[parent].append(child)
        return tuple(map(tuple, found))

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Each pair of a package and one that waits for it."""
        return tuple((parent, child) for parent, children in enumerate(self.children) for child in children)

    @cached_property
    def producers(self) -> Mapping[str, int]:
        """Which package writes a file."""
        return {name: node.index for node in self.nodes for name in node.outputs}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[int, ...]]:
        """Which packages read a file, of all files that a package reads."""
        found: dict[str, list[int]] = {}
        for node in self.nodes:
            for name in node.inputs:
                found.setdefault(name, []).append(node.index)
        return {name: tuple(indexes) for name, indexes in found.items()}

    @cached_property
    def by_path(self) -> Mapping[str, Node]:
        return {node.path: node for node in self.nodes}

    def order(self) -> list[int]:
        """All packages, each after those that it waits for, and otherwise in their own order. Shorter when there is a cycle."""
        waiting = [len(parents) for parents in self.parents]
        ready = deque(index for index, number in enumerate(waiting) if not number)
        found = []
        while ready:
            index = ready.popleft()
            found.append(index)
            for child in self.children[index]:
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        return found

    def cycle(self) -> tuple[int, ...]:
        """Packages each of which waits for the one before it, and the first for the last; empty when there is no cycle."""
        if len(done := set(self.order())) == len(self.nodes):
            return ()
        at = next(node.index for node in self.nodes if node.index not in done)
        seen: dict[int, int] = {}
        walked: list[int] = []
        while at not in seen:  # each package that is left waits for one that is left
            seen[at] = len(walked)
            walked.append(at)
            at = next(parent for parent in self.parents[at] if parent not in done)
        found = walked[seen[at] :][::-1]
        first = found.index(min(found))
        return (*found[first:], *found[:first])

    def below(self, index: int) -> Iterator[int]:
        """Every package that waits for this one, near or far, each once."""
        seen, todo = {index}, deque([index])
        while todo:
            for child in self.children[todo.popleft()]:
                if child not in seen:
                    seen.add(child)
                    todo.append(child)
                    yield child

    def depths(self) -> Sequence[int]:
        """How many packages stand in the longest chain before each one. For a graph without a cycle."""
        found = [0] * len(self.nodes)
        for index in self.order():
            for child in self.children[index]:
                found[child] = max(found[child], found[index] + 1)
        return found


def graph_of(definition: Definition) -> Graph:
    """The graph that a definition implies. Of two packages that write one file the first counts: the checks refuse it."""
    nodes = tuple(_nodes(definition))
    producers: dict[str, int] = {}
    for node in nodes:
        for name in node.outputs:
            producers.setdefault(name, node.index)
    parents: list[tuple[int, ...]] = []
    for node in nodes:
        found = _makers(node, producers) if node.waits else set()
        if node.sequence > 1:
            found.add(node.index - 1)
        parents.append(tuple(sorted(found)))
    return Graph(nodes, tuple(parents))


def _nodes(definition: Definition) -> Iterator[Node]:
    for index, (stage, line_number, sequence, line, package) in enumerate(definition.packages()):
        starts_early = line.early_start and stage > 1 and sequence == 1
        yield Node(
            index,
            stage,
            line_number,
            sequence,
            package,
            not starts_early,
            tuple(file.name for file in package.inputs()),
            tuple(file.name for file in package.outputs()),
        )


def _makers(node: Node, producers: Mapping[str, int]) -> set[int]:
    return {producers[name] for name in node.inputs if name in producers} - {node.index}


def words(nodes: Iterable[Node], most: int = 10) -> str:
    """Paths of packages for a sentence: `001/001/001, 001/002/001 and 3 more`."""
    paths = [node.path for node in nodes]
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(paths[:most]) + more
