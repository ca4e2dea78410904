"""The table of agents: each declares itself beside its function, and the modules that hold them are imported when it is read.

@agent("adder", every="1s", title="Records the results of jobs on files and datasets")
def run(limit: int = 1000) -> Pass:
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Callable, Iterator, MutableMapping
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


class Registry(MutableMapping[str, AgentSpec]):
    """Agents by name. The modules in which they declare themselves are imported when it is first read: they import nearly the
    whole site, which most commands have no use for. With `at_once` they are imported at start-up, for a process that is about
    to fork those who run agents.
    """

    def __init__(self) -> None:
        self.at_once = False
        self._specs: dict[str, AgentSpec] = {}
        self._places: list[str] = []
        self._reading = threading.RLock()

    def look_in(self, where: str) -> None:
        """Have a module, and all that a package holds, imported before agents are asked for."""
        with self._reading:
            self._places.append(where)
            if self.at_once:
                self._all()

    def declare(self, spec: AgentSpec) -> None:
        """Raises ValueError for a name that another agent has."""
        with self._reading:
            if (other := self._specs.get(spec.name)) is not None:
                raise ValueError(f"two agents are called {spec.name}: {other.run.__module__} and {spec.run.__module__}")
            self._specs[spec.name] = spec

    def _all(self) -> dict[str, AgentSpec]:
        with self._reading:
            while self._places:
                where = self._places.pop(0)
                found = importlib.import_module(where)
                for module in pkgutil.walk_packages(getattr(found, "__path__", ()), f"{where}."):
                    importlib.import_module(module.name)
            return self._specs

    def __getitem__(self, name: str) -> AgentSpec:
        return self._all()[name]

    def __setitem__(self, name: str, spec: AgentSpec) -> None:
        self._all()[name] = spec

    def __delitem__(self, name: str) -> None:
        del self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


REGISTRY = Registry()
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
        REGISTRY.declare(AgentSpec(name, run, period_s, title, lease_s))
        return run

    return declare
