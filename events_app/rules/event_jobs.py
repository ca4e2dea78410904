"""Kinds of jobs of event service, as `jobs.eventservice` has them."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class EventJobKind(IntEnum):
    """What a job has to do with ranges of events. Other jobs have 0 or nothing."""

    CONSUMER = 1
    MERGE = 2
    CLONE = 3
    JUMBO = 4
    """It takes ranges of all jobsets of its task."""
    CO_JUMBO = 5
    """A consumer of a task that has jumbo jobs, too."""
    FINE = 6
    """Fine-grained: it may report ranges that it was not handed."""


UNNEEDED: Final = frozenset({EventJobKind.CONSUMER, EventJobKind.CO_JUMBO})
"""These end unused when nothing of their jobset is left before a pilot fetches them."""
