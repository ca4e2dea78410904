"""How many files of a growing dataset are released to jobs at a time. Pure; lifecycle 6.2, "Releasing pending".

Files of a dataset that still grows are `pending` until there are enough of them for a bunch of jobs, so that jobs are
full and brokered together. When the dataset is complete all are released.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.params.splitrule import SplitRule

CHUNKS: Final = 20
"""Jobs' worth of files in a bunch, when the task says nothing (nChunksToWait)."""
SCOUT_CHUNKS: Final = 10
"""The same for a task that is to scout: more are not used before the scouts are judged."""


def chunks_to_wait(rule: SplitRule, *, to_scout: bool) -> int:
    """Jobs in a bunch: what the task says; one with noInputPooling; else as many as scouts take, or the usual number."""
    given = rule.get_int("NT")
    if given:
        return given
    if rule.flag("NI"):
        return 1
    return SCOUT_CHUNKS if to_scout else CHUNKS


def events_per_job(rule: SplitRule) -> int | None:
    """Of a task whose files are divided, or put together, by their events; None where files are counted."""
    return rule.get_int("NE") if rule.get_int("EI") or rule.flag("UE") else None


def bunch_in_words(rule: SplitRule, *, to_scout: bool) -> str:
    """How many new files, or events, are enough: `6 (a bunch of 3 jobs, nChunksToWait)`."""
    chunks = chunks_to_wait(rule, to_scout=to_scout)
    events = events_per_job(rule)
    number = plural(chunks * events, "event") if events else str(chunks * (rule.get_int("NF") or 1))
    return f"{number} (a bunch of {plural(chunks, 'job')}, nChunksToWait)"


def released_files(pending: int, chunks: int, files_per_job: int | None) -> int:
    """How many of the pending files, from the first, make whole bunches."""
    bunch = chunks * (files_per_job or 1)
    return pending // bunch * bunch


def released_ranges(events: Sequence[int], chunks: int, events_of_job: int) -> int:
    """The same for ranges of events, given the events of each in order: as many as whole bunches of events need.

    A range that is only part of a job does not count as a job: the end of one file and the beginning of the next make
    one together.
    """
    bunch = chunks * events_of_job
    wanted = sum(events) // bunch * bunch
    covered = 0
    for place, number in enumerate(events):
        if covered >= wanted:
            return place
        covered += number
    return len(events) if wanted else 0
