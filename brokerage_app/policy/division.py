"""How CPU is divided among work queues with partitions and stretchable queues (JEDI wiki, "Shares")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from brokerage_app.policy.workqueues import QueueRow


@dataclass(frozen=True, slots=True)
class _Part:
    """One queue of a level: those without work get nothing, and leave what they have to the others."""

    key: int
    share: int
    stretchable: bool
    with_work: bool


def distribute(total: float, queues: Iterable[QueueRow], with_work: Collection[int]) -> dict[int, float]:
    """CPU of each work queue by id, of partitions and of their sub queues; `with_work` are ids of queues with tasks.

    Queues whose share is null, and all of a partition whose share is null, are outside and not in the result. So are
    sub queues of a partition that is not there. Negative shares count as 0. What queues without work would have goes to
    the stretchable ones with work, or to all with work when none is stretchable, by their shares.
    """
    rows = sorted((row for row in queues if row.is_active), key=lambda row: row.id)
    top = [row for row in rows if row.partition_id is None or row.is_partition]
    subs: dict[int, list[QueueRow]] = {row.id: [] for row in top if row.is_partition}
    for row in rows:
        if row.partition_id in subs and not row.is_partition:
            subs[row.partition_id].append(row)
    parts = []
    for row in top:
        if row.share is not None:
            works = any(sub.id in with_work for sub in subs[row.id]) if row.is_partition else row.id in with_work
            parts.append(_Part(row.id, max(row.share, 0), row.stretchable, works))
    found = _level(total, parts)
    for partition, inner in subs.items():
        if partition in found:
            level = [_Part(r.id, max(r.share or 0, 0), r.stretchable, r.id in with_work) for r in inner]
            found |= _level(found[partition], level)
    return found


def _level(total: float, parts: Sequence[_Part]) -> dict[int, float]:
    shares = sum(part.share for part in parts)
    nominal = {part.key: total * part.share / shares if shares else 0.0 for part in parts}
    working = [part for part in parts if part.with_work]
    unused = total - fsum(nominal[part.key] for part in working)
    receivers = {p.key: p.share for p in working if p.stretchable} or {p.key: p.share for p in working}
    wanted = sum(receivers.values())
    found = dict.fromkeys(nominal, 0.0)
    for part in working:
        more = 0.0
        if part.key in receivers:
            more = unused * part.share / wanted if wanted else unused / len(receivers)
        # Without this, rounding may take a hair from a queue when nothing is unused.
        found[part.key] = nominal[part.key] + max(more, 0.0)
    return found
