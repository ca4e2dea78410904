"""The boxes in which a graph is shown: one for each package, or, of a large one, one for the packages of all lines of a stage
that are alike. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tasks_app.workflows.rules.implied_graph import Graph, Node
from tasks_app.workflows.rules.package_states import PackageStatus

MOST_BOXES: Final = 200
ORDER: Final = (
    PackageStatus.SUCCESSFUL,
    PackageStatus.LAUNCHED,
    PackageStatus.SCHEDULED,
    PackageStatus.FAILED,
    PackageStatus.CANCELED,
    PackageStatus.HELD,
    PackageStatus.UNSCHEDULED,
)


@dataclass(frozen=True, slots=True)
class Box:
    """Packages that are shown as one: `nodes` by index, in order, their states with numbers, and whether one of them is in the
    longest chain that is left. `depth`: in the longest chain of boxes before it there are so many."""

    nodes: tuple[int, ...]
    software: str
    stage: int
    sequence: int
    counts: Mapping[PackageStatus, int]
    in_chain: bool
    depth: int = 0

    @property
    def is_folded(self) -> bool:
        return len(self.nodes) > 1


@dataclass(frozen=True, slots=True)
class Folded:
    """Boxes in the order of their first packages, and which box waits for which: pairs of places in `boxes`, each once."""

    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]
    chain_edges: frozenset[tuple[int, int]]

    @property
    def is_folded(self) -> bool:
        return any(box.is_folded for box in self.boxes)


_BY: Final[Sequence[Callable[[Node], object]]] = (
    lambda node: node.index,
    lambda node: (node.stage, node.sequence, node.package.software),
    lambda node: (node.stage, node.sequence),
    lambda node: node.stage,
)
"""How packages are put together: more and more of them, until there are few boxes."""


def fold(
    graph: Graph, states: Sequence[PackageStatus], chain: Collection[int] = (), *, most: int = MOST_BOXES
) -> Folded:
    """At most `most` boxes, as long as there are not more stages."""
    groups: dict[object, list[Node]] = {}
    for key in _BY:
        groups = {}
        for node in graph.nodes:
            groups.setdefault(key(node), []).append(node)
        if len(groups) <= most:
            break
    of_node = {node.index: place for place, nodes in enumerate(groups.values()) for node in nodes}
    edges = sorted({(of_node[a], of_node[b]) for a, b in graph.edges if of_node[a] != of_node[b]})
    in_chain, steps = set(chain), list(chain)
    boxes = []
    depths = _depths(len(groups), edges)
    for place, nodes in enumerate(groups.values()):
        found = Counter(states[node.index] for node in nodes)
        names = Counter(node.package.software for node in nodes)
        name = nodes[0].package.software + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        boxes.append(
            Box(
                tuple(node.index for node in nodes),
                name,
                nodes[0].stage,
                nodes[0].sequence,
                {state: found[state] for state in ORDER if found[state]},
                any(node.index in in_chain for node in nodes),
                depths[place],
            )
        )
    along = {(of_node[a], of_node[b]) for a, b in pairwise(steps)}
    return Folded(tuple(boxes), tuple(edges), frozenset((a, b) for a, b in along if a != b))


def _depths(size: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Layers of boxes. Boxes that wait for each other, which folding may lead to, stand where the walk leaves them."""
    children: list[list[int]] = [[] for _ in range(size)]
    waiting = [0] * size
    for a, b in edges:
        children[a].append(b)
        waiting[b] += 1
    depth, done = [0] * size, [False] * size
    ready = [place for place in range(size) if not waiting[place]]
    left = iter(range(size))
    for _ in range(size):
        at = ready.pop() if ready else next(place for place in left if not done[place])
        done[at] = True
        for child in children[at]:
            if done[child]:
                continue
            depth[child] = max(depth[child], depth[at] + 1)
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    return depth
