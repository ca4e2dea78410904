"""How cases are run in turn, what is made of their rates, and how a benchmark says it. Pure but for the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """A figure that is asked for: at least `need` (or at most, with `at_most`), better `aim`."""

    name: str
    value: float
    need: float
    aim: float | None = None
    at_most: bool = False

    @property
    def is_met(self) -> bool:
        return self._reaches(self.need)

    @property
    def reaches_aim(self) -> bool:
        return self.aim is not None and self._reaches(self.aim)

    def _reaches(self, limit: float) -> bool:
        return self.value <= limit if self.at_most else self.value >= limit

    def sentence(self) -> str:
        word = "aim reached" if self.reaches_aim else "pass" if self.is_met else "FALLS SHORT"
        bound = "at most" if self.at_most else "at least"
        aim = f", aim {self.aim:g}" if self.aim is not None else ""
        return f"{word}: {self.name} {self.value:.3g} ({bound} {self.need:g}{aim})"


Case = Callable[[], float]
"""Runs once and returns its rate."""


@dataclass(slots=True)
class Rates:
    """The rates of each case, one a round."""

    by_case: dict[str, list[float]] = field(default_factory=dict)

    def median(self, case: str) -> float:
        return median(self.by_case[case])

    def ratios(self, case: str, raw: str) -> list[float]:
        """Case over raw, each of the same round."""
        pairs = zip(self.by_case[case], self.by_case[raw], strict=True)
        return [ours / theirs if theirs else 0.0 for ours, theirs in pairs]

    def ratio(self, case: str, raw: str) -> float:
        return median(self.ratios(case, raw))


def in_turn(cases: Mapping[str, Case], rounds: int, say: Callable[[str], None]) -> Rates:
    """Run each case once a round. Every second round goes backwards, so that no case always runs after the same other one."""
    rates = Rates({name: [] for name in cases})
    for number in range(rounds):
        order: Iterable[str] = cases if number % 2 == 0 else reversed(list(cases))
        for name in order:
            rates.by_case[name].append(cases[name]())
        say(f"round {number + 1} of {rounds}: " + ", ".join(f"{n} {rates.by_case[n][-1]:,.0f}/s" for n in cases))
    return rates


@dataclass(slots=True)
class Result:
    """What a benchmark found. `ratio` is the median over the rounds of our rate over the raw rate of the same round."""

    benchmark: str
    unit: str
    rates: Rates
    ours: str
    raw: str
    sizes: Mapping[str, int]
    targets: list[Target] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        ratios = self.rates.ratios(self.ours, self.raw)
        return {
            "benchmark": self.benchmark,
            "unit": self.unit,
            "rate": round(self.rates.median(self.ours), 1),
            "raw": round(self.rates.median(self.raw), 1),
            "ratio": round(median(ratios), 4),
            "ratio_min": round(min(ratios), 4),
            "ratio_max": round(max(ratios), 4),
            "rounds": len(ratios),
            "sizes": dict(self.sizes),
            "cases": {name: _summary(rates) for name, rates in self.rates.by_case.items()},
            "targets": [
                {"name": t.name, "value": round(t.value, 4), "need": t.need, "aim": t.aim, "met": t.is_met}
                for t in self.targets
            ],
            **self.more,
        }

    def lines(self) -> list[str]:
        """For people: a row a case, then a sentence a target."""
        found = [f"{'case':<34} {self.unit:>12}   min..max"]
        for name, rates in self.rates.by_case.items():
            mark = "ours" if name == self.ours else "raw" if name == self.raw else ""
            found.append(f"{name:<34} {median(rates):>12,.0f}   {min(rates):,.0f}..{max(rates):,.0f}  {mark}".rstrip())
        ratios = self.rates.ratios(self.ours, self.raw)
        found.append(f"ratio {median(ratios):.3f} ({min(ratios):.3f}..{max(ratios):.3f})")
        return [*found, *(target.sentence() for target in self.targets)]


def _summary(rates: list[float]) -> dict[str, float]:
    return {"median": round(median(rates), 1), "min": round(min(rates), 1), "max": round(max(rates), 1)}


class Clock:
    """Seconds of a `with` block."""

    seconds: float = 0.0

    def __enter__(self) -> Clock:
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began
