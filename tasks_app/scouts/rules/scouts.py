"""Scout jobs: which jobs are, and when they are judged. Pure.

How many files they get is in `inputs/rules/scout_share.py`, what they measured in `scout_metrics.py`, the verdict in
`scout_verdict.py`. From lifecycle 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from tasks_app.inputs.rules.scout_share import will_scout
from tasks_app.params.splitrule import SplitRule

SCOUT_PRIORITY: Final = 901
"""Scout jobs have at least this priority."""
CHECK_EVERY: Final = timedelta(minutes=10)
EARLY_PERCENT: Final = 50
"""With this share of jobs finished, scouts are judged before all have ended."""
MEASURE_AGAIN_AT: Final = (5, 100)
"""Finished jobs of a task at which its numbers are measured anew; the first is the JEDI document's sample."""


def chunk_is_scout(rule: SplitRule, *, unreleased: int, mutable: bool, merging: bool = False) -> bool:
    """Whether jobs made now are scouts: the task will scout, and files wait for the verdict or may still come."""
    return will_scout(rule, merging=merging) and (unreleased > 0 or mutable)


def scout_priority(priority: int) -> int:
    return max(priority, SCOUT_PRIORITY)


class Due(Enum):
    """Why scouts are judged now."""

    COMPLETE = "all files of the scouts are finished or have no attempt left"
    EARLY = "half of the scouts finished"
    COMMAND = "a command asked for it"


@dataclass(frozen=True, slots=True)
class ScoutProgress:
    """Released master files with those finished and exhausted; distinct jobs of those files with those finished.

    `awaits_more`: none has finished, and scouts will get more files, since their share is not full and the input grows.
    """

    files: int
    finished: int
    exhausted: int
    jobs: int = 0
    jobs_finished: int = 0
    avalanche: bool = False
    checked_at: datetime | None = None
    awaits_more: bool = False


def judged_when(progress: ScoutProgress, now: datetime) -> Due | None:
    """Why the scouts are judged now, or None: not yet. The early check is made every ten minutes."""
    if progress.avalanche:
        return Due.COMMAND
    if not progress.awaits_more and progress.finished + progress.exhausted >= progress.files:
        return Due.COMPLETE
    if progress.checked_at is not None and now - progress.checked_at < CHECK_EVERY:
        return None
    if progress.jobs > 0 and progress.jobs_finished * 100 >= progress.jobs * EARLY_PERCENT:
        return Due.EARLY
    return None


class Refresh(Enum):
    """How a task's numbers are measured again."""

    NO = "nothing is measured"
    NUMBERS = "numbers are written without a verdict"
    VERDICT = "numbers are written, and the task may become exhausted"


@dataclass(frozen=True, slots=True)
class RefreshView:
    """A task between verdicts. `measured`: walltimeUnit is set. `done_jobs` counts neither build nor merge jobs."""

    status: str
    measured: bool
    done_jobs: int
    checked_at: datetime | None = field(default=None)


def refresh_when(view: RefreshView, now: datetime) -> Refresh:
    """Whether numbers are measured now: every ten minutes from the first finished job, while walltimeUnit is NULL.

    A running task is judged as well from the fifth finished job on.
    """
    if view.measured or view.done_jobs < 1 or view.status not in ("scouting", "running"):
        return Refresh.NO
    if view.checked_at is not None and now - view.checked_at < CHECK_EVERY:
        return Refresh.NO
    if view.status == "running" and view.done_jobs >= MEASURE_AGAIN_AT[0]:
        return Refresh.VERDICT
    return Refresh.NUMBERS


def measure_again(done_before: int, done_now: int) -> bool:
    """Whether walltimeUnit is to be cleared, since the finished jobs of a task have reached 5 or 100."""
    return any(done_before < mark <= done_now for mark in MEASURE_AGAIN_AT)
