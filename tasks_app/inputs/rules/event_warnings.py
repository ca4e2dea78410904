"""What a task whose jobs are made by events is told of files of which nobody knows the number. Pure."""

from __future__ import annotations

from typing import Any, Final

from jedisite.vocabulary.words import plural
from tasks_app.params.splitrule import SplitRule

_BY_EVENTS: Final = ("nEventsPerJob", "tgtNumEventsPerJob")


def asks_by_events(rule: SplitRule, raw: dict[str, Any]) -> str:
    """The parameter that says how many events a job gets, where the files say how many they have; "" for none."""
    if raw.get("noInput") or not rule.get_int("NE") or rule.get_int("EI"):
        return ""
    return next((name for name in _BY_EVENTS if raw.get(name)), "")


def event_warning(asked: str, files: int, without: int) -> str:
    """`none of the 8 input files has a number of events: nEventsPerJob has no effect`; "" where all have one.

    >>> event_warning("nEventsPerJob", 6, 2)
    '2 of 6 input files have no number of events: nEventsPerJob counts them as without events'
    """
    if not asked or not without:
        return ""
    if without < files:
        has, them = ("has", "it") if without == 1 else ("have", "them")
        whose = f"{without} of {plural(files, 'input file')} {has} no number of events"
        return f"{whose}: {asked} counts {them} as without events"
    whose = "its only input file has no" if files == 1 else f"none of the {files} input files has a"
    return f"{whose} number of events: {asked} has no effect"
