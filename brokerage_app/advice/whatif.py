"""Repeats a decision with changed needs, queues or configuration, on a snapshot. Stores nothing. Pure.

A change is a line `where.name=value`:

    needs.memory_mb=1500                     what the task wants (fields of TaskNeeds)
    site.SITE_A.status=online                what a queue offers (fields of SiteView); its pseudo queues change with it
    endpoint.SE_A.space_free_gb=500          what a storage endpoint has (fields of Endpoint)
    config.jobbroker.NQUEUED_SAT_CAP=300     a parameter, for tasks of all VOs
    config.jobbroker.MIN_WEIGHT@atlas=0.1    the same for one VO

Values are JSON (`true`, `3`, `["A", "B"]`), anything else is a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from brokerage_app.formulas.unified import parts_of
from brokerage_app.policy.configuration import Configuration
from brokerage_app.policy.parameter import UnknownParameterError
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Endpoint, Grid
from brokerage_app.vocabulary.stored import as_json, from_json
from brokerage_app.vocabulary.verdict import Verdict

Decide = Callable[[TaskNeeds, Grid, Configuration], Verdict]
FORMS: Final = "needs.FIELD=value, site.NAME.FIELD=value, endpoint.NAME.FIELD=value or config.COMPONENT.KEY[@VO]=value"


class ChangeError(ValueError):
    """A change that cannot be made; `line` is the text that was given."""

    def __init__(self, line: str, why: str) -> None:
        super().__init__(f"{line!r}: {why}")
        self.line, self.why = line, why


@dataclass(frozen=True, slots=True)
class Change:
    """One line, read. `place` is needs, site, endpoint or config; `of` the queue, endpoint or component; `vo` of a parameter."""

    line: str
    place: str
    of: str
    name: str
    value: Any
    vo: str = ""


def parse(line: str) -> Change:
    """Read a line. Raises ChangeError."""
    left, equals, right = line.strip().partition("=")
    place, _, rest = left.strip().partition(".")
    if not equals or not rest or place not in ("needs", "site", "endpoint", "config"):
        raise ChangeError(line, f"a change is {FORMS}")
    value = _value(right.strip())
    if place == "needs":
        return Change(line, place, "", rest, value)
    # Names of queues may hold dots, names of fields and components do not.
    of, dot, name = rest.rpartition(".") if place in ("site", "endpoint") else rest.partition(".")
    if not dot or not of or not name:
        raise ChangeError(line, f"a change is {FORMS}")
    if place in ("site", "endpoint"):
        return Change(line, place, of, name, value)
    key, _, vo = name.partition("@")
    return Change(line, place, of, key, value, vo)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@dataclass(frozen=True, slots=True)
class Conditions:
    """The inputs of a decision."""

    needs: TaskNeeds
    grid: Grid
    configuration: Configuration

    def under(self, changes: Iterable[Change]) -> Conditions:
        """The same with changes, in their order. Raises ChangeError that names the line."""
        needs, sites, configuration = self.needs, dict(self.grid.sites), self.configuration
        endpoints, changed_grid = dict(self.grid.endpoints), False
        for change in changes:
            if change.place == "needs":
                needs = _with(TaskNeeds, needs, change)
            elif change.place == "site":
                if change.of not in sites:
                    raise ChangeError(change.line, f"there is no queue {change.of} in the snapshot")
                _change_queue(sites, self.grid, change)
                changed_grid = True
            elif change.place == "endpoint":
                if change.of not in endpoints:
                    raise ChangeError(change.line, f"there is no storage endpoint {change.of} in the snapshot")
                endpoints[change.of] = _with(Endpoint, endpoints[change.of], change)
                changed_grid = True
            else:
                configuration = _configured(configuration, change)
        # What was worked out for the old descriptions does not hold for new ones.
        grid = replace(self.grid, sites=sites, endpoints=endpoints) if changed_grid else self.grid
        return Conditions(needs, grid, configuration)


def _change_queue(sites: dict[str, SiteView], grid: Grid, change: Change) -> None:
    """Change a queue in place. One with pseudo queues gets them anew, as when it is read: their limits follow from its own."""
    queue = _with(SiteView, sites[change.of], change)
    if queue.is_parent:
        for name in [one.name for one in sites.values() if one.parent == queue.name]:
            del sites[name]
        parts = parts_of(replace(queue, is_parent=False), grid.types)
        sites.update({part.name: part for part in parts})
        queue = replace(queue, is_parent=bool(parts))
    sites[change.of] = queue


def _with(kind: type[Any], value: Any, change: Change) -> Any:
    names = kind.__dataclass_fields__
    if change.name not in names:
        raise ChangeError(change.line, f"there is no field {change.name}; there are: {', '.join(sorted(names))}")
    try:
        return from_json(kind, {**as_json(value), change.name: change.value})
    except Exception as exc:
        # The library raises groups of many kinds.
        inner = getattr(exc, "exceptions", (exc,))[0]
        raise ChangeError(change.line, f"{change.value!r} does not fit {names[change.name].type}: {inner}") from exc


def _configured(configuration: Configuration, change: Change) -> Configuration:
    try:
        return configuration.with_value(change.of, change.name, change.value, vo=change.vo)
    except (UnknownParameterError, ValueError) as exc:
        raise ChangeError(change.line, str(exc)) from exc


@dataclass(frozen=True, slots=True)
class Difference:
    """What is different between two verdicts on the same queues. Variants of one queue for jobs of a size are that queue.

    gained, lost   queues that only the second, or only the first, chose
    weights        (before, after) of those that both chose with another weight
    reasons        (before, after) of those that both skipped, by another code
    numbers        the same of those that both skipped by one code, for another number or another place; no difference by itself
    """

    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    weights: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reasons: Mapping[str, tuple[Skip, Skip]] = field(default_factory=dict)
    numbers: Mapping[str, tuple[Skip, Skip]] = field(default_factory=dict)
    blocked_before: str = ""
    blocked_after: str = ""

    def __bool__(self) -> bool:
        return bool(
            self.gained or self.lost or self.weights or self.reasons or self.blocked_before != self.blocked_after
        )

    @property
    def is_decisive(self) -> bool:
        """Whether other queues are chosen, or another code blocks."""
        return bool(self.gained or self.lost or self.blocked_before != self.blocked_after)


def difference(before: Verdict, after: Verdict) -> Difference:
    """Compare two verdicts."""
    old, new = ({name: c.weight for name, c in v.chosen_queues().items()} for v in (before, after))
    was, now = before.skipped_queues(), after.skipped_queues()
    both = {name: (was[name], now[name]) for name in sorted(was.keys() & now.keys())}
    return Difference(
        gained=tuple(sorted(new.keys() - old.keys())),
        lost=tuple(sorted(old.keys() - new.keys())),
        weights={name: (old[name], new[name]) for name in sorted(old.keys() & new.keys()) if old[name] != new[name]},
        reasons={name: (one, other) for name, (one, other) in both.items() if one.code != other.code},
        numbers={
            name: (one, other)
            for name, (one, other) in both.items()
            if one.code == other.code and one.detail != other.detail
        },
        blocked_before=before.code,
        blocked_after=after.code,
    )


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A decision and the same under changes."""

    before: Verdict
    after: Verdict

    @property
    def difference(self) -> Difference:
        return difference(self.before, self.after)


def what_if(conditions: Conditions, changes: Iterable[Change], decide: Decide) -> WhatIf:
    """Decide twice. Both decisions use the same snapshot, so they differ only by the changes.

    Raises ChangeError.
    """
    other = conditions.under(changes)
    before = decide(conditions.needs, conditions.grid, conditions.configuration)
    return WhatIf(before, decide(other.needs, other.grid, other.configuration))
