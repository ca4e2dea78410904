"""Where processing of ranges does not get on: consumers without a result, ranges without attempts, outputs that nobody merges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tasks_app.attention.rules.findings import Found, Kind, address, few, hours, largest, sentence
from tasks_app.domain.words import plural

KIND: Final = "ranges"
ATTENTION: Final = Kind("Ranges of events without progress", 48, "bad", "shifter")
IDLE_AFTER: Final = timedelta(hours=6)
"""A running consumer that has reported no range for so long makes no progress."""
UNMERGED_AFTER: Final = timedelta(hours=2)
"""Outputs wait to be merged for so long although nobody else of the jobset is at work."""


@dataclass(frozen=True, slots=True)
class IdleFact:
    """Running consumers of a task that have reported no range for long; `since`: the last report, or the start, of the one
    that has been silent longest."""

    task_id: int
    name: str
    user: str
    consumers: int
    since: datetime


@dataclass(frozen=True, slots=True)
class HopelessFact:
    """Ranges of an open task that have no attempt left. `is_capped`: at least so many."""

    task_id: int
    name: str
    user: str
    ranges: int
    is_capped: bool = False


@dataclass(frozen=True, slots=True)
class UnmergedFact:
    """Jobs of a task that wait for a merge job, while no job of their jobset is at work; `since`: the first of them."""

    task_id: int
    name: str
    user: str
    jobs: int
    since: datetime


def idle_consumers(facts: Iterable[IdleFact], now: datetime) -> Iterator[Found]:
    found = []
    for one in facts:
        age = now - one.since
        if age < IDLE_AFTER:
            continue
        text = sentence(
            f"{_name(one)}: {plural(one.consumers, 'consumer has', 'consumers have')} processed no range "
            f"for up to {hours(age.total_seconds())}"
        )
        key, path = f"idle:{one.task_id}", _page(one.task_id)
        found.append(Found(KIND, key, text, path, one.user, one.consumers, "consumers", one.since))
    yield from few(largest(found), "tasks have consumers without progress", address("events"))


def hopeless_ranges(facts: Iterable[HopelessFact]) -> Iterator[Found]:
    found = []
    for one in facts:
        number = f"{'at least ' if one.is_capped else ''}{plural(one.ranges, 'range has', 'ranges have')}"
        text = sentence(f"{_name(one)}: {number} no attempt left", "its files cannot be processed completely")
        found.append(Found(KIND, f"hopeless:{one.task_id}", text, _page(one.task_id), one.user, one.ranges, "ranges"))
    yield from few(largest(found), "tasks have ranges without attempts", address("events"))


def unmerged_outputs(facts: Iterable[UnmergedFact], now: datetime) -> Iterator[Found]:
    found = []
    for one in facts:
        age = now - one.since
        if age < UNMERGED_AFTER:
            continue
        text = sentence(
            f"{_name(one)}: outputs of {plural(one.jobs, 'consumer')} have waited to be merged for up to "
            f"{hours(age.total_seconds())}",
            "no job of their jobsets is at work",
        )
        found.append(
            Found(KIND, f"unmerged:{one.task_id}", text, _page(one.task_id), one.user, one.jobs, "consumers", one.since)
        )
    yield from few(largest(found), "tasks have outputs that nobody merges", address("events"))


def _name(fact: IdleFact | HopelessFact | UnmergedFact) -> str:
    return f"Task {fact.task_id} {fact.name[:80]}".strip()


def _page(task_id: int) -> str:
    return address("tasks", task_id, "events")
