"""What goes with event service and what does not: a task says it with nEventsPerWorker, or may become one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tasks_app.domain.range_jobs import WHOLE_PROGRAM, is_own_program
from tasks_app.params.faults import Faults
from tasks_app.params.keys import KEYS

if TYPE_CHECKING:
    from tasks_app.params.schema import TaskParams

RULE: Final = "event service"
"""The rule that such a parameter breaks, as clients read it."""
SWITCH: Final = "nEventsPerWorker"
JUMBO: Final = "nJumboJobs"
PER_SITE: Final = "maxJumboPerSite"
ONLY_WITH: Final = (
    "nEsConsumers",
    "nSitesPerJob",
    "maxAttemptES",
    "maxAttemptEsJob",
    "notDiscardEvents",
    "decAttOnFailedES",
    "allowPartialFinish",
    "esmergeSpec",
    "nJumboJobs",
    "maxJumboPerSite",
)
"""Parameters that say something of consumers, ranges and their merge jobs."""
_ONE: Final = frozenset({"nEsConsumers", "nSitesPerJob"})
"""Of these, one is what each job has without event service."""
_MERGES: Final = (
    "Outputs of event service are merged by its own merge jobs: leave it out, and describe them in esmergeSpec."
)
_WHOLE: Final = (
    "Event service divides the input by events, so it cannot be divided by groups of files as well: leave it out."
)
_EVENTS: Final = "Consumers take event ranges until their time is over: leave it out."
AGAINST: Final[Mapping[str, str]] = MappingProxyType(
    {
        "mergeOutput": _MERGES,
        "mergeSpec": _MERGES,
        "loadXML": _WHOLE,
        "groupBoundaryID": _WHOLE,
        "minGranularity": _EVENTS,
        "nEventsPerRange": _EVENTS,
        "buildSpec": "Consumers may start at any queue, where no library is built for them: install the program there.",
        "preproSpec": "A task of event service has no preprocessing step: make a task of its own of it.",
        "periodic": "A task of event service has an input with events, and a periodic task has none.",
    }
)
"""What event service cannot have, and what to do instead."""
CLONES: Final = "useJobCloning"
FINE: Final = "fineGrainedProc"
_ALONE: Final = "A task is of one kind: leave out {} or {}."
_NO_STEP: Final = "Its jobs may start at any queue, where no library is built for them: install the program there."
_NO_MERGE: Final = "Outputs of such jobs are not merged: make a task of its own of it."
_OTHERS: Final = {
    SWITCH: _ALONE,
    "esFraction": _ALONE,
    "mergeOutput": _NO_MERGE,
    "mergeSpec": _NO_MERGE,
    "loadXML": "Groups of files have jobs of their own, which have no copies: leave it out.",
    "buildSpec": _NO_STEP,
    "preproSpec": "Such a task has no preprocessing step: make a task of its own of it.",
    "periodic": "Such a task has an input, and a periodic task has none.",
}
AGAINST_OTHERS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        CLONES: {**_OTHERS, FINE: _ALONE, "nEventsPerRange": _EVENTS, "minGranularity": _EVENTS},
        FINE: {**_OTHERS, CLONES: _ALONE, "nEventsPerRange": _EVENTS, "minGranularity": _EVENTS},
    }
)
"""What cloned and fine-grained tasks cannot have, and what to do instead."""
CHANGEABLE: Final = (SWITCH, "nEsConsumers", JUMBO)


_UNKNOWN: Final = (
    "Event service has to know how many events each file has: give nEventsPerInputFile, or useRealNumEvents where data "
    "management knows the numbers."
)


def event_service(params: TaskParams, faults: Faults) -> None:
    """Parameters of event service need it, and it needs to know how many events files have."""
    name, other = _asked_by(params), _other_kind(params)
    if other is not None:
        for one, why in AGAINST_OTHERS[other].items():
            if _is_asked(params, one):
                faults.add(one, RULE, why.format(one, other))
        if other == FINE and not _knows_events(params):
            faults.add(FINE, RULE, _UNKNOWN)
    if name is None or other is not None:
        for one in ONLY_WITH:
            if _is_asked(params, one) and not (other == CLONES and one in _ONE):
                faults.add(one, RULE, f"It has no effect without {SWITCH}, which makes a task one of event service.")
        return
    if not _knows_events(params):
        faults.add(name, RULE, _UNKNOWN)
    spec = params.spec("esmergeSpec")
    if spec and not spec.get("transPath"):
        said = "esmergeSpec needs transPath, the program of its merge jobs; without esmergeSpec the site's own is used."
        faults.add("esmergeSpec.transPath", "required", said)
    for one, why in AGAINST.items():
        if _is_asked(params, one):
            faults.add(one, RULE, why)
    if _is_asked(params, JUMBO):
        _jumbo(params, faults)
    elif _is_asked(params, PER_SITE):
        faults.add(PER_SITE, RULE, f"It has no effect without {JUMBO}.")


def _jumbo(params: TaskParams, faults: Faults) -> None:
    """Jumbo jobs go to queues of their own, and know ranges by their place in a file."""
    if params.text("site"):
        faults.add(JUMBO, RULE, "Jumbo jobs go to queues of their own: leave it out, or do not name a site.")
    events, in_file = params.whole("nEventsPerJob"), params.events_per_input
    one_file = params.whole("nFilesPerJob") == 1 or bool(events and in_file and events < in_file)
    counts = params.flag("inFilePosEvtNum") or is_own_program(params.text("transPath") or WHOLE_PROGRAM)
    if not (one_file or counts):
        said = "Jumbo jobs know ranges by their place in a file: give inFilePosEvtNum, or nFilesPerJob 1."
        faults.add(JUMBO, RULE, said)


def kind_of(params: TaskParams) -> str | None:
    """The parameter that has the input of a task divided into ranges, or its jobs cloned; None of an ordinary task."""
    return _other_kind(params) or _asked_by(params)


def _asked_by(params: TaskParams) -> str | None:
    """The parameter that makes a task one of event service, or lets it become one."""
    if params.given(SWITCH):
        return SWITCH
    return "esFraction" if (params.number("esFraction") or 0) > 0 else None


def _other_kind(params: TaskParams) -> str | None:
    """The parameter that has jobs cloned, or makes the task fine-grained."""
    if params.text(CLONES):
        return CLONES
    return FINE if params.flag(FINE) else None


def _is_asked(params: TaskParams, name: str) -> bool:
    if KEYS[name].kind == "flag":
        return params.flag(name)
    value = params.raw.get(name)
    return bool(value) and not (name in _ONE and value == 1)


def _knows_events(params: TaskParams) -> bool:
    if params.events_per_input or params.flag("useRealNumEvents") or params.flag("getNumEventsInMetadata"):
        return True
    pseudo = params.flag("noInput") or any(item.param_type == "pseudo_input" for item in params.items)
    return pseudo and bool(params.whole("nEvents"))


def check_change(changes: Mapping[str, Any], *, now: bool, faults: Faults) -> None:
    """Add a fault where changes would make a task one of event service, or end that. `now`: it is one."""
    for name in CHANGEABLE:
        is_asked = bool(changes.get(name)) and (name not in _ONE or changes[name] != 1)
        if is_asked and not now:
            faults.add(name, RULE, "The task is not one of event service, and cannot become one: submit another.")
    for name in (CLONES, FINE):
        if name in changes:
            faults.add(name, RULE, "What a task is, is decided when it is submitted: submit another.")
    if now and SWITCH in changes and changes[SWITCH] is None:
        faults.add(SWITCH, RULE, "The task is one of event service, and stays it: give another number.")
