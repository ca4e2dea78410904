"""Which chain of packages is the longest that is left, and when a workflow ends. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.package_states import ENDED, PackageStatus

FEWEST_FOR_A_RATE = 5
"""Successful packages from which a rate is taken."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a package does, how long one like it usually takes from its job's start in the queue to its end, and how long it
    has been under way. `usual_s` is None when nothing like it has ended and nobody has declared it."""

    status: PackageStatus
    usual_s: float | None = None
    so_far_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """`chain`: the longest chain of packages that have not ended, by index, first one first. `chain_s`: how long it takes, at
    least; None when that is not known. `rate_s`: how long all that is left takes at the rate until now; None when there is no
    rate yet. `blocked`: packages that wait, near or far, for one that has failed."""

    left: int = 0
    chain: tuple[int, ...] = ()
    chain_s: float | None = None
    rate_s: float | None = None
    failed: int = 0
    blocked: int = 0
    held: int = 0

    @property
    def seconds(self) -> float | None:
        """From now to the end; None when it is not known, or when what has failed or is on hold waits for somebody."""
        if self.failed or self.held or not self.left or self.chain_s is None:
            return None
        return max(self.chain_s, self.rate_s or 0.0)


def forecast(graph: Graph, steps: Sequence[Step], *, running_for_s: float = 0.0) -> Forecast:
    """What is left of a workflow that has been running for so long. Packages that are canceled have ended."""
    left = [index for index, step in enumerate(steps) if step.status not in ENDED]
    if not left:
        return Forecast()
    is_known = any(steps[index].usual_s is not None for index in left)
    known = [step.usual_s for step in steps if step.usual_s is not None]
    other = sum(known) / len(known) if known else 1.0  # of a kind that nothing is known of
    chain = _longest(graph, steps, set(left), other)
    chain_s = sum(_remaining(steps[index], other) for index in chain) if is_known else None
    done = sum(step.status is PackageStatus.SUCCESSFUL for step in steps)
    rate_s = len(left) * running_for_s / done if done >= FEWEST_FOR_A_RATE and running_for_s > 0 else None
    failed = [index for index in left if steps[index].status is PackageStatus.FAILED]
    held = sum(steps[index].status is PackageStatus.HELD for index in left)
    return Forecast(len(left), chain, chain_s, rate_s, len(failed), _blocked(graph, steps, failed), held)


def _remaining(step: Step, other: float) -> float:
    usual = other if step.usual_s is None else step.usual_s
    return max(usual - step.so_far_s, 0.0)


def _longest(graph: Graph, steps: Sequence[Step], left: set[int], other: float) -> tuple[int, ...]:
    """The chain that takes longest, and of those that take as long the one with the most packages."""
    best: dict[int, tuple[float, int, int]] = {}
    for index in reversed(graph.order()):
        if index not in left:
            continue
        below = [(*best[child][:2], child) for child in graph.children[index] if child in best]
        seconds, number, child = max(below, key=lambda one: (one[0], one[1], -one[2]), default=(0.0, 0, -1))
        best[index] = (seconds + _remaining(steps[index], other), number + 1, child)
    at = max(best, key=lambda index: (best[index][0], best[index][1], -index))
    chain = []
    while at >= 0:
        chain.append(at)
        at = best[at][2]
    return tuple(chain)


def _blocked(graph: Graph, steps: Sequence[Step], failed: Sequence[int]) -> int:
    seen = set(failed)
    todo = list(failed)
    while todo:
        for child in graph.children[todo.pop()]:
            if child not in seen and steps[child].status not in ENDED:
                seen.add(child)
                todo.append(child)
    return len(seen) - len(failed)
