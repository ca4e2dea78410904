"""A block of which some ranges are reported falls into pieces: neighbours with the same report stay together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from events_app.rules.range_blocks import RangeBlock

Said = TypeVar("Said")


class Piece(NamedTuple, Generic[Said]):
    """Ranges of a block, by their first and last event, and what is reported of all of them; None: nothing."""

    first: int
    last: int
    said: Said | None


def pieces(block: RangeBlock, said: Mapping[int, Said]) -> list[Piece[Said]]:
    """The block as pieces in order, as few as can be. `said` has reports by the first event of a range.

    Numbers with which no range of the block begins are passed over; without any report there is one piece that says nothing.
    """
    found = list(_pieces(block, said))
    return found or [Piece(block.first, block.last, None)]


def _pieces(block: RangeBlock, said: Mapping[int, Said]) -> Iterator[Piece[Said]]:
    """Empty when nothing is said of the block."""
    begin, current = block.first, None
    behind = block.first
    """The first range of which is not yet known what is said."""
    known = sorted(one for one in said if block.has(one))
    if not known:
        return
    for first in known:
        report = said[first]
        if first > behind and current is not None:
            yield Piece(begin, behind - 1, current)
            begin, current = behind, None
        if report != current:
            if first > begin:
                yield Piece(begin, first - 1, current)
            begin, current = first, report
        behind = first + block.per_range
    if behind <= block.last:
        yield Piece(begin, behind - 1, current)
        yield Piece(behind, block.last, None)
    else:
        yield Piece(begin, block.last, current)
