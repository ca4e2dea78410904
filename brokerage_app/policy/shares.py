"""How CPU is divided by the tree of global shares (documents on global shares). Power is in HS: cores × HS a core."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Final, TypeVar

from brokerage_app.policy.attributes import TaskAttributes
from brokerage_app.policy.workqueues import Tried
from jedisite.vocabulary.patterns import Pattern, PatternError, compiled

NO_TARGET: Final = 1e6
"""How much used a share without a target is."""
NO_RATIO: Final = 999_999.0
"""A metric whose divisor is 0."""
FIRST_SHARE: Final = "Test"
"""Jobs of this share are sent before all others."""
_PLACES: Final = {
    what: place
    for place, what in enumerate(
        ("prodSourceLabel", "workingGroup", "campaign", "processingType", "transPath", "rtype")
    )
}
"""What the patterns of a share are asked of."""
IDLE_BELOW: Final = 0.85
"""A branch that uses less of its target than this, and has too little queued to use more, is idle."""


Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Share:
    """A row of global_shares. `value` weighs it among its siblings; the patterns are regular expressions or None."""

    name: str
    value: int
    parent: str | None = None
    prod_source_label: str | None = None
    working_group: str | None = None
    campaign: str | None = None
    processing_type: str | None = None
    trans_path: str | None = None
    rtype: str | None = None
    vo: str | None = None
    queue_id: int | None = None
    throttled: bool = True


@dataclass(frozen=True, slots=True)
class Usage:
    """What a share has, in HS: its target is its part of all that executes."""

    executing: float
    queued: float
    target: float

    @property
    def ratio(self) -> float:
        """Under-use when below 1."""
        return self.executing / self.target if self.target else NO_TARGET


@dataclass(frozen=True, slots=True)
class BranchUsage:
    """A share of the first level. `equivalent` is the usage when what idle branches leave is part of the targets."""

    usage: Usage
    idle: bool
    equivalent: float


_Patterns = tuple[tuple[str, Pattern | None, str], ...]
"""(what, the pattern or None when it cannot be read, its text), in the order in which they are looked at."""


class ShareTree:
    """The tree of shares. Rows whose parent is not there, or that are their own ancestors, are left out."""

    def __init__(self, rows: Iterable[Share]) -> None:
        self._children: dict[str | None, list[Share]] = {}
        for row in rows:
            self._children.setdefault(row.parent or None, []).append(row)
        self.shares: Mapping[str, Share] = {share.name: share for share in self._below(None)}
        self.leaves: tuple[Share, ...] = tuple(s for s in self.shares.values() if s.name not in self._children)
        self._patterns = {leaf.name: _patterns(leaf) for leaf in self.leaves}
        self._tests: list[tuple[Share, str | None, list[tuple[int, Callable[[str], bool] | None]]]] = [
            (leaf, leaf.vo, [(_PLACES[what], one.match if one else None) for what, one, _ in self._patterns[leaf.name]])
            for leaf in self.leaves
        ]

    def __bool__(self) -> bool:
        return bool(self.leaves)

    def _below(self, parent: str | None) -> Iterator[Share]:
        """Depth first, siblings as they were given. A circle has no way down from the top."""
        for share in self._children.get(parent, ()):
            yield share
            yield from self._below(share.name)

    def is_leaf(self, name: str | None) -> bool:
        return name in self._patterns

    def leaf(self, name: str | None) -> Share | None:
        return self.shares.get(name) if name is not None and name in self._patterns else None

    def choose(self, task: TaskAttributes, name: str | None = None) -> Share | None:
        """The leaf of that name, else the first leaf that the task matches."""
        named = self.leaf(name)
        if named is not None:
            return named
        values = _values(task)
        for leaf, vo, tests in self._tests:
            if vo is not None and vo != task.vo:
                continue
            for place, match in tests:
                value = values[place]
                if value is not None and (match is None or not match(value)):
                    break
            else:
                return leaf
        return None

    def explain(self, task: TaskAttributes, name: str | None = None) -> tuple[Share | None, tuple[Tried, ...]]:
        """The same as `choose`, with every leaf that was tried, in order, the one that matched last."""
        chosen = self.choose(task, name)
        if chosen is not None and chosen.name == name:
            return chosen, (Tried(chosen.name, True, "the task names it"),)
        tried: list[Tried] = []
        if name:
            tried.append(Tried(name, False, "the task names it, and it is not a share without children"))
        for leaf in self.leaves:
            if leaf is chosen:
                asked = ", ".join(f"{what} {text!r}" for what, _, text in self._patterns[leaf.name])
                tried.append(Tried(leaf.name, True, f"{asked} fits" if asked else "it accepts every task"))
                break
            tried.append(Tried(leaf.name, False, _objection(leaf, self._patterns[leaf.name], task)))
        return chosen, tuple(tried)

    @cached_property
    def percents(self) -> Mapping[str, float]:
        """Part of each share of the whole, in percent; siblings divide that of their parent by their values."""
        found: dict[str, float] = {}
        for share in self.shares.values():
            of_parent = found[share.parent] if share.parent else 100.0
            total = sum(max(sibling.value, 0) for sibling in self._children[share.parent or None])
            found[share.name] = of_parent * max(share.value, 0) / total if total else 0.0
        return found

    def usage(self, executing: Mapping[str, float], queued: Mapping[str, float] | None = None) -> dict[str, Usage]:
        """Usage of every share of the tree from HS of its leaves: executing (jobs sent or running) and queued (activated).

        The target of a leaf is its part of what all leaves execute. Inner shares have the sums of their leaves.
        """
        waiting = queued or {}
        total = fsum(executing.get(leaf.name, 0.0) for leaf in self.leaves)
        found: dict[str, Usage] = {}
        # Children come after their parents: backwards, a share's children are there before it.
        for share in reversed(list(self.shares.values())):
            children = [found[child.name] for child in self._children.get(share.name, ())]
            if children:
                found[share.name] = Usage(
                    fsum(child.executing for child in children),
                    fsum(child.queued for child in children),
                    fsum(child.target for child in children),
                )
            else:
                target = total * self.percents[share.name] / 100
                found[share.name] = Usage(executing.get(share.name, 0.0), waiting.get(share.name, 0.0), target)
        return {name: found[name] for name in self.shares}

    def sorted_leaves(self, executing: Mapping[str, float]) -> tuple[str, ...]:
        """Leaves, the most under-used first, branch by branch: siblings by usage over target, ties as they were given."""
        usage = self.usage(executing)
        return tuple(self._sorted_below(None, usage))

    def _sorted_below(self, parent: str | None, usage: Mapping[str, Usage]) -> Iterator[str]:
        for share in sorted(self._children.get(parent, ()), key=lambda s: usage[s.name].ratio):
            if share.name in self._children:
                yield from self._sorted_below(share.name, usage)
            else:
                yield share.name

    def serving_order(self, executing: Mapping[str, float], queued: Mapping[str, float]) -> tuple[str, ...]:
        """The order in which jobs of the shares are sent: `Test` first, then by `fair_order`; those of others come after."""
        return FIRST_SHARE, *(name for name in self.fair_order(executing, queued) if name != FIRST_SHARE)

    def fair_targets(self, executing: Mapping[str, float], queued: Mapping[str, float]) -> dict[str, float]:
        """HS that each leaf should have of all that executes, when none gets more than it has and could start.

        Children divide by their values what their parent has; what one cannot use goes to its siblings first, then to
        those of its parent. With work for all of them this is the target of `usage`.
        """
        total = fsum(executing.get(leaf.name, 0.0) for leaf in self.leaves)
        wish: dict[str, float] = {}
        for share in reversed(list(self.shares.values())):
            below = self._children.get(share.name)
            own = executing.get(share.name, 0.0) + queued.get(share.name, 0.0)
            wish[share.name] = fsum(wish[child.name] for child in below) if below else own
        found: dict[str | None, float] = {None: total}
        for parent in (None, *self.shares):
            children = self._children.get(parent)
            if children:
                found.update(filled(found[parent], [(c.name, max(c.value, 0), wish[c.name]) for c in children]))
        return {leaf.name: found[leaf.name] for leaf in self.leaves}

    def fair_order(self, executing: Mapping[str, float], queued: Mapping[str, float]) -> tuple[str, ...]:
        """Leaves by what they execute over their fair target, those furthest below first; ties as they were given.

        Unlike the order of the documents a leaf that has more than its part never goes before one of another branch that
        has less: at a site where the jobs of a sibling do not wait, it would take the sibling's part.
        """
        targets = self.fair_targets(executing, queued)
        ratios = {name: ratio_of(executing.get(name, 0.0), target) for name, target in targets.items()}
        return tuple(sorted(targets, key=lambda name: ratios[name]))

    def aligned(self, vo: str | None, label: str | None, executing: Mapping[str, float]) -> tuple[Share, ...]:
        """Leaves of a VO (shares without one are everybody's) and label, or of all, in the order of their under-use."""
        every = label in (None, "", "any")
        leaves = (self.shares[name] for name in self.sorted_leaves(executing))
        return tuple(
            leaf
            for leaf in leaves
            if (vo is None or leaf.vo in (None, vo)) and (every or _fits(_compiled(leaf.prod_source_label), label))
        )

    def branches(self, usage: Mapping[str, Usage]) -> dict[str, BranchUsage]:
        """Shares of the first level, by name: what idle ones leave raises the targets of the busy ones."""
        top = {share.name: usage[share.name] for share in self._children.get(None, ()) if share.name in usage}
        projected = {name: min(u.target, max(u.executing, u.queued / 2)) for name, u in top.items()}
        idle = {name for name, u in top.items() if u.ratio < IDLE_BELOW and projected[name] < u.target}
        left = fsum(top[name].target - projected[name] for name in sorted(idle))
        busy_total = fsum(u.target for name, u in top.items() if name not in idle) + 1
        found = {}
        for name, u in top.items():
            raised = Usage(u.executing, u.queued, u.target + left * u.target / busy_total)
            found[name] = BranchUsage(u, name in idle, (u if name in idle else raised).ratio)
        return found


def ratio_of(has: float, target: float) -> float:
    return has / target if target > 0 else NO_TARGET


def filled(amount: float, parts: Sequence[tuple[Key, float, float]]) -> dict[Key, float]:
    """Divide an amount by weight among (name, weight, most), nobody above their most, until nobody wants more."""
    given = dict.fromkeys((name for name, _, _ in parts), 0.0)
    hungry = [part for part in parts if part[1] > 0 and part[2] > 0]
    while hungry and amount > 0:
        weights = sum(weight for _, weight, _ in hungry)
        full = [part for part in hungry if part[2] <= amount * part[1] / weights]
        if not full:
            given |= {name: amount * weight / weights for name, weight, _ in hungry}
            break
        for name, _, most in full:
            given[name] = most
        amount -= fsum(most for _, _, most in full)
        hungry = [part for part in hungry if part not in full]
    return given


def metrics(usage: Mapping[str, Usage], leaves: Iterable[str]) -> dict[str, dict[str, float]]:
    """Figures of the leaves: usage and queue over the leaf's target; norm_usage and norm_queue over all targets."""
    chosen = {name: usage[name] for name in leaves}
    targets = fsum(one.target for one in chosen.values())
    return {
        name: {
            "usage": _over(one.executing, one.target),
            "queue": _over(one.queued, one.target),
            "norm_usage": _over(one.executing, targets),
            "norm_queue": _over(one.queued, targets),
        }
        for name, one in chosen.items()
    }


def faults(rows: Sequence[Share]) -> dict[str, str]:
    """Faults of the tree, by the name of the share: a missing parent, or a circle."""
    parents = {row.name: row.parent for row in rows}
    found: dict[str, str] = {}
    for name, parent in parents.items():
        seen, above = {name}, parent
        while above:
            if above not in parents:
                if above == parent:
                    found[name] = f"There is no share {above!r}."
                break
            if above in seen:
                if above == name:
                    found[name] = f"A share cannot be below itself: {parent!r} is below {name!r}."
                break
            seen.add(above)
            above = parents[above]
    return found


def _over(value: float, divisor: float) -> float:
    return value / divisor if divisor else NO_RATIO


def _compiled(pattern: str | None) -> Pattern | None:
    try:
        return compiled(pattern or "")
    except PatternError:
        return None


def _patterns(share: Share) -> _Patterns:
    given = (
        share.prod_source_label,
        share.working_group,
        share.campaign,
        share.processing_type,
        share.trans_path,
        share.rtype,
    )
    return tuple((what, _compiled(text), text) for what, text in zip(_PLACES, given, strict=True) if text is not None)


def _objection(share: Share, patterns: _Patterns, task: TaskAttributes) -> str:
    """Why a task does not belong to a leaf; empty when it does.

    A pattern has to fit the beginning of the value. What the task does not say fits, but for a working group, which then
    is one blank, and for the resource type of a site that the task is bound to.
    """
    if share.vo is not None and share.vo != task.vo:
        return f"it is for vo={share.vo}: the task is of vo={task.vo}"
    values = _values(task)
    for what, pattern, text in patterns:
        value = values[_PLACES[what]]
        if value is None:
            continue
        if pattern is None:
            return f"its pattern {text!r} for {what} cannot be read"
        if not pattern.match(value):
            return f"{what} {text!r} does not match {value!r}"
    return ""


def _values(task: TaskAttributes) -> tuple[str | None, ...]:
    """What patterns are asked of, by _PLACES; None where a pattern is passed over."""
    return (
        task.prod_source_label or None,
        task.working_group or " ",
        task.campaign or None,
        task.processing_type or None,
        task.trans_path or None,
        (task.site_resource_type or "") if task.site else None,
    )


def compared(task: TaskAttributes) -> str:
    """The attributes of a task that shares compare, in words."""
    named = {"vo": task.vo, **dict(zip(_PLACES, _values(task), strict=True))}
    named = {("resource type of its site" if what == "rtype" else what): value for what, value in named.items()}
    return ", ".join(f"{what}={value.strip() or 'none' if value else 'none'}" for what, value in named.items())


def _fits(pattern: Pattern | None, value: str | None) -> bool:
    return pattern is not None and pattern.match(value or "")
