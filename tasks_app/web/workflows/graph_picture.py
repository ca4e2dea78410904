"""A folded graph as what the template draws and the table beside it shows: one row for each box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.domain import words
from tasks_app.drawing.layered import HEIGHT, WIDTH, Arrow, Layered, layered
from tasks_app.drawing.scales import Scale
from tasks_app.workflows.rules.graph_folding import Box, Folded
from tasks_app.workflows.rules.implied_graph import Graph, Node
from tasks_app.workflows.rules.package_states import PackageStatus

LETTERS: Final = 24
"""Of a name that fit into a box."""
STRIP: Final = 5
_P = PackageStatus
_WORST_FIRST: Final = (_P.FAILED, _P.HELD, _P.LAUNCHED, _P.SCHEDULED, _P.UNSCHEDULED, _P.SUCCESSFUL, _P.CANCELED)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the strip at the foot of a box."""

    tone: str
    x: float
    y: float
    width: float


@dataclass(frozen=True, slots=True)
class BoxRow:
    """A box: its place in the drawing, what it says, and what the table says of it. `waits_for`: names and addresses."""

    box: Box
    x: float
    y: float
    name: str
    full_name: str
    software: str
    status: str
    tone: str
    said: str
    label: str
    url: str
    parts: Sequence[Part]
    usual_s: float | None
    failures: int
    waits_for: Sequence[tuple[str, str]]
    more_waits: int
    counts: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Picture:
    """The drawing and the rows of its table. `is_folded`: boxes stand for several packages."""

    drawn: Layered
    rows: Sequence[BoxRow]
    is_folded: bool

    @property
    def arrows(self) -> Sequence[Arrow]:
        return self.drawn.arrows


MOST_NAMED: Final = 8


def picture_of(
    graph: Graph,
    folded: Folded,
    address: Callable[[Box, Sequence[Node]], str],
    *,
    usual_s: Sequence[float | None] = (),
    failures: Sequence[int] = (),
    planned: bool = False,
) -> Picture:
    """`address` is the page of a box, "" for none; `planned`: nothing runs yet, so that no states are said."""
    drawn = layered([box.depth for box in folded.boxes], folded.edges, folded.chain_edges)
    names = [name_of(graph, box) for box in folded.boxes]
    urls = [address(box, [graph.nodes[at] for at in box.nodes]) for box in folded.boxes]
    before: dict[int, list[int]] = {}
    for a, b in folded.edges:
        before.setdefault(b, []).append(a)
    rows = []
    for place, box in enumerate(folded.boxes):
        counts = [(state.value, number) for state, number in box.counts.items()]
        status = next(state for state in _WORST_FIRST if box.counts.get(state)).value
        tone = "wait" if planned else words.tone(status)
        failed = sum(failures[at] for at in box.nodes) if failures else 0
        said = _planned(graph, box) if planned else _said(counts, failed, folded=box.is_folded)
        known = [usual_s[at] for at in box.nodes if usual_s and usual_s[at] is not None]
        x = drawn.boxes[place].x
        waits = before.get(place, [])
        in_chain = ", in the longest chain that is left" if box.in_chain else ""
        rows.append(
            BoxRow(
                box,
                x,
                drawn.boxes[place].y,
                _cut(names[place]),
                names[place],
                _cut(box.software),
                status,
                tone,
                said,
                f"{names[place]}, {box.software}: {said}{in_chain}",
                urls[place],
                () if planned else _strip(box, x, drawn.boxes[place].y),
                sum(s for s in known if s is not None) / len(known) if known else None,
                failed,
                [(names[at], urls[at]) for at in waits[:MOST_NAMED]],
                max(len(waits) - MOST_NAMED, 0),
                counts,
            )
        )
    return Picture(drawn, rows, folded.is_folded)


def name_of(graph: Graph, box: Box) -> str:
    """The path of a package; of several those of the first and the last."""
    first, last = graph.nodes[box.nodes[0]], graph.nodes[box.nodes[-1]]
    return first.path if not box.is_folded else f"{first.path} … {last.path}"


def _planned(graph: Graph, box: Box) -> str:
    if box.is_folded:
        return plural(len(box.nodes), "package")
    node = graph.nodes[box.nodes[0]]
    return f"reads {plural(len(node.inputs), 'file')}, writes {len(node.outputs)}"


def _said(counts: Sequence[tuple[str, int]], failed: int, *, folded: bool) -> str:
    if folded:
        return ", ".join(f"{words.count(number)} {state}" for state, number in counts)
    return counts[0][0] + (f", {plural(failed, 'failure')}" if failed else "")


def _strip(box: Box, left: float, top: float) -> list[Part]:
    """The states of a box's packages side by side."""
    x = Scale(0, len(box.nodes), left, left + WIDTH)
    found, below = [], 0
    for state, number in box.counts.items():
        start, end = x(below), x(below + number)
        found.append(Part(words.tone(state.value), start, top + HEIGHT - STRIP, round(end - start, 2)))
        below += number
    return found


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


BOX: Final = {"width": WIDTH, "height": HEIGHT, "strip": STRIP}
"""Sizes of a box, for the template."""
