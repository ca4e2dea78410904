"""What a workflow does, what it waits for and why, in a few sentences made from facts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from jedisite.vocabulary.words import plural, shortened, thousands
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.package_states import PackageStatus, launchable_in

_P = PackageStatus
LONGEST_REASON: Final = 200


@dataclass(frozen=True, slots=True)
class WorkflowFacts:
    """The owner of a workflow, whether it is on hold and has begun, of each package its status, and by index its failures, the
    site of its job and why its task makes no job now, where that is known. `blocked`: packages that wait for failed ones."""

    owner: str
    statuses: Sequence[PackageStatus]
    is_held: bool = False
    has_begun: bool = True
    failures: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    sites: Mapping[int, str] = field(default_factory=dict)
    why: Mapping[int, str] = field(default_factory=dict)
    blocked: int = 0


def sentence_of(graph: Graph, facts: WorkflowFacts) -> str:
    """A few sentences, however many packages there are."""
    by = Counter(facts.statuses)
    dropped = f"{plural(by[_P.CANCELED], 'package')} {_were(by[_P.CANCELED])} dropped." if by[_P.CANCELED] else ""
    parts: tuple[str, ...]
    if by[_P.CANCELED] == len(facts.statuses):
        parts = ("All of its packages were dropped or killed: nothing runs any more.",)
    elif by[_P.SUCCESSFUL] + by[_P.CANCELED] == len(facts.statuses):
        parts = (_succeeded(by, len(facts.statuses)), dropped)
    elif not facts.has_begun:
        parts = (f"It has been on hold since it was submitted, and begins when {facts.owner} resumes it.",)
    elif facts.is_held:
        said = " ".join(filter(None, (_succeeded(by, len(facts.statuses)), _at_work(facts, by))))
        parts = (said, f"It is on hold: nothing {'else ' if said else ''}starts until it is resumed.")
    else:
        parts = (
            _succeeded(by, len(facts.statuses)),
            _at_work(facts, by),
            _failed(graph, facts),
            _held(by),
            _waiting(graph, facts, by),
            dropped,
        )
    return " ".join(filter(None, parts))


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _wait(number: int) -> str:
    return "waits" if number == 1 else "wait"


def _succeeded(by: Mapping[PackageStatus, int], total: int) -> str:
    done = by[_P.SUCCESSFUL]
    has = "has" if done == 1 else "have"
    if not done:
        return ""
    if done == total:
        return "Its only package has succeeded." if total == 1 else f"All {plural(total, 'package')} have succeeded."
    return f"{thousands(done)} of {plural(total, 'package')} {has} succeeded."


def _at_work(facts: WorkflowFacts, by: Mapping[PackageStatus, int]) -> str:
    parts = []
    if number := by[_P.LAUNCHED]:
        sites = sorted({facts.sites.get(at, "") for at, one in enumerate(facts.statuses) if one is _P.LAUNCHED} - {""})
        where = f" at {sites[0]}" if len(sites) == 1 else f" at {len(sites)} queues" if sites else ""
        parts.append(f"{plural(number, 'package')} {'runs' if number == 1 else 'run'}{where}")
    if number := by[_P.SCHEDULED]:
        parts.append(
            f"{plural(number, 'package')} {'has a job that waits' if number == 1 else 'have jobs that wait'} for a pilot"
        )
    return f"{', '.join(parts)}." if parts else ""


def _held(by: Mapping[PackageStatus, int]) -> str:
    number = by[_P.HELD]
    if not number:
        return ""
    return f"{plural(number, 'package')} {'is' if number == 1 else 'are'} on hold: resume {'it' if number == 1 else 'them'}."


def _failed(graph: Graph, facts: WorkflowFacts) -> str:
    """Which packages have failed, why, what they hold up, and what to do."""
    failed = [at for at, one in enumerate(facts.statuses) if one is _P.FAILED]
    if not failed:
        return ""
    reasons: Counter[str] = Counter()
    for at in failed:
        reasons.update(facts.failures.get(at, {}))
    reason, times = max(reasons.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    if len(failed) == 1:
        node = graph.nodes[failed[0]]
        what = f"Package {node.path} ({node.package.software}) has failed"
        it, lines = "it", "its line"
    else:
        what = f"{plural(len(failed), 'package')} have failed"
        it, lines = "them", "their lines"
    why = f", {_times(times)} with “{shortened(reason, LONGEST_REASON)}”" if reason else ""
    held = f", and {plural(facts.blocked, 'package')} {_wait(facts.blocked)} for {it}" if facts.blocked else ""
    return f"{what}{why}{held}. Retry {it}, or drop {lines}."


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _waiting(graph: Graph, facts: WorkflowFacts, by: Mapping[PackageStatus, int]) -> str:
    """Packages that wait for no other one and have no job, with the first reason that is known; and how many wait for others."""
    ready = launchable_in(graph, facts.statuses)
    parts = []
    if ready:
        which = f"Package {graph.nodes[ready[0]].path}" if len(ready) == 1 else plural(len(ready), "package")
        known = next((facts.why[at] for at in ready if facts.why.get(at)), "")
        why = f": {shortened(known, LONGEST_REASON).rstrip('. ')}" if known else ""
        parts.append(f"{which} {_wait(len(ready))} for a job{why}.")
    others = by[_P.UNSCHEDULED] - len(ready) - facts.blocked
    if others > 0:
        parts.append(f"{plural(others, 'package')} {_wait(others)} for files of other packages.")
    return " ".join(parts)
