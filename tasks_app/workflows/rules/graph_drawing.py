"""A graph as lines of text: a table of packages, and what waits for each. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tasks_app.workflows.rules.implied_graph import Graph

MOST_FILES: Final = 3
"""Names of files in one cell."""


def table(graph: Graph) -> Iterator[str]:
    """A line of heads, then one for each package: path, software, files that it reads and writes, and what it waits for."""
    rows = [("package", "software", "reads", "writes", "waits for")]
    for node in graph.nodes:
        parents = [graph.nodes[index].path for index in graph.parents[node.index]]
        rows.append((node.path, node.package.software, _some(node.inputs), _some(node.outputs), _some(parents)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join((*cells, row[4])).rstrip()


def drawing(graph: Graph) -> Iterator[str]:
    """Each package that others wait for, and these below it with the files that they wait for."""
    for node in graph.nodes:
        children = graph.children[node.index]
        if not children and graph.parents[node.index]:
            continue
        yield f"{node.path} {node.package.software}"
        written = set(node.outputs)
        for child in children:
            other = graph.nodes[child]
            files = [name for name in other.inputs if name in written] if other.waits else []
            branch = "└─▶" if child == children[-1] else "├─▶"
            yield f"  {branch} {other.path} {other.package.software}  ({_some(files) or 'next in its line'})"


def _some(names: tuple[str, ...] | list[str]) -> str:
    more = f" +{len(names) - MOST_FILES}" if len(names) > MOST_FILES else ""
    return ", ".join(names[:MOST_FILES]) + more
