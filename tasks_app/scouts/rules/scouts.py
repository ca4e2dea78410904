"""Scout jobs: how many files they get, and when they are judged. Pure.

What they measured is in `scout_metrics.py`, the verdict in `scout_verdict.py`. From lifecycle 5.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.params.splitrule import SplitRule

CHUNKS: Final = 10
"""A task scouts with this many jobs."""
SCOUT_PRIORITY: Final = 901
"""Scout jobs have at least this priority."""
SUB_CHUNKS_PER_SITE: Final = 2
CHECK_EVERY: Final = timedelta(minutes=10)
EARLY_PERCENT: Final = 50
"""With this share of jobs finished, scouts are judged before all have ended."""
MEASURE_AGAIN_AT: Final = (5, 100)
"""Finished jobs of a task at which its numbers are measured anew; the first is the JEDI document's sample."""
WILL_SCOUT, HAS_SCOUTED = 2, 3
"""Values of US."""


@dataclass(frozen=True, slots=True)
class MasterFiles:
    """A master dataset before scouting.

    files       file records that are known
    ready       records that jobs may take now (not pending, staging, missing or lost)
    events      effective events of the ready records, in the order in which jobs take them; for event splitting
    job_files   records in each of the first jobs as the splitter really makes them; for respectSplitRule
    """

    dataset_id: int
    files: int
    ready: int
    mutable: bool = False
    events: tuple[int, ...] = ()
    job_files: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoutRelease:
    """How many files of each master dataset jobs may take for now, and whether those jobs are scouts."""

    scouting: bool
    files: tuple[tuple[int, int], ...]
    detail: str


def will_scout(rule: SplitRule, *, merging: bool = False) -> bool:
    """Whether a task is to scout: US=2. Never for merging, nor when an XML file says what each job reads."""
    return rule.get_int("US") == WILL_SCOUT and not merging and "LX" not in rule


def release(rule: SplitRule, masters: Sequence[MasterFiles]) -> ScoutRelease:
    """The files for ten chunks, taken dataset after dataset; all files if that is all there is.

    A chunk is NF files (one if NF is unset); NE events when only NE is set; with RR a job as it is really split.
    """
    everything = tuple((m.dataset_id, m.ready) for m in masters)
    if not will_scout(rule):
        return ScoutRelease(False, everything, "the task has no scouts, all files are released")
    left, taken = CHUNKS, []
    for master in masters:
        files, chunks = _take(rule, master, left) if left else (0, 0)
        taken.append((master.dataset_id, files))
        left = max(left - chunks, 0)
    known, released = sum(m.files for m in masters), sum(n for _, n in taken)
    if released >= known and not any(m.mutable for m in masters):
        few = f"{plural(known, 'file is', 'files are')} no more than scouts would take, so there are none"
        return ScoutRelease(False, everything, few)
    scouts = plural(CHUNKS - left, "scout job")
    return ScoutRelease(
        True, tuple(taken), f"{released} of {plural(known, 'file is', 'files are')} released for {scouts}"
    )


def _take(rule: SplitRule, master: MasterFiles, chunks: int) -> tuple[int, int]:
    """Files of one dataset for at most `chunks` chunks, and the chunks that they make."""
    events = rule.get_int("NE")
    if rule.flag("RR") and master.job_files:
        jobs = master.job_files[:chunks]
        return min(sum(jobs), master.ready), len(jobs)
    if events and not rule.get_int("NF"):
        return _take_events(master, chunks, events)
    each = rule.files_per_job() or 1
    files = min(chunks * each, master.ready)
    return files, -(-files // each)


def _take_events(master: MasterFiles, chunks: int, each: int) -> tuple[int, int]:
    total = files = 0
    for events in master.events[: master.ready]:
        if total >= chunks * each:
            break
        total, files = total + max(events, 1), files + 1
    return files, min(-(-total // each), chunks)


def chunk_is_scout(rule: SplitRule, *, unreleased: int, mutable: bool, merging: bool = False) -> bool:
    """Whether jobs made now are scouts: the task will scout, and files wait for the verdict or may still come."""
    return will_scout(rule, merging=merging) and (unreleased > 0 or mutable)


def scout_priority(priority: int) -> int:
    return max(priority, SCOUT_PRIORITY)


class Due(Enum):
    """Why scouts are judged now."""

    COMPLETE = "all files of the scouts are finished or have no attempt left"
    EARLY = "half of the scouts finished"
    COMMAND = "a command said so"


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
