"""How many sites were left after each reason of a broker, in the order in which it asks. Pure.

A stored verdict has one reason a site. A site that a rule refused for the time being, and no later rule for good, stands
at its reason's place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from brokerage_app.brokers import analysis_rules, generic, production_rules
from brokerage_app.filters import nucleus
from brokerage_app.vocabulary import codes

PRODUCTION: Final = "production"
ANALYSIS: Final = "analysis"
GENERIC: Final = "generic"
NUCLEI: Final = "task"
"""The kind of decisions that choose a nucleus."""


NO_CANDIDATES: Final = frozenset(
    {
        codes.OTHER_KIND,
        codes.TEST_QUEUE,
        codes.OTHER_CLOUD,
        codes.NOT_PREASSIGNED,
        codes.EXCLUDED,
        codes.NOT_INCLUDED,
    }
)
"""Reasons why a queue is no candidate at all: where a broker asks no rule for them they come before its first."""
_ORDERS: Final = {PRODUCTION: production_rules.ORDER, ANALYSIS: analysis_rules.ORDER}


@cache
def order_of(broker: str, kind: str = "job") -> Mapping[str, int]:
    """The place of each code among the reasons of a broker; `NO_CANDIDATES` have none, or an earlier one."""
    found = nucleus.ORDER if kind == NUCLEI else _ORDERS.get(broker, generic.ORDER)
    return {code: place for place, code in enumerate(found, 1)}


@dataclass(frozen=True, slots=True)
class Step:
    """Sites before and after one reason. `gate` is its place among those that took sites away, from 1."""

    gate: int
    code: str
    before: int
    after: int

    @property
    def gone(self) -> int:
        return self.before - self.after


def funnel(broker: str, kind: str, chosen: int, reasons: Mapping[str, Collection[str]]) -> list[Step]:
    """What each reason took away, in the order of the broker.

    reasons   the sites that each code skipped, as verdicts are stored
    """
    order = order_of(broker, kind)
    left = chosen + sum(map(len, reasons.values()))
    steps = []
    for number, code in enumerate(sorted(reasons, key=lambda code: (order.get(code, 0), code)), 1):
        steps.append(Step(number, code, left, left - len(reasons[code])))
        left = steps[-1].after
    return steps
