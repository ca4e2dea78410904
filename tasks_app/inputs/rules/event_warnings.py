"""What a task whose jobs are made by events is told of files of which nobody knows the number. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from jedisite.vocabulary.words import plural
from tasks_app.params.clientwords import is_from_client, option_of
from tasks_app.params.splitrule import SplitRule

_BY_EVENTS: Final = ("nEventsPerJob", "tgtNumEventsPerJob")
_EVENTS_OF_A_FILE: Final = ("nEventsPerInputFile", "nEventsPerFile")


def asks_by_events(rule: SplitRule, raw: dict[str, Any]) -> str:
    """The parameter that says how many events a job gets, where the files say how many they have; "" for none."""
    return asked_by_events(raw) if rule.get_int("NE") and not rule.get_int("EI") else ""


def asked_by_events(raw: dict[str, Any]) -> str:
    """The same of the parameters that a task is submitted with."""
    if raw.get("noInput") or any(raw.get(name) for name in _EVENTS_OF_A_FILE):
        return ""
    return next((name for name in _BY_EVENTS if raw.get(name)), "")


def event_warning(asked: str, files: int, without: int, raw: dict[str, Any]) -> str:
    """What is said of a task with so many input `files` of which some are `without` a number of events; "" where all have one.

    >>> event_warning("nEventsPerJob", 6, 2, {})[:70]
    '2 of 6 input files have no number of events: nEventsPerJob counts them'
    """
    if not asked or not without:
        return ""
    called: Callable[[str], str] = partial(option_of, raw=raw) if is_from_client(raw) else str
    per_file = called("nEventsPerFile") if is_from_client(raw) else "nEventsPerInputFile"
    instead = f"give {per_file}, the events of each file, or {called('nFilesPerJob')} in place of {called(asked)}"
    if without < files:
        has, them = ("has", "it") if without == 1 else ("have", "them")
        whose = f"{without} of {plural(files, 'input file')} {has} no number of events"
        return f"{whose}: {called(asked)} counts {them} as without events; {instead}"
    return f"none of its input files has a number of events: {called(asked)} has no effect; {instead}"
