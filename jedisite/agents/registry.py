"""The table of agents: each declares itself beside its function, and the modules that hold them are imported at start-up.

@agent("adder", every="1s", title="Records the results of jobs on files and datasets")
def run(limit: int = 1000) -> Pass:
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

LEASE_S = 60.0
"""Seconds after which a pass that has given no sign of life counts as dead; long passes renew their lease."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass did: how many things it moved, a note for people, and whether more waits already."""

    items: int = 0
    note: str = ""
    more: bool = False


@dataclass(frozen=True, slots=True)
class AgentSpec:
    name: str
    run: Callable[[], Pass]
    period_s: float
    title: str
    lease_s: float = LEASE_S


class UnknownAgentError(LookupError):
    """No agent of this name is registered."""


REGISTRY: dict[str, AgentSpec] = {}
Run = TypeVar("Run", bound=Callable[[], Pass])
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def period_of(every: str | timedelta) -> float:
    """The seconds of a period: "5s", "10m", "1h" or a time span. Raises ValueError for what is none."""
    try:
        period_s = every.total_seconds() if isinstance(every, timedelta) else float(every[:-1]) * UNITS[every[-1]]
    except (ValueError, LookupError):
        period_s = 0.0
    if not period_s > 0:
        raise ValueError(f'{every!r} is no period: write "5s", "10m" or "1h"')
    return period_s


def agent(name: str, *, every: str | timedelta, title: str, lease_s: float = LEASE_S) -> Callable[[Run], Run]:
    """Declare a function as the agent `name`, which makes a pass each time when `every` is over ("5s", "10m", "1h").

    `title` says to people what the agent does, in a few words that begin with a verb. The function stays as it is.
    Raises ValueError for a name that another agent has.
    """
    period_s = period_of(every)

    def declare(run: Run) -> Run:
        if name in REGISTRY:
            raise ValueError(f"two agents are called {name}: {REGISTRY[name].run.__module__} and {run.__module__}")
        REGISTRY[name] = AgentSpec(name, run, period_s, title, lease_s)
        return run

    return declare


def collect(where: str) -> None:
    """Import a module, and all that a package holds, so that the agents in it declare themselves.

    Called from the `ready()` of an app.
    """
    found = importlib.import_module(where)
    for module in pkgutil.walk_packages(getattr(found, "__path__", ()), f"{where}."):
        importlib.import_module(module.name)
