"""What divides the CPUs in a simulation: the real tree of shares, or the real division among work queues."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from brokerage_app.policy.division import generating_order, serving_order
from brokerage_app.policy.shares import Share, ShareTree
from brokerage_app.policy.workqueues import QueueRow

Powers = Mapping[str, float]


class Steering(Protocol):
    """`leaves` are the names of what jobs belong to."""

    leaves: Sequence[str]

    def generating(self, executing: Powers, queued: Powers, waiting: Collection[str]) -> dict[str, list[str]]:
        """The order in which the generator gives turns: names, each with the leaves whose tasks have the turn together, the
        first of them first."""

    def serving(self, executing: Powers, queued: Powers) -> Sequence[str]:
        """The order in which jobs of the leaves are sent."""

    def counted_as(self, leaf: str) -> tuple[str, str]:
        """The share and the work queue by which brokers count jobs of a leaf."""


class ByShares:
    def __init__(self, rows: Sequence[Share]) -> None:
        self._tree = ShareTree(rows)
        self.leaves: Sequence[str] = [leaf.name for leaf in self._tree.leaves]

    def generating(self, executing: Powers, queued: Powers, waiting: Collection[str]) -> dict[str, list[str]]:
        return {name: [name] for name in self._tree.sorted_leaves(executing)}

    def serving(self, executing: Powers, queued: Powers) -> Sequence[str]:
        return self._tree.serving_order(executing, queued)

    def counted_as(self, leaf: str) -> tuple[str, str]:
        return leaf, ""


class ByWorkQueues:
    def __init__(self, rows: Sequence[QueueRow]) -> None:
        self._rows = rows
        self._ids = {row.name: row.id for row in rows}
        self._names = {row.id: row.name for row in rows}
        self.leaves: Sequence[str] = [row.name for row in rows if not row.is_partition]
        self._units = {row.id: row.partition_id or row.id for row in rows}

    def generating(self, executing: Powers, queued: Powers, waiting: Collection[str]) -> dict[str, list[str]]:
        wait = [self._ids[name] for name in waiting]
        found: dict[str, list[str]] = {}
        for one in generating_order(self._rows, self._by_id(executing), self._by_id(queued), wait):
            found.setdefault(self._names[self._units[one]], []).append(self._names[one])
        return found

    def serving(self, executing: Powers, queued: Powers) -> Sequence[str]:
        order = serving_order(self._rows, self._by_id(executing), self._by_id(queued))
        return [self._names[one] for one in order]

    def counted_as(self, leaf: str) -> tuple[str, str]:
        return "", leaf

    def _by_id(self, powers: Powers) -> dict[int, float]:
        return {self._ids[name]: power for name, power in powers.items()}
