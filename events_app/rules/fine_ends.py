"""What becomes of a fine-grained job at its end."""

from __future__ import annotations

from enum import Enum

from tasks_app.domain.range_jobs import OF_SOME_EVENTS


class FineEnd(Enum):
    """How it ends; the values are sub-statuses of jobs."""

    DONE = "fg_done"
    """No range of its jobset is left: it is finished, and so is its file."""
    PARTIAL = OF_SOME_EVENTS
    """It is finished, and its file is tried again for the ranges that are left."""
    STUMBLE = "fg_stumble"
    """It ends as it was reported, and its file is tried again."""


def fine_end(finished: int, left: int) -> FineEnd:
    """`finished` by the job, `left` are ready in its jobset. PanDA counts ranges of its jobset in any state as left."""
    if not left:
        return FineEnd.DONE
    return FineEnd.PARTIAL if finished else FineEnd.STUMBLE
