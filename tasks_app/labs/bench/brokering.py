"""bench broker: verdicts of the production broker over synthetic grids. No database, for the decision asks none.

Each round decides for other tasks, over 200 queues and over ten times as many, in turn. Every task is decided once on its
grid before: what a grid works out once for all tasks of a pass is measured apart, as the first verdict on a fresh snapshot.
Explaining is what it takes to put every sentence of a verdict together: details of all sites, counts, the summary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Any

from brokerage_app.brokers import generic, production_job
from brokerage_app.labs.made_up_grid import synthetic_grid, synthetic_needs
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.stored import pack as packed
from brokerage_app.vocabulary.stored import unpack
from brokerage_app.vocabulary.verdict import Verdict
from tasks_app.labs.bench.measuring import Target

MOST_MS = 5.0
AIM_MS = 2.5
MOST_GROWTH = 12.0
MOST_EXPLAINING = 0.20
SEED = 20_26


@dataclass(frozen=True, slots=True)
class Decision:
    """One task on one grid: seconds of processor time to decide, to explain, and what came of it."""

    decide_s: float
    explain_s: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class BrokerResult:
    small: Sequence[Decision]
    large: Sequence[Decision]
    generic: Sequence[float]
    first_s: float
    first_large_s: float
    queues: int
    large_queues: int
    asked: int

    @property
    def median_ms(self) -> float:
        return 1000 * median(d.decide_s for d in self.small)

    @property
    def large_ms(self) -> float:
        return 1000 * median(d.decide_s for d in self.large)

    @property
    def ratio(self) -> float:
        """Time over the large grid by that over the small: pairs of the same task, one after the other."""
        return median(b.decide_s / a.decide_s for a, b in zip(self.small, self.large, strict=True))

    @property
    def explaining(self) -> float:
        return median(d.explain_s / d.decide_s for d in self.small)

    @property
    def targets(self) -> list[Target]:
        return [
            Target(f"ms for a verdict over {self.queues} queues", self.median_ms, MOST_MS, AIM_MS, at_most=True),
            Target(
                f"time over {self.large_queues} queues / {self.queues}", self.ratio, MOST_GROWTH, 10.0, at_most=True
            ),
            Target("explaining / deciding", self.explaining, MOST_EXPLAINING, 0.1, at_most=True),
        ]

    def lines(self) -> list[str]:
        chosen = sum(bool(d.verdict.chosen) for d in self.small)
        skipped = median(len(d.verdict.skipped) for d in self.small)
        return [
            f"{self.queues} queues: median {self.median_ms:.2f} ms, {1000 / self.median_ms:.0f} verdicts a second; "
            f"{chosen} of {len(self.small)} tasks got queues, {skipped:.0f} skipped in the median",
            f"{self.large_queues} queues: median {self.large_ms:.2f} ms",
            f"explaining all of it: {100 * self.explaining:.1f} % of deciding",
            f"first verdict on a fresh snapshot: {1000 * self.first_s:.1f} ms, large {1000 * self.first_large_s:.1f} ms",
            f"generic broker over {self.queues} queues: {1000 * median(self.generic):.2f} ms",
            f"statements asked of a database: {self.asked}",
            *(target.sentence() for target in self.targets),
        ]

    def as_json(self) -> Mapping[str, Any]:
        return {
            "benchmark": "broker",
            "median_ms": round(self.median_ms, 3),
            "ratio_2000": round(self.ratio, 3),
            "large_ms": round(self.large_ms, 3),
            "explain_ratio": round(self.explaining, 4),
            "generic_ms": round(1000 * median(self.generic), 3),
            "first_ms": round(1000 * self.first_s, 2),
            "first_large_ms": round(1000 * self.first_large_s, 2),
            "queues": self.queues,
            "large_queues": self.large_queues,
            "verdicts": len(self.small),
            "queries": self.asked,
            "targets": [
                {"name": t.name, "value": round(t.value, 4), "need": t.need, "aim": t.aim, "met": t.is_met}
                for t in self.targets
            ],
        }


class _Refusing:
    """Stands where statements go to the database: counts them and lets none through."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.asked += 1
        raise RuntimeError(f"the decision asked the database: {sql[:200]}")


def run(sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> BrokerResult:
    """Decide for 40 tasks a round. Raises RuntimeError when a verdict leaves a queue unexplained or asks a database."""
    from django.db import connection

    queues, large_queues, tasks = [*sizes, *(200, 2000, 40)[len(sizes) :]][:3]
    chance = Random(SEED)
    grid, large = synthetic_grid(queues, chance), synthetic_grid(large_queues, chance)
    watch = _Refusing()
    with connection.execute_wrapper(watch):
        first, first_large = _fresh(grid, chance), _fresh(large, chance)
        small_ones, large_ones, plain = [], [], []
        for number in range(rounds):
            for _ in range(tasks):
                state = chance.getstate()
                needs = synthetic_needs(chance, grid)
                chance.setstate(state)
                large_needs = synthetic_needs(chance, large)
                small_ones.append(_decide(needs, grid))
                large_ones.append(_decide(large_needs, large))
                plain.append(_timed(lambda needs=needs: generic.broker(needs, grid)))  # type: ignore[misc]
            say(f"round {number + 1} of {rounds}")
    return BrokerResult(small_ones, large_ones, plain, first, first_large, queues, large_queues, watch.asked)


def _fresh(grid: Grid, chance: Random) -> float:
    """The first verdict on a grid that was just loaded."""
    fresh = unpack(packed(grid))
    needs = synthetic_needs(chance, grid)
    return _timed(lambda: production_job.broker(needs, fresh))


def _decide(needs: TaskNeeds, grid: Grid) -> Decision:
    production_job.broker(needs, grid)
    start = time.process_time()
    verdict = production_job.broker(needs, grid)
    decided = time.process_time()
    _explain(verdict)
    ended = time.process_time()
    _check(verdict, grid)
    return Decision(decided - start, ended - decided, verdict)


def _explain(verdict: Verdict) -> int:
    """All the sentences; returns their length, so that the work cannot be left out."""
    return (
        sum(len(skip.detail) for skip in verdict.skipped)
        + len(verdict.sentence())
        + sum(len(name) for choice in verdict.chosen for name, _ in choice.factors)
    )


def _check(verdict: Verdict, grid: Grid) -> None:
    if verdict.stopped is not None:
        return
    named = sorted([*(c.site for c in verdict.chosen), *(s.site for s in verdict.skipped)])
    there = sorted(site.name for site in grid.sites.values() if not site.is_parent)
    if named != there:
        raise RuntimeError(f"{len(there)} queues were asked and {len(named)} answers given")


def _timed(act: Callable[[], object]) -> float:
    start = time.process_time()
    act()
    return time.process_time() - start
