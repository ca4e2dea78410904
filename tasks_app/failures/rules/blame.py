"""Whose fault an error is, from where its jobs failed and where others did not. Pure.

One thing is to blame when it has nearly all failures, and jobs elsewhere seldom fail so: a broken node is found although
the error looks like one of the payload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.failures.rules.spreads import MOST_OF, NAMES, Spread

LEAST_FAILURES: Final = 5
"""Fewer failures say nothing."""
LEAST_ELSEWHERE: Final = 10
"""Jobs that ended elsewhere, without which nobody knows how they fare there."""
TIMES_ELSEWHERE: Final = 3.0
"""So many times the part of jobs must fail with this error, against elsewhere."""

_SEARCHED: Final = ("node", "site", "version", "task", "user")
"""The narrowest first: a node is part of a site, a task is of one user."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Jobs that failed with the error at one value of a dimension and elsewhere, and jobs that ended there and elsewhere."""

    name: str
    top: str
    failures: int
    ended: int
    failures_elsewhere: int
    ended_elsewhere: int

    @property
    def is_convincing(self) -> bool:
        """Whether it has most failures, and much more of its jobs fail than of enough others."""
        of_all = self.failures / max(self.failures + self.failures_elsewhere, 1)
        if of_all < MOST_OF or self.ended_elsewhere < LEAST_ELSEWHERE:
            return False
        here = self.failures / max(self.ended, self.failures, 1)
        return here >= TIMES_ELSEWHERE * self.failures_elsewhere / self.ended_elsewhere

    @property
    def sentence(self) -> str:
        here = f"{self.failures} of {plural(max(self.ended, self.failures), 'job')} {_AT[self.name].format(self.top)}"
        return f"{here} failed with this error, {self.failures_elsewhere} of {self.ended_elsewhere} elsewhere."


_AT: Final[Mapping[str, str]] = {
    "node": "on worker node {}",
    "site": "at {}",
    "version": "of pilot {}",
    "task": "of task {}",
    "user": "of {}",
}


@dataclass(frozen=True, slots=True)
class Blame:
    """The cause that the evidence names ("" when it names none), the value of it, and the evidence in sentences."""

    cause: str
    top: str
    sentence: str
    evidence: list[str]


def evidence(spread: Spread, ended: Mapping[tuple[str, str], int], ended_in_all: int) -> list[Evidence]:
    """What is known of the value of each dimension that has most failures.

    ended          jobs that ended in the same time, by dimension and value
    ended_in_all   jobs that ended in the same time anywhere
    """
    found = []
    for name in _SEARCHED:
        over = spread.over.get(name)
        if over is None or not over.top:
            continue
        there = max(ended.get((name, over.top), 0), over.top_failures)
        elsewhere = spread.failures - over.top_failures
        rest = max(ended_in_all - there, elsewhere)
        found.append(Evidence(name, over.top, over.top_failures, there, elsewhere, rest))
    return found


def blame(failures: int, known: list[Evidence]) -> Blame:
    """The narrowest thing of which the evidence convinces; of a site and a task at once, neither."""
    if failures < LEAST_FAILURES:
        return Blame("", "", f"{plural(failures, 'failure')}: too few to name a cause.", [])
    guilty = [one for one in known if one.is_convincing]
    if not guilty:
        return Blame("", "", "No single node, site, pilot version, task or user stands out.", [])
    first = guilty[0]
    task = next((one for one in guilty if one.name == "task"), None)
    if first.name in ("site", "version") and task is not None:
        both = f"It is either {_named(first)} or {_named(task)}: nearly all failures have both."
        return Blame("", "", both, [first.sentence, task.sentence])
    return Blame(first.name, first.top, f"Most likely {_named(first)}.", [one.sentence for one in guilty])


def _named(one: Evidence) -> str:
    return f"{NAMES[one.name][0]} {one.top}"
