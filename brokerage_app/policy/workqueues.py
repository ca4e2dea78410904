"""Work queues: to which one a task belongs, and why not to the others (JEDI wiki, "Work queues").

A partition is a queue of queues: its sub queues have the criteria, its place in the order is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from brokerage_app.policy.attributes import TaskAttributes
from brokerage_app.policy.criteria import Criteria, sentence
from brokerage_app.policy.criteria_parser import ParseError, parse

ACTIVE: Final = "active"
INACTIVE: Final = "inactive"
IS_PARTITION: Final = -1
RESOURCE: Final = "Resource"
"""The function of queues that keep their own statistics, outside the global shares."""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A row of the table. `share` None: not throttled; `order` None: comes last; `partition_id` -1: is a partition."""

    id: int
    name: str
    type: str
    vo: str
    share: int | None = None
    order: int | None = None
    criteria: str | None = None
    variables: str | None = None
    partition_id: int | None = None
    stretchable: bool = False
    status: str | None = None
    function: str | None = None

    @property
    def is_active(self) -> bool:
        return self.status != INACTIVE

    @property
    def is_partition(self) -> bool:
        return self.partition_id == IS_PARTITION

    @property
    def is_resource(self) -> bool:
        return self.function == RESOURCE


class Numbered(Protocol):
    """A row of the table, whoever has read it."""

    id: int
    partition_id: int | None
    function: str | None


def partitions_of(rows: Sequence[Numbered]) -> dict[int, int]:
    """The id of the partition of each queue that is counted with it: of all sub queues but those that keep their own counts."""
    there = {row.id for row in rows if row.partition_id == IS_PARTITION}
    return {
        row.id: row.partition_id
        for row in rows
        if row.partition_id is not None and row.partition_id in there and row.function != RESOURCE
    }


@dataclass(frozen=True, slots=True)
class Tried:
    """One queue or share that was asked about a task. `why` is a sentence, also when it matched."""

    name: str
    matched: bool
    why: str
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """Where a task belongs: `queue`, in `partition` if that is not None. Without a queue, `error` says why."""

    queue: QueueRow | None = None
    partition: QueueRow | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A queue that tasks can belong to. `fault` says why its criteria cannot be read."""

    queue: QueueRow
    partition: QueueRow | None
    criteria: Criteria | None
    fault: str = ""


class WorkQueues:
    """The table of work queues, parsed once. Rows that are inactive are as if they were not there."""

    def __init__(self, rows: Iterable[QueueRow]) -> None:
        self.rows: Sequence[QueueRow] = tuple(sorted((row for row in rows if row.is_active), key=_by_order))
        self._vos = {row.vo for row in self.rows}
        self._rules: dict[tuple[str, str], list[_Rule]] = {}
        for row in self.rows:
            # A sub queue stands where its partition stands; one whose partition is not there is dropped.
            if row.is_partition:
                subs = [_rule(sub, row) for sub in self.rows if sub.partition_id == row.id and not sub.is_partition]
                self._of(row).extend(sub for sub in subs if (sub.queue.vo, sub.queue.type) == (row.vo, row.type))
            elif row.partition_id is None:
                self._of(row).append(_rule(row, None))

    def __bool__(self) -> bool:
        return bool(self.rows)

    def _of(self, row: QueueRow) -> list[_Rule]:
        return self._rules.setdefault((row.vo, row.type), [])

    def choose(self, task: TaskAttributes, name: str | None = None) -> Mapped:
        """The queue of a task: the one of that name if its VO and label have it, else the first whose criteria it meets."""
        rules, error = self._candidates(task)
        named = next((rule for rule in rules if rule.queue.name == name), None) if name else None
        if named is not None:
            return Mapped(named.queue, named.partition)
        values = task.values()
        for rule in rules:
            if rule.criteria is not None and rule.criteria.matches(values):
                return Mapped(rule.queue, rule.partition)
        return Mapped(error=error or _no_match(task, rules))

    def explain(self, task: TaskAttributes, name: str | None = None) -> tuple[Mapped, tuple[Tried, ...]]:
        """The same as `choose`, with every queue that was tried, in order, the one that matched last."""
        mapped = self.choose(task, name)
        tried: list[Tried] = []
        if name:
            found = mapped.queue is not None and mapped.queue.name == name
            if found:
                return mapped, (_tried(mapped, "the task names it"),)
            tried.append(Tried(name, False, f"the task names it, and {_where(task)} has no such queue"))
        values = task.values()
        for rule in self._candidates(task)[0]:
            if rule.queue is mapped.queue:
                why = f"{rule.queue.criteria} is true" if rule.queue.criteria else "it accepts every task"
                tried.append(_tried(mapped, why))
                break
            unmet = rule.criteria.unmet(values) if rule.criteria else ()
            why = sentence(unmet, values) or rule.fault
            tried.append(Tried(rule.queue.name, False, why, rule.partition.name if rule.partition else None))
        return mapped, tuple(tried)

    def in_order(self, vo: str, label: str) -> tuple[QueueRow, ...]:
        """The queues that tasks of a VO and label can belong to, in the order in which they are asked."""
        return tuple(rule.queue for rule in self._rules.get((vo, label), ()))

    def resource(self, queue_id: int | None) -> QueueRow | None:
        """The queue of that id if it keeps its own statistics: its tasks are outside the global shares."""
        return next((row for row in self.rows if row.id == queue_id and row.is_resource), None)

    def resources(self, vo: str | None = None, label: str | None = None) -> tuple[QueueRow, ...]:
        """The queues of a VO that keep their own statistics, in order; of all VOs without one; of all labels so, or "any"."""
        every = label in (None, "", "any")
        return tuple(
            row for row in self.rows if row.is_resource and vo in (None, row.vo) and (every or row.type == label)
        )

    def _candidates(self, task: TaskAttributes) -> tuple[list[_Rule], str]:
        """The queues that a task may belong to, and what is wrong when its VO or label has none."""
        rules = self._rules.get((task.vo or "", task.prod_source_label or ""))
        if rules is not None:
            return rules, ""
        if task.vo not in self._vos:
            return [], f"queues for vo={task.vo} are undefined"
        return [], f"queues for type={task.prod_source_label} are undefined in vo={task.vo}"


def _by_order(row: QueueRow) -> tuple[bool, int]:
    return row.order is None, row.order or 0


def _rule(queue: QueueRow, partition: QueueRow | None) -> _Rule:
    try:
        return _Rule(queue, partition, parse(queue.criteria, queue.variables))
    except ParseError as exc:
        return _Rule(queue, partition, None, f"its criteria cannot be read: {exc}")


def _no_match(task: TaskAttributes, rules: Iterable[_Rule]) -> str:
    failed = [rule.queue.name for rule in rules if rule.fault]
    more = f"; criteria that cannot be read: {', '.join(failed)}" if failed else ""
    return f"no work queue accepts the task: {task.sentence()}{more}"


def _where(task: TaskAttributes) -> str:
    return f"type={task.prod_source_label} of vo={task.vo}"


def _tried(mapped: Mapped, why: str) -> Tried:
    queue, partition = mapped.queue, mapped.partition
    return Tried(queue.name if queue else "", True, why, partition.name if partition else None)
