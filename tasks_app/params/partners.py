"""Parameters that need another one to have an effect: clients may send them alone, so that is taken, and told. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from tasks_app.domain.final import PRODUCTION_LABELS
from tasks_app.params.event_service import FINE, kind_of
from tasks_app.params.faults import Faults
from tasks_app.params.read_keys import EFFECT, has_parent

if TYPE_CHECKING:
    from tasks_app.params.schema import TaskParams

OF_NUCLEI: Final = ("t1Weight", "taskBrokerOnMaster", "fullChain")
"""They say something of the nucleus of a task, which only some kinds of task have."""
_DIVIDE: Final = ("nEventsPerJob", "tgtNumEventsPerJob", "minGranularity", "nEventsPerRange")


def addresses(params: TaskParams, faults: Faults) -> None:
    """A list of addresses is the input of a task without datasets."""
    if params.names("pfnList") and not params.flag("noInput"):
        said = "It has no effect on a task that reads datasets: leave it out, or set noInput to read these files only."
        faults.add("pfnList", EFFECT, said)


def remarks(params: TaskParams, called: Callable[[str], str]) -> Iterator[str]:
    """`called`: what the submitter calls a parameter."""
    for name, is_there, lacking in _NEEDS:
        if params.given(name) and params.raw[name] not in (False, 0, "") and not is_there(params):
            yield f"{called(name)} has no effect {lacking}."
    for name in ("nEvents", "nEventsPerJob") if params.flag("noInput") and params.names("pfnList") else ():
        if params.whole(name):
            read = f"jobs read the files of {called('pfnList')}, which are not counted by events"
            yield f"{called(name)} has no effect: {read}."


def _names_files(params: TaskParams) -> bool:
    return bool(params.text("loadXML")) or any(item.raw.get("files") for item in params.items)


def _is_production(params: TaskParams) -> bool:
    return params.task_type == "prod" or params.prod_source_label in PRODUCTION_LABELS


def _numbers_events(params: TaskParams) -> bool:
    return kind_of(params) is not None or params.flag(FINE) or any(params.whole(name) for name in _DIVIDE)


def _aligns(params: TaskParams) -> bool:
    if params.text("orderInputBy") != "eventsAlignment":
        return True
    by_events = params.whole("nEventsPerJob") or (
        params.whole("tgtNumEventsPerJob") and not params.whole("nFilesPerJob")
    )
    return bool(by_events) and not params.flag("noInput")


_NEEDS: Final[tuple[tuple[str, Callable[[TaskParams], bool], str], ...]] = (
    ("noWaitParent", has_parent, "without parent_tid, which names the parent"),
    ("useExhausted", _is_production, "but for production tasks"),
    ("umNameAtEnd", lambda params: params.flag("mergeOutput"), "without mergeOutput: the task has no unmerged files"),
    ("onlyTagsForFC", lambda params: bool(params.text("container_name")), "without container_name"),
    ("cloudAsVO", lambda params: bool(params.text("cloud")), "without cloud"),
    ("useInFilesWithNewAttemptNr", _names_files, "where no item names files"),
    ("inFilePosEvtNum", _numbers_events, "where jobs take whole files: give nEventsPerJob"),
    ("orderInputBy", _aligns, "where jobs are not made by events: give nEventsPerJob, and datasets to read"),
)
"""Each with what has to be there, and what is said without it, after "has no effect"."""
