"""Whether a file can be cut into ranges of events. Pure."""

from __future__ import annotations

from typing import Final

from jedisite.vocabulary.words import plural

IN_FILE: Final = "nEventsPerInputFile"


def why_not_cut(lfn: str, known: int | None, said: int | None = None, *, leaves_short: bool = False) -> str:
    """Why a file cannot be cut into ranges, as a sentence without its point; "" when it can.

    `known`: its events as data management has them, `said` those that the task gives for each file (nEventsPerInputFile).
    `leaves_short`: what a shorter file lacks is left out (skipShortInput).
    """
    if not known and not said:
        why = f"the file {lfn} cannot be cut into ranges: how many events it has is not known"
        return f"{why}; register the number (manage.py register_dataset --events), or give {IN_FILE}"
    if known and said and said > known and not leaves_short:
        why = f"the file {lfn} has {plural(known, 'event')}, and {IN_FILE} says {said}: nothing can process those that it lacks"
        return f"{why}; give {IN_FILE} {known} at most, or useRealNumEvents in its place"
    return ""
