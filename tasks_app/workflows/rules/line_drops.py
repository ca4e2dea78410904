"""Dropping a line: what is canceled with it, and which files those that go on no longer wait for. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tasks_app.workflows.rules.implied_graph import Graph


@dataclass(frozen=True, slots=True)
class Drop:
    """`canceled`: packages that will not run, by index, in order. `removed`: files that each package that goes on loses."""

    canceled: tuple[int, ...]
    removed: Mapping[int, tuple[str, ...]]

    @property
    def files(self) -> frozenset[str]:
        """All files that packages which go on no longer wait for."""
        return frozenset(name for names in self.removed.values() for name in names)


def drop(
    graph: Graph, dropped: Iterable[int], *, successful: Collection[int] = (), canceled: Collection[int] = ()
) -> Drop:
    """What dropping packages means, when some have succeeded and some were canceled before.

    What has succeeded stays, and so do its files. The files that the others would have written leave the inputs of those
    that read them. A package that has lost all of its inputs is canceled as well, and so on below. So is one that reads
    nothing and follows a canceled package in its line: there is nothing left that it could come after.
    """
    gone = set(canceled)
    inputs = {node.index: set(node.inputs) for node in graph.nodes}
    for index in gone:
        for name in graph.nodes[index].outputs:
            for reader in graph.consumers.get(name, ()):
                inputs[reader].discard(name)
    before = {index: frozenset(names) for index, names in inputs.items()}
    kept = frozenset(successful)
    todo = deque(index for index in dropped if index not in kept and index not in gone)
    gone.update(todo)
    fresh = set(todo)
    while todo:
        index = todo.popleft()
        for name in graph.nodes[index].outputs:
            for reader in graph.consumers.get(name, ()):
                inputs[reader].discard(name)
        for child in graph.children[index]:
            if child not in gone and child not in kept and not inputs[child]:
                gone.add(child)
                fresh.add(child)
                todo.append(child)
    removed = {
        index: tuple(name for name in graph.nodes[index].inputs if name in before[index] - names)
        for index, names in inputs.items()
        if index not in gone and index not in kept and before[index] != names
    }
    return Drop(tuple(sorted(fresh)), removed)
