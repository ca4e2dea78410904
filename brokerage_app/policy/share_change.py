"""What a share has against its target in words, and what other values of shares would change. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from brokerage_app.policy.shares import Share, ShareTree, Usage

BAND: Final = 0.15
"""A share is on its target when what it has differs by no more than this part of it."""
ON_TARGET, OVER, STARVED, LITTLE_WORK, NO_TARGET, IDLE, NOTHING_RUNS = (
    "on target",
    "over target",
    "starved",
    "little work",
    "no target",
    "idle",
    "nothing runs",
)


def judged(usage: Usage, *, waiting: bool, percent: float) -> str:
    """One word of a share. It is starved when it has less than its target and work waits; `waiting`: also as tasks.

    percent   its target as a part of the whole. Where no share runs anything, that is a part of nothing.
    """
    if not usage.executing and not usage.queued and not waiting:
        return IDLE
    if not usage.target:
        return NOTHING_RUNS if percent > 0 and not usage.executing else NO_TARGET
    if usage.ratio > 1 + BAND:
        return OVER
    if usage.ratio >= 1 - BAND:
        return ON_TARGET
    return STARVED if usage.queued or waiting else LITTLE_WORK


@dataclass(frozen=True, slots=True)
class ShareEffect:
    """A share before and after a change of values: percent of the whole, and HS that it would execute in an hour.

    Both expectations start from what executes now; slots that come free go to whom the shares and the queued work say.
    """

    name: str
    level: int
    leaf: bool
    value: int
    new_value: int
    percent: float
    new_percent: float
    executing: float
    expected: float
    new_expected: float

    @property
    def changed(self) -> bool:
        return self.value != self.new_value

    @property
    def difference(self) -> float:
        return self.new_expected - self.expected


def effects(
    rows: Sequence[Share],
    values: Mapping[str, int],
    executing: Mapping[str, float],
    queued: Mapping[str, float],
    *,
    turned_over: float,
) -> tuple[ShareEffect, ...]:
    """What new values of some shares do to all of the tree, parents before their children.

    `turned_over`: the part of all slots that come free within an hour, 0 to 1. Values of shares that are not there do
    not count.
    """
    old, new = ShareTree(rows), ShareTree([replace(row, value=values.get(row.name, row.value)) for row in rows])
    expected = _in_an_hour(old, executing, queued, turned_over)
    new_expected = _in_an_hour(new, executing, queued, turned_over)
    now = _summed(old, executing)
    levels = levels_of(old)
    return tuple(
        ShareEffect(
            name,
            levels[name],
            old.is_leaf(name),
            share.value,
            new.shares[name].value,
            old.percents[name],
            new.percents[name],
            now[name],
            expected[name],
            new_expected[name],
        )
        for name, share in old.shares.items()
    )


def levels_of(tree: ShareTree) -> dict[str, int]:
    """How deep each share of a tree stands; those at the top are of level 1."""
    found: dict[str, int] = {}
    for name, share in tree.shares.items():
        found[name] = found[share.parent] + 1 if share.parent else 1
    return found


def _in_an_hour(
    tree: ShareTree, executing: Mapping[str, float], queued: Mapping[str, float], turned_over: float
) -> dict[str, float]:
    part = min(max(turned_over, 0.0), 1.0)
    fair = tree.fair_targets(executing, queued)
    leaves = {name: (has := executing.get(name, 0.0)) + part * (target - has) for name, target in fair.items()}
    return _summed(tree, leaves)


def _summed(tree: ShareTree, leaves: Mapping[str, float]) -> dict[str, float]:
    """Numbers of leaves added up for the shares above them."""
    found = dict.fromkeys(tree.shares, 0.0)
    for name, share in reversed(list(tree.shares.items())):
        if tree.is_leaf(name):
            found[name] = leaves.get(name, 0.0)
        if share.parent:
            found[share.parent] += found[name]
    return found
