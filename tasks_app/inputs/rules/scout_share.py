"""The scouts' share of a task's inputs: how many files jobs may take before the scouts are judged. Pure. From lifecycle 5.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.params.splitrule import SplitRule

CHUNKS: Final = 10
"""A task scouts with this many jobs."""
NO_SCOUTS, WILL_SCOUT, HAS_SCOUTED = 1, 2, 3
"""Values of US."""


@dataclass(frozen=True, slots=True)
class MasterFiles:
    """A master dataset before scouting.

    files       file records that are known
    ready       records that jobs may take now (not pending, staging, missing or lost)
    events      effective events of the ready records, in the order in which jobs take them; for event splitting
    job_files   records in each of the first jobs as the splitter really makes them; for respectSplitRule
    blocks      ready records of each luminosity block, in the order in which jobs take them; for releasePerLB
    """

    dataset_id: int
    files: int
    ready: int
    mutable: bool = False
    events: tuple[int, ...] = ()
    job_files: tuple[int, ...] = ()
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoutRelease:
    """How many files of each master dataset jobs may take for now, and whether those jobs are scouts."""

    scouting: bool
    files: tuple[tuple[int, int], ...]
    detail: str


def will_scout(rule: SplitRule, *, merging: bool = False) -> bool:
    """Whether a task is to scout: US=2. Never for merging, nor when groups say what each job reads."""
    return rule.get_int("US") == WILL_SCOUT and not merging and "GB" not in rule


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
        few = f"{plural(known, 'file is', 'files are')} no more than scouts would use, so there are no scouts"
        return ScoutRelease(False, everything, few)
    scouts = plural(CHUNKS - left, "scout job")
    return ScoutRelease(
        True, tuple(taken), f"{released} of {plural(known, 'file is', 'files are')} released for {scouts}"
    )


def _take(rule: SplitRule, master: MasterFiles, chunks: int) -> tuple[int, int]:
    """Files of one dataset for at most `chunks` chunks, and the chunks that they make; of luminosity blocks that are
    released as a whole, the files of as many as that takes."""
    files, made = _take_any(rule, master, chunks)
    if master.blocks and files:
        files = next((total for total in accumulate(master.blocks) if total >= files), master.ready)
    return files, made


def _take_any(rule: SplitRule, master: MasterFiles, chunks: int) -> tuple[int, int]:
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
