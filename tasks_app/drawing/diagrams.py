"""Diagrams of state machines as SVG, from the tables of moves. Pure.

States stand in rows, in the order of a life; an arrow is a move. Moves that very many states have are drawn once, from a
box that names them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

WIDTH, HEIGHT = 104, 26
GAP_X, GAP_Y, EDGE = 20, 46, 14
ARCH = 16
"""Room above the first row, for arrows that pass over neighbours."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Moves that are drawn through one box: from each of `sources` to each of `targets`, where the table has them.

    `from_box`: the box stands for the sources, else for the targets.
    """

    label: str
    sources: Collection[str]
    targets: Collection[str]
    row: int
    from_box: bool = True


@dataclass(frozen=True, slots=True)
class Machine:
    """What is drawn: states by rows, their moves, and what is gathered. States that no row names get a row at the end."""

    title: str
    rows: Sequence[Sequence[str]]
    moves: Mapping[Any, Collection[str]]
    gathered: Sequence[Gathered] = ()


class Place(NamedTuple):
    row: int
    x: float
    y: float


Move = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Route:
    """The way that one task or job took through the states: how often each move was made, and where it is now."""

    moves: Mapping[Move, int]
    now: str

    @property
    def states(self) -> set[str]:
        return {self.now, *(state for move in self.moves for state in move)}


def moves_of(machine: Machine) -> set[Move]:
    """All moves of the table."""
    return {(str(old), str(new)) for old, nexts in machine.moves.items() for new in nexts}


def gathered_moves(machine: Machine, box: Gathered) -> set[Move]:
    return {(old, new) for old, new in moves_of(machine) if old in box.sources and new in box.targets}


def draw(machine: Machine, route: Route | None = None) -> str:
    """The diagram. Each arrow carries its move, or those that it stands for, in `data-moves`, and says them when pointed at.

    With a route, the moves that were made are drawn bold and the others pale.
    """
    # Marks are known in the whole page: those of each diagram have their own names.
    mark = machine.title.lower().replace(" ", "-")
    rows = _rows(machine)
    columns = max(len(row) for row in rows)
    places = _places(rows, columns)
    single = moves_of(machine)
    arrows = []
    for number, box in enumerate(machine.gathered):
        moves = gathered_moves(machine, box)
        single -= moves
        if route is not None:
            # A move that was made is drawn from its own state, not from the box that stands for many.
            single |= moves & route.moves.keys()
            moves -= route.moves.keys()
        arrows += _arrows_of_box(mark, places, f"box {number}", box, moves)
    arrows += [
        _arrow(mark, places[a], places[b], [(a, b)], f"{a} → {b}", route.moves.get((a, b), 0) if route else 0)
        for a, b in sorted(single, key=lambda move: (route is not None and move in route.moves, move))
    ]
    labels = {f"box {n}": box.label for n, box in enumerate(machine.gathered)}
    nodes = [_node(name, labels.get(name), place, route) for name, place in places.items()]
    width = columns * (WIDTH + GAP_X) - GAP_X + 2 * EDGE
    height = len(rows) * (HEIGHT + GAP_Y) - GAP_Y + 2 * EDGE + ARCH
    return (
        f'<svg class="machine{" routed" if route else ""}" role="img" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(machine.title)}</title>'
        f"<defs>{_head(mark, 'ahead')}{_head(mark, 'back')}</defs>"
        f"{''.join(arrows)}{''.join(nodes)}</svg>"
    )


def _rows(machine: Machine) -> list[list[str]]:
    rows = [list(map(str, row)) for row in machine.rows]
    named = {name for row in rows for name in row}
    known = {str(old) for old in machine.moves} | {new for _, new in moves_of(machine)}
    if known - named:
        rows.append(sorted(known - named))
    for number, box in enumerate(machine.gathered):
        rows[box.row].append(f"box {number}")
    return rows


def _places(rows: Sequence[Sequence[str]], columns: int) -> dict[str, Place]:
    """Centres of the states; each row is centred."""
    found = {}
    for number, row in enumerate(rows):
        left = EDGE + (columns - len(row)) * (WIDTH + GAP_X) / 2
        for index, name in enumerate(row):
            x = left + index * (WIDTH + GAP_X) + WIDTH / 2
            found[name] = Place(number, x, EDGE + ARCH + number * (HEIGHT + GAP_Y) + HEIGHT / 2)
    return found


def _arrows_of_box(mark: str, places: Mapping[str, Place], name: str, box: Gathered, moves: set[Move]) -> list[str]:
    ends = sorted({new for _, new in moves} if box.from_box else {old for old, _ in moves})
    found = []
    for end in ends:
        these = sorted(m for m in moves if end == (m[1] if box.from_box else m[0]))
        a, b = (name, end) if box.from_box else (end, name)
        others = ", ".join(m[0] if box.from_box else m[1] for m in these)
        said = f"{others} → {end}" if box.from_box else f"{end} → {others}"
        found.append(_arrow(mark, places[a], places[b], these, said))
    return found


def _arrow(mark: str, start: Place, end: Place, moves: Sequence[Move], said: str, times: int = 0) -> str:
    back = end.row < start.row or (end.row == start.row and end.x < start.x)
    path = _path(start, end)
    carried = ";".join(f"{a} {b}" for a, b in moves)
    kind = "back" if back else "ahead"
    if times:
        said += f": {times} times" if times > 1 else ": once"
    drawn = f"{kind} taken" if times else kind
    return (
        f'<path class="{drawn}" d="{path}" marker-end="url(#{mark}-{kind})" data-moves="{escape(carried)}">'
        f"<title>{escape(said)}</title></path>"
    )


def _path(start: Place, end: Place) -> str:
    """A line between the sides of two boxes that look at each other; within a row, past neighbours in an arch."""
    if start.row != end.row:
        down = 1 if end.row > start.row else -1
        # Arrows up and down keep to their own half of a box, so that two in opposite directions stay apart.
        shift = 16 * down
        lean = max(-WIDTH / 2 + 20, min(WIDTH / 2 - 20, (end.x - start.x) / 8))
        x1, y1 = start.x + shift / 2 + lean, start.y + down * HEIGHT / 2
        x2, y2 = end.x + shift / 2 - lean, end.y - down * (HEIGHT / 2 + 5)
        bend = down * (GAP_Y * 0.6 + 6 * (abs(end.row - start.row) - 1))
        return f"M{x1:.0f} {y1:.0f} C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
    right = 1 if end.x > start.x else -1
    if abs(end.x - start.x) < WIDTH + GAP_X + 1:
        y = start.y - 5 * right
        return f"M{start.x + right * WIDTH / 2:.0f} {y:.0f} L{end.x - right * (WIDTH / 2 + 5):.0f} {y:.0f}"
    y1, y2 = start.y - right * HEIGHT / 2, end.y - right * (HEIGHT / 2 + 5)
    bend = -right * GAP_Y * 0.55
    x1, x2 = start.x + right * 24, end.x - right * 24
    return f"M{x1:.0f} {y1:.0f} C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 + bend:.0f} {x2:.0f} {y2:.0f}"


def _node(name: str, label: str | None, place: Place, route: Route | None) -> str:
    kind = "state" if label is None else "box"
    if route is not None and name in route.states:
        kind += " now" if name == route.now else " been"
    x, y = place.x - WIDTH / 2, place.y - HEIGHT / 2
    return (
        f'<g class="{kind}"><rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        f'<text x="{place.x:.0f}" y="{place.y + 4:.0f}" text-anchor="middle">{escape(label or name)}</text></g>'
    )


def _head(mark: str, kind: str) -> str:
    return (
        f'<marker id="{mark}-{kind}" class="{kind}" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="8" markerHeight="8" '
        'markerUnits="userSpaceOnUse" '
        'orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z"/></marker>'
    )
