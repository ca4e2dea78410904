"""The states of a package, what a failure means, and which packages may be launched. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tasks_app.workflows.rules.definition import Definition
from tasks_app.workflows.rules.implied_graph import Graph


class PackageStatus(StrEnum):
    UNSCHEDULED = "unscheduled"
    SCHEDULED = "scheduled"
    LAUNCHED = "launched"
    SUCCESSFUL = "successful"
    FAILED = "failed"
    CANCELED = "canceled"


_P = PackageStatus
PACKAGE_MOVES: Final[Mapping[PackageStatus, frozenset[PackageStatus]]] = {
    _P.UNSCHEDULED: frozenset({_P.SCHEDULED, _P.CANCELED}),
    _P.SCHEDULED: frozenset({_P.LAUNCHED, _P.FAILED, _P.CANCELED}),
    _P.LAUNCHED: frozenset({_P.SUCCESSFUL, _P.FAILED, _P.CANCELED}),
    _P.FAILED: frozenset({_P.UNSCHEDULED, _P.CANCELED}),
    _P.SUCCESSFUL: frozenset(),
    _P.CANCELED: frozenset(),
}
"""A restart is the move from failed to unscheduled, a drop the one to canceled."""
ENDED: Final = frozenset({_P.SUCCESSFUL, _P.CANCELED})
AT_WORK: Final = frozenset({_P.SCHEDULED, _P.LAUNCHED})
PLATFORM: Final = "platform failure"
LOOPING: Final = "looping"
SEG_FAULT: Final = "seg fault"
MISSING_OUTPUT: Final = "missing output"
ANY: Final = "any"
"""Limits the restarts after failures of all reasons that have no limit of their own."""


@dataclass(frozen=True, slots=True)
class Failed:
    """What a failure does to a package: its history with it, whether it restarts by itself, and who is told."""

    history: Mapping[str, int]
    restarts: bool
    told: tuple[str, ...]


def failed(reason: str, history: Mapping[str, int], limits: Mapping[str, int]) -> Failed:
    """A package has failed for a reason: that counts first, then the limit of restarts for the reason decides; without one
    the package stays failed."""
    counts = {**history, reason: history.get(reason, 0) + 1}
    return Failed(counts, counts[reason] <= limits.get(reason, limits.get(ANY, 0)), told_of(reason))


def told_of(reason: str) -> tuple[str, ...]:
    """Who is told of a failure: always the originator; of what may be the site's fault, those who run the site."""
    if reason in (SEG_FAULT, MISSING_OUTPUT):
        return ("originator", "grid control", "cluster management")
    return ("originator", "cluster management") if reason == PLATFORM else ("originator",)


def on_dead_node(node: str, nodes: Sequence[str], states: Sequence[PackageStatus]) -> list[int]:
    """The packages that a dead node takes with it: those that are scheduled or launched there, of which `nodes` says where."""
    return [
        index for index, (at, state) in enumerate(zip(nodes, states, strict=True)) if at == node and state in AT_WORK
    ]


def launchable(definition: Definition, graph: Graph, states: Sequence[PackageStatus]) -> list[int]:
    """The packages that may be launched now. Of a job on hold none.

    All that a package waits for must have succeeded or be canceled: what a canceled package would have written is no longer
    an input of those that may still run (see `line_drops`).
    """
    return [] if definition.hold else launchable_in(graph, states)


def launchable_in(graph: Graph, states: Sequence[PackageStatus]) -> list[int]:
    """The packages that wait for no other one, by index, when nothing is on hold."""
    return [
        node.index
        for node in graph.nodes
        if states[node.index] is _P.UNSCHEDULED and all(states[parent] in ENDED for parent in graph.parents[node.index])
    ]


def summary(graph: Graph, states: Sequence[PackageStatus], *, hold: bool = False) -> str:
    """The state of a whole workflow, or of a part of it: `held`, `waiting`, `running`, `failed`, `successful` or `canceled`.

    It is failed when a package has failed and nothing is at work or can be launched; canceled when every package is.
    """
    if all(state is _P.CANCELED for state in states):
        return "canceled"
    if all(state in ENDED for state in states):
        return "successful"
    if any(state in AT_WORK for state in states):
        return "running"
    if hold:
        return "held"
    can_go_on = launchable_in(graph, states)
    if can_go_on:
        return "running" if any(state is not _P.UNSCHEDULED for state in states) else "waiting"
    return "failed" if _P.FAILED in states else "waiting"
