"""How the jobs of a task of event service are made: consumers that share the ranges of their input, or clones. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tasks_app.domain.range_jobs import CLONE, FINE
from tasks_app.params.splitrule import SplitRule

KINDS: Final = {1: 1, 2: CLONE, 3: FINE}
"""What jobs are (EVENTSERVICE of a job) by what their task is: of event service, cloned, fine-grained."""
CO_JUMBO: Final = 5
"""The same of consumers whose task has jumbo jobs, too."""
MORE_ATTEMPTS: Final = 3
"""Attempts of a consumer after its first when the task says nothing (maxAttemptEsJob)."""
USUAL_SHARE: Final = 3
"""By which the time of a job is then divided: PanDA counts the first attempt only where maxAttemptEsJob is given."""


@dataclass(frozen=True, slots=True)
class Consumers:
    """The consumers of a jobset.

    kind            what they are (EVENTSERVICE)
    more_attempts   how often each is followed by another that goes on with what it left
    number          how many there are at a time
    sites           over how many queues they are spread, at most
    shares          into how many parts the time for all events of an input is divided
    """

    kind: int
    more_attempts: int
    number: int
    sites: int
    shares: int

    @property
    def share_events(self) -> bool:
        """Whether they take ranges at queues that are set up for that; clones and fine-grained jobs run as ordinary jobs."""
        return self.kind not in (CLONE, FINE)


def turns(number: int, slots: int) -> list[int]:
    """How many of the consumers of an input each of its slots gets: they take turns."""
    return [len(range(place, number, slots)) for place in range(slots)]


def consumers_of(mode: int, rule: SplitRule, *, beside_jumbo: bool = False) -> Consumers | None:
    """The consumers of a task; None when its jobs are none. `mode`: EVENTSERVICE of the task.

    `beside_jumbo`: it has jumbo jobs, too.
    """
    kind = KINDS.get(mode)
    if kind is None:
        return None
    number, more = rule.get_int("EC") or 1, rule.get_int("XJ")
    if kind in (CLONE, FINE):
        # Each has the whole input, and whatever it leaves comes back with the file.
        return Consumers(kind, 0, number if kind == CLONE else 1, rule.get_int("NS") or 1, 1)
    kind = CO_JUMBO if beside_jumbo else kind
    return Consumers(
        kind,
        MORE_ATTEMPTS if more is None else more,
        number,
        rule.get_int("NS") or 1,
        number * (USUAL_SHARE if more is None else more + 1),
    )
