"""What a task asks of the nucleus that gathers its outputs, and how much work each nucleus has already. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

CPU_TIME_HS06S: Final = 300.0
"""CPU time of an event where a task states none (JEDI brokerage document, remaining work)."""
DISTRIBUTED: Final = "ddd:"
"""Begins the storage token of a dataset whose files stay where they are made."""
DESTINATION: Final = "dst:"
NUCLEUS: Final = "nucleus:"


@dataclass(frozen=True, slots=True)
class Output:
    """A dataset of outputs or logs. `token`: the storage that its task asked for, by name or type; "" is any."""

    id: int
    name: str = ""
    token: str = ""

    @classmethod
    def of(cls, id: int, name: str, token: str | None, destination: str | None) -> Output:
        """From the columns of a dataset. One that has a place at a nucleus has what was asked for behind that place."""
        return cls(id, name, asked_token(token, destination))

    @property
    def wants(self) -> str:
        """The part of the token that names the storage."""
        return self.token.rsplit("/", 1)[-1].removeprefix(DESTINATION)

    @property
    def is_distributed(self) -> bool:
        return self.token.startswith(DISTRIBUTED)


def is_gathered(destination: str | None) -> bool:
    """Whether a dataset's destination is a nucleus, and not an endpoint that the task named, or nothing."""
    return bool(destination) and str(destination).startswith(NUCLEUS)


def asked_token(token: str | None, destination: str | None) -> str:
    """The storage token as it was before a nucleus was chosen."""
    return (token or "").partition("/")[2] if is_gathered(destination) else token or ""


def endpoint_of(destination: str | None, token: str | None) -> str:
    """The endpoint to which files of a dataset go; "" when it has no destination."""
    if not is_gathered(destination):
        return destination or ""
    return (token or "").partition("/")[0].removeprefix(DESTINATION)


@dataclass(frozen=True, slots=True)
class Gathering:
    """What the choice of a nucleus depends on besides the needs of jobs.

    outputs           the datasets that are gathered
    on_master         only the primary input has to be at the nucleus (`taskBrokerOnMaster`)
    parent_nucleus, parent_full_chain
                      of the task whose outputs this one reads; "" without one
    group             by which work is compared: the task's share or work queue, see `group_of`
    """

    outputs: tuple[Output, ...] = ()
    on_master: bool = False
    parent_nucleus: str = ""
    parent_full_chain: str = ""
    group: str = ""


def group_of(share: str, work_queue: str, *, is_resource: bool = False) -> str:
    """Tasks of one share compete with each other; those of a resource queue, or of no share, with those of their queue."""
    return f"share {share}" if share and not is_resource else f"queue {work_queue}"


class Portion(NamedTuple):
    """Work of tasks of one group and priority, in HS06 seconds."""

    group: str
    priority: int
    hs06s: float


@dataclass(frozen=True)
class RemainingWork:
    """RW of the JEDI documents: what is left to be done of the tasks of each nucleus, in HS06 seconds."""

    portions: Mapping[str, tuple[Portion, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, int, float]]) -> RemainingWork:
        """From rows (nucleus, group, priority, HS06 seconds)."""
        found: dict[str, list[Portion]] = {}
        for nucleus, group, priority, hs06s in rows:
            found.setdefault(nucleus, []).append(Portion(group, priority, hs06s))
        return cls({nucleus: tuple(some) for nucleus, some in found.items()})

    @cached_property
    def _totals(self) -> dict[str, float]:
        return {nucleus: sum(portion.hs06s for portion in some) for nucleus, some in self.portions.items()}

    @cached_property
    def _of_group(self) -> dict[tuple[str, str], list[Portion]]:
        found: dict[tuple[str, str], list[Portion]] = {}
        for nucleus, some in self.portions.items():
            for portion in some:
                found.setdefault((nucleus, portion.group), []).append(portion)
        return found

    def full(self, nucleus: str) -> float:
        """Of all tasks: by it the space is reckoned that outputs will take."""
        return self._totals.get(nucleus, 0.0)

    def ahead_of(self, nucleus: str, group: str, priority: int) -> float:
        """Of the tasks of a group that are as urgent or more so: what a new task would have to wait for."""
        return sum(
            portion.hs06s for portion in self._of_group.get((nucleus, group), ()) if portion.priority >= priority
        )

    def plus(self, nucleus: str, group: str, priority: int, hs06s: float) -> RemainingWork:
        """With one more task at a nucleus."""
        grown = (*self.portions.get(nucleus, ()), Portion(group, priority, hs06s))
        return RemainingWork({**self.portions, nucleus: grown})


NO_WORK: Final = RemainingWork()


def remaining_hs06s(events: int, events_used: int, cpu_time: float | None, unit: str | None = None) -> float:
    """RW of one task: (events - events used) x CPU time an event. Units that begin with m are thousandths."""
    each = CPU_TIME_HS06S if cpu_time is None else float(cpu_time)
    if unit and unit.startswith("m"):
        each /= 1000
    return max(events - events_used, 0) * max(each, 0.0)
