"""Tasks that are only described, to find the work queue and share that they would get. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from brokerage_app.policy.attributes import TaskAttributes
from brokerage_app.policy.criteria import Clause, clauses
from brokerage_app.policy.criteria_parser import ParseError, parse
from brokerage_app.policy.division import distribute
from brokerage_app.policy.placement import Wish
from brokerage_app.policy.workqueues import Mapped, QueueRow, Tried, WorkQueues

TEXTS: Final = {
    "vo": "vo",
    "prodSourceLabel": "prod_source_label",
    "workingGroup": "working_group",
    "processingType": "processing_type",
    "site": "site",
    "splitRule": "split_rule",
    "campaign": "campaign",
    "transPath": "trans_path",
}
NUMBERS: Final = {"coreCount": "core_count", "eventService": "event_service"}
WISH: Final = "workQueueName"
KNOWN: Final = (*TEXTS, *NUMBERS, WISH)
LARGEST: Final = 2**31
WHOLE: Final = 100.0


class DescriptionError(ValueError):
    """A description that is not valid; the sentence names the attribute."""


def described(text: str) -> tuple[TaskAttributes, Wish]:
    """A task from JSON such as {"vo": "atlas", "coreCount": 8}; what is left out is null. Raises DescriptionError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise DescriptionError(f"This is not JSON: {exc}.") from exc
    if not isinstance(data, dict):
        raise DescriptionError(
            'Describe the task as a JSON object, for example {"vo": "atlas", "prodSourceLabel": "managed"}.'
        )
    given: dict[str, Any] = {}
    for name, value in data.items():
        if name not in KNOWN:
            raise DescriptionError(f"There is no attribute {name[:50]!r}; these can be used: {', '.join(KNOWN)}.")
        wanted = int if name in NUMBERS else str
        if value is not None and type(value) is not wanted:
            raise DescriptionError(
                f"{name} is {'a whole number' if wanted is int else 'a text'}, not {str(value)[:50]!r}."
            )
        if isinstance(value, int) and abs(value) >= LARGEST:
            raise DescriptionError(f"{name} is {value}, which no task has.")
        if name != WISH:
            given[TEXTS.get(name) or NUMBERS[name]] = value
    return TaskAttributes(**given), Wish(queue=data.get(WISH) or None)


@dataclass(frozen=True, slots=True)
class Asked:
    """Where a task belongs by one set of rules, and the queues that were asked for it, in order."""

    mapped: Mapped
    tried: Sequence[Tried]


def asked(task: TaskAttributes, wish: Wish, rows: Sequence[QueueRow]) -> Asked:
    return Asked(*WorkQueues(rows).explain(task, wish.queue))


def line_by_line(task: TaskAttributes, criteria: str | None, variables: str | None) -> tuple[Clause, ...]:
    """The criteria as that task meets them; none when they cannot be read."""
    try:
        return clauses(parse(criteria, variables), task.values())
    except ParseError:
        return ()


@dataclass(frozen=True, slots=True)
class Part:
    """A work queue's part of the CPUs of its VO and label in percent; None when it is outside the sharing.

    `full` is when all queues have work, `now` when only those have that have open tasks now; `before` by the stored rules.
    """

    queue: QueueRow
    tasks: int
    full_before: float | None
    full: float | None
    now_before: float | None
    now: float | None


def parts(stored: Sequence[QueueRow], edited: Sequence[QueueRow], tasks: dict[int, int]) -> tuple[Part, ...]:
    """What edited rules change in the division of CPUs. `tasks` are open ones by the id of their queue."""
    found = []
    for rows in (stored, edited):
        every = [row.id for row in rows]
        found += [distribute(WHOLE, rows, every), distribute(WHOLE, rows, [i for i in every if tasks.get(i)])]
    full_before, now_before, full, now = found
    return tuple(
        Part(
            row,
            tasks.get(row.id, 0),
            full_before.get(row.id),
            full.get(row.id),
            now_before.get(row.id),
            now.get(row.id),
        )
        for row in WorkQueues(edited).rows
    )
