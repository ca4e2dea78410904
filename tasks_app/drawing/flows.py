"""Data as it moved for a task: from storage to sites, and from sites to storage. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

MOST_LINKS: Final = 60
READ, WRITTEN = " (read)", " (written)"


@dataclass(frozen=True, slots=True)
class Moved:
    """Files of one kind that went from a place to another. `size` in bytes."""

    kind: str
    dataset: str
    source: str
    target: str
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Link:
    source: str
    target: str
    files: int
    size: int


def links(moved: Iterable[Moved]) -> list[Link]:
    """What went from where to where, most bytes first. A storage that is read and written is two places."""
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for one in moved:
        key = (f"{one.source}{READ}", one.target) if one.kind == "input" else (one.source, f"{one.target}{WRITTEN}")
        sums[key][0] += one.files
        sums[key][1] += one.size
    found = [Link(source, target, files, size) for (source, target), (files, size) in sums.items()]
    return sorted(found, key=lambda link: (-link.size, -link.files, link.source, link.target))


def sankey(found: list[Link]) -> dict[str, Any]:
    """Nodes and links for a drawing; of very many, the largest. Widths are megabytes, at least one."""
    drawn = found[:MOST_LINKS]
    names = dict.fromkeys(name for link in drawn for name in (link.source, link.target))
    return {
        "nodes": [{"name": name} for name in names],
        "links": [
            {"source": link.source, "target": link.target, "value": max(round(link.size / 1e6, 3), 0.001)}
            for link in drawn
        ],
    }
