"""What becomes of a task whose inputs are known. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class Master(NamedTuple):
    """A master input: file records, those that jobs may take, those that they took, and whether it may still grow."""

    files: int
    to_be_used: int
    used: int
    growing: bool


class FeedingEnd(Enum):
    READY = "jobs can be made"
    AWAITS_FILES = "an input may still grow"
    PARENT_RUNS = "there is nothing, and the parent task may still make it"
    NOTHING_TO_DO = "there is nothing, and the task allows that"
    NO_INPUT = "there is nothing to be processed"


def feeding_end(masters: Sequence[Master], *, parent_runs: bool, allow_empty: bool) -> FeedingEnd:
    """Files that are left make a task ready, and so does an input that is closed and processed."""
    growing = any(m.growing for m in masters)
    if any(m.to_be_used > m.used for m in masters) or (any(m.files for m in masters) and not growing):
        return FeedingEnd.READY
    if growing:
        return FeedingEnd.AWAITS_FILES
    if parent_runs:
        return FeedingEnd.PARENT_RUNS
    return FeedingEnd.NOTHING_TO_DO if allow_empty else FeedingEnd.NO_INPUT
