"""The states of a package, and which packages may be launched. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    HELD = "held"
    """It would be unscheduled, but somebody holds it: it gets no job until it is resumed."""


_P = PackageStatus
PACKAGE_MOVES: Final[Mapping[PackageStatus, frozenset[PackageStatus]]] = {
    _P.UNSCHEDULED: frozenset({_P.SCHEDULED, _P.HELD, _P.CANCELED}),
    _P.HELD: frozenset({_P.UNSCHEDULED, _P.FAILED, _P.CANCELED}),
    _P.SCHEDULED: frozenset({_P.LAUNCHED, _P.HELD, _P.FAILED, _P.CANCELED}),
    _P.LAUNCHED: frozenset({_P.SUCCESSFUL, _P.FAILED, _P.CANCELED}),
    _P.FAILED: frozenset({_P.UNSCHEDULED, _P.CANCELED}),
    _P.SUCCESSFUL: frozenset(),
    _P.CANCELED: frozenset(),
}
"""A restart is the move from failed to unscheduled, a drop the one to canceled.
A kill makes a failed package of a held one."""
ENDED: Final = frozenset({_P.SUCCESSFUL, _P.CANCELED})
AT_WORK: Final = frozenset({_P.SCHEDULED, _P.LAUNCHED})


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
