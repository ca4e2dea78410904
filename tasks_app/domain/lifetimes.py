"""How long the outputs of an ended task are kept. Pure; lifecycle 6.4, "Final procedure lifetimes"."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from tasks_app.domain.states import TaskStatus

TRANSIENT: Final = timedelta(days=14)
"""Outputs that the task itself calls transient."""
MERGED: Final = timedelta(days=40)
"""Transient outputs of a parent, from the end of the task that merged them."""
LOGS_OF_FAILED: Final = timedelta(days=30)
ANALYSIS: Final = timedelta(days=14)
"""Outputs of the VO's users, where the configuration says nothing else (OUTPUT_CONTAINER_LIFETIME)."""
_FAILED = frozenset({TaskStatus.FAILED, TaskStatus.BROKEN, TaskStatus.ABORTED})


class Kind(StrEnum):
    """By whose rules a task was refined."""

    PRODUCTION = "production"
    ANALYSIS = "analysis"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Ending:
    """What becomes of one output dataset: it is kept for a time or for ever (None), or deleted at once."""

    keep: timedelta | None = None
    delete: bool = False


def ending_of(
    kind: Kind, status: str, *, type: str, attributes: Collection[str], files: int, analysis: timedelta = ANALYSIS
) -> Ending:
    """What becomes of an output or log whose task ended as `status`, with that many files.

    `attributes` are the tokens of the dataset, `analysis` the time for outputs of users. Tasks of no VO keep all but what
    they call transient.
    """
    transient = "tr" in attributes
    if kind == Kind.ANALYSIS:
        return Ending(delete=True) if transient or not files else Ending(analysis)
    if transient:
        return Ending(TRANSIENT)
    if kind == Kind.PRODUCTION and type == "log" and status in _FAILED:
        return Ending(LOGS_OF_FAILED)
    return Ending()
