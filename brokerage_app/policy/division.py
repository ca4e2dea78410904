"""How CPU is divided among work queues with partitions and stretchable queues (JEDI wiki, "Shares"), and in which order
they are served for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf
from typing import Final

from brokerage_app.policy.shares import filled, ratio_of
from brokerage_app.policy.workqueues import QueueRow

NEVER_WAITS: Final = -1.0
"""The place of queues outside the sharing: before all others."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One queue of a level. It gets at most its `wish`: what it leaves goes to others."""

    key: int
    share: int
    stretchable: bool
    wish: float


@dataclass(frozen=True, slots=True)
class _Level:
    """The active queues of one VO and label: those on top, and the sub queues of each partition."""

    top: tuple[QueueRow, ...]
    subs: Mapping[int, tuple[QueueRow, ...]]

    @classmethod
    def of(cls, queues: Iterable[QueueRow]) -> _Level:
        rows = sorted((row for row in queues if row.is_active), key=lambda row: row.id)
        top = tuple(row for row in rows if row.partition_id is None or row.is_partition)
        of = {row.id: [r for r in rows if r.partition_id == row.id and not r.is_partition] for row in top}
        return cls(top, {row.id: tuple(of[row.id]) for row in top if row.is_partition})

    @property
    def weight(self) -> int:
        return sum(max(row.share or 0, 0) for row in self.top)

    def leaves(self, row: QueueRow) -> tuple[QueueRow, ...]:
        """The queues that tasks belong to: the sub queues of a partition, a queue itself."""
        return self.subs[row.id] if row.is_partition else (row,)

    def sum_of(self, row: QueueRow, numbers: Mapping[int, float]) -> float:
        """The number of a queue; of a partition those of its sub queues."""
        return fsum(numbers.get(one.id, 0.0) for one in self.leaves(row))


def distribute(total: float, queues: Iterable[QueueRow], with_work: Collection[int]) -> dict[int, float]:
    """`divide` among queues that can use any amount, `with_work`, and others that can use none."""
    return divide(total, queues, dict.fromkeys(with_work, inf))


def divide(total: float, queues: Iterable[QueueRow], wishes: Mapping[int, float]) -> dict[int, float]:
    """CPU of each work queue by id, of partitions and of their sub queues; `wishes` are what queues can use, by id.

    Queues whose share is null, and all of a partition whose share is null, are outside and not in the result. So are
    sub queues of a partition that is not there. Negative shares count as 0. What a queue does not use goes to the stretchable
    ones that can use more, then to all that can, by their shares.
    """
    return _divided(total, _Level.of(queues), wishes)


def _divided(total: float, level: _Level, wishes: Mapping[int, float]) -> dict[int, float]:
    found = _parts(
        total,
        [
            _Part(row.id, max(row.share, 0), row.stretchable, level.sum_of(row, wishes))
            for row in level.top
            if row.share is not None
        ],
    )
    for partition, subs in level.subs.items():
        if partition in found:
            inner = [_Part(r.id, max(r.share or 0, 0), r.stretchable, wishes.get(r.id, 0.0)) for r in subs]
            found |= _parts(found[partition], inner)
    return found


def _parts(total: float, parts: Sequence[_Part]) -> dict[int, float]:
    shares = sum(part.share for part in parts)
    found = {part.key: min(total * part.share / shares if shares else 0.0, part.wish) for part in parts}
    # The last turn is for those whose share is 0. Rounding may leave a hair when nothing is unused.
    for receivers in ([part for part in parts if part.stretchable], parts, parts):
        unused = total - fsum(found.values())
        hungry = [part for part in receivers if part.wish > found[part.key]]
        if unused <= 0 or not hungry:
            continue
        weighs = any(part.share for part in hungry)
        more = filled(unused, [(p.key, p.share if weighs else 1, p.wish - found[p.key]) for p in hungry])
        found |= {key: found[key] + amount for key, amount in more.items()}
    return found


def serving_order(
    queues: Iterable[QueueRow], executing: Mapping[int, float], queued: Mapping[int, float]
) -> tuple[int, ...]:
    """Ids of queues in the order in which their jobs are sent; empty when no queue has a share.

    Queues outside the sharing are never held back by it, so they come first. The others follow by what they execute over
    their part, those furthest below it first, ties as queues are asked: none has a larger part than it executes and has
    queued. VOs and labels divide what executes by the sums of their shares; inside, `divide` says the parts.
    """
    wishes = _sums(executing, queued)
    places: dict[int, _Place] = {}
    for level, scale, parts in _levels(queues, executing, wishes):
        for one in (leaf for row in level.top for leaf in level.leaves(row)):
            places[one.id] = _place(one, executing.get(one.id, 0.0), parts, scale)
    return tuple(sorted(places, key=places.__getitem__))


def generating_order(
    queues: Iterable[QueueRow], executing: Mapping[int, float], queued: Mapping[int, float], waiting: Collection[int]
) -> tuple[int, ...]:
    """Ids of queues in the order in which their tasks get jobs: as `serving_order`, but a partition is one queue.

    `waiting` are those that have tasks which wait: they can use any amount. Inside a partition that sub queue comes first
    which is furthest below its part of all jobs, queued ones counted, since its sub queues are throttled together.
    """
    had = _sums(executing, queued)
    any_amount = dict.fromkeys(waiting, inf)
    places: dict[int, tuple[_Place, _Place]] = {}
    for level, scale, parts in _levels(queues, executing, {**executing, **any_amount}):
        inner = _divided(_sum(level, had), level, {**had, **any_amount})
        for row in level.top:
            place = _place(row, level.sum_of(row, executing), parts, scale)
            for leaf in level.leaves(row):
                places[leaf.id] = place, _place(leaf, had.get(leaf.id, 0.0), inner, 1.0)
    return tuple(sorted(places, key=places.__getitem__))


_Place = tuple[float, bool, int, int]
"""How much of its part a queue has, then its order, last when it has none."""


def _place(row: QueueRow, has: float, parts: Mapping[int, float], scale: float) -> _Place:
    ratio = ratio_of(has, parts[row.id]) * scale if row.id in parts else NEVER_WAITS
    return ratio, row.order is None, row.order or 0, row.id


def _levels(
    queues: Iterable[QueueRow], executing: Mapping[int, float], wishes: Mapping[int, float]
) -> list[tuple[_Level, float, dict[int, float]]]:
    """The queues of each VO and label, what these execute over what they should, and the parts of the queues; nothing when no
    queue has a share."""
    rows: dict[tuple[str, str], list[QueueRow]] = {}
    for row in queues:
        rows.setdefault((row.vo, row.type), []).append(row)
    levels = {key: _Level.of(some) for key, some in rows.items()}
    if not any(row.share is not None for level in levels.values() for row in level.top):
        return []
    has = {key: _sum(level, executing) for key, level in levels.items()}
    due = filled(fsum(has.values()), [(key, level.weight, _sum(level, wishes)) for key, level in levels.items()])
    # One that executes nothing yet is divided as what it should execute.
    return [
        (level, ratio_of(has[key], due[key]), _divided(has[key] or due[key], level, wishes))
        for key, level in levels.items()
    ]


def _sum(level: _Level, numbers: Mapping[int, float]) -> float:
    """Of the queues of a level that take part in the sharing."""
    return fsum(level.sum_of(row, numbers) for row in level.top if row.share is not None)


def _sums(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    return {key: one.get(key, 0.0) + other.get(key, 0.0) for key in {*one, *other}}
