"""Ranges of a record that is tried again in a new jobset: what becomes of the old ones, and which are made anew."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from events_app.rules.event_states import HANDED_OUT, EventAct, EventStatus, Owner, Sweep
from events_app.rules.range_blocks import RangeBlock

DISCARDING: Final = (Sweep(EventAct.DISCARD, Owner.FILES), Sweep(EventAct.CANCEL, Owner.FILES))
"""What was processed is thrown away, what was not is cancelled. What was merged stays: its output counts."""
KEEPING: Final = (
    Sweep(EventAct.COMPLETE, Owner.FILES),
    Sweep(EventAct.CANCEL, Owner.FILES, spares_jumbo=True),
    Sweep(EventAct.DISCARD, Owner.FILES, among=frozenset({EventStatus.FATAL})),
)
"""With notDiscardEvents what was processed is done, and jumbo jobs keep what they have. What was given up has a chance again."""


def sweeps_before(*, keeps_events: bool) -> tuple[Sweep, ...]:
    """What happens to the ranges of the record before new ones are made, in this order. Failures are then handled."""
    return KEEPING if keeps_events else DISCARDING


def is_kept(status: EventStatus, *, jumbo: bool, keeps_events: bool) -> bool:
    """Whether a range need not be made anew: it is done, or a jumbo job is about to process it."""
    return keeps_events and (status is EventStatus.DONE or (jumbo and status in HANDED_OUT))


class Reinsertion(NamedTuple):
    """The blocks to insert. `all_done`: none, so the job has nothing to process and goes to its merge at once (allOkEvents)."""

    blocks: list[RangeBlock]
    all_done: bool


def to_insert(blocks: Sequence[RangeBlock], kept: Mapping[int, Collection[int]]) -> Reinsertion:
    """What is inserted of the ranges of a new jobset, when those in `kept` (first events, by file) are there already."""
    left = [part for block in blocks for part in block.without(kept.get(block.file_id, ()))]
    return Reinsertion(left, not left)


class Sorted(NamedTuple):
    """Of ranges that were processed: the first events, by file, of those that are kept, and blocks that are of no use."""

    kept: dict[int, list[int]]
    useless: frozenset[RangeBlock]


def sort_out(wanted: Iterable[RangeBlock], processed: Iterable[RangeBlock]) -> Sorted:
    """Which processed blocks are ranges of those that are wanted now; there is one wanted block of each file at most.

    Others are of no use: numbers of ranges change with nEventsPerWorker and, where they count over all files of a job, with
    the files that a job has.
    """
    by_file = {block.file_id: block for block in wanted}
    kept: dict[int, list[int]] = {}
    useless = set()
    for block in processed:
        now = by_file.get(block.file_id)
        if now is not None and _is_part(block, now):
            kept.setdefault(block.file_id, []).extend(one.first for one in block.ranges())
        else:
            useless.add(block)
    return Sorted(kept, frozenset(useless))


def _is_part(block: RangeBlock, of: RangeBlock) -> bool:
    """Whether each range of a block is one of the other's."""
    return (
        block.per_range == of.per_range
        and of.has(block.first)
        and block.last <= of.last
        and (block.last == of.last or block.events % block.per_range == 0)
    )
