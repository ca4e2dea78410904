"""Tasks that read much, and whose input lies only where there is no room to read it now, wait. Pure.

The task withholder of the JEDI brokerage document. Urgent tasks are not held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from brokerage_app.formulas.queue_room import QUEUED_TO_RUNNING
from brokerage_app.policy.configuration import Configuration
from jedisite.vocabulary.words import plural
from tasks_app.domain import refusal_codes
from tasks_app.domain.reasons import Reason

LEAST_INTENSITY: Final = 100.0
"""LIMIT_IOINTENSITY is never below this."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A queue that can read from an endpoint, with its jobs."""

    queue: str
    running: int
    queued: int


@dataclass(frozen=True, slots=True)
class Source:
    """An endpoint with the input of a task, and the queues that read from it. `blacklisted`: nothing is read from it."""

    endpoint: str
    blacklisted: bool = False
    readers: tuple[Reader, ...] = ()


@dataclass(frozen=True, slots=True)
class WithholdLimits:
    """LIMIT_IOINTENSITY (kB/s) and LIMIT_PRIORITY of the label, and jobs that any queue may have waiting."""

    io_intensity: float = 999_999.0
    priority: int = -999_999
    floor: int = 20

    @classmethod
    def from_configuration(cls, configuration: Configuration, label: str, vo: str = "") -> WithholdLimits:
        return cls(
            configuration.get("task_withholder", "LIMIT_IOINTENSITY", label, vo=vo),
            configuration.get("task_withholder", "LIMIT_PRIORITY", label, vo=vo),
            configuration.get("jobbroker", "NQUEUELIMITSITE", vo=vo),
        )


def withhold(
    io_intensity: float | None, priority: int, sources: Sequence[Source], limits: WithholdLimits
) -> Reason | None:
    """Why a task is to wait; None when it is to go on, also when nothing is known of where its input is."""
    least = max(limits.io_intensity, LEAST_INTENSITY)
    if io_intensity is None or io_intensity < least or priority >= limits.priority or not sources:
        return None
    blacklisted = [source for source in sources if source.blacklisted]
    busy = {
        reader.queue: reader.queued > max(limits.floor, QUEUED_TO_RUNNING * reader.running)
        for source in sources
        if not source.blacklisted
        for reader in source.readers
    }
    if not all(busy.values()) or not (busy or blacklisted):
        return None
    detail = (
        f"it reads {io_intensity:g} kB/s a core ({least:g} is the limit for priorities below {limits.priority}) and its "
        f"input is at {plural(len(sources), 'endpoint')}: {len(blacklisted)} cannot be read, "
        f"{plural(len(busy), 'queue reads', 'queues read')} from the "
        f"others, all with more jobs queued than {QUEUED_TO_RUNNING} x running or {limits.floor}"
    )
    return Reason(refusal_codes.TASK_WITHHELD, detail)
