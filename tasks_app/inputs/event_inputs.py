"""Numbers of events of inputs: files that jobs take by ranges of events have to have one, at the door and when they are fed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from jedisite.vocabulary.words import sentence
from tasks_app.ddm import data_management
from tasks_app.ddm.base import FileInfo, UnknownDatasetError
from tasks_app.inputs.input_wishes import Feeding
from tasks_app.inputs.rules.event_numbers import why_not_cut
from tasks_app.inputs.rules.event_warnings import asked_by_events, event_warning
from tasks_app.models import Dataset
from tasks_app.params.event_service import FINE, RULE, SWITCH, kind_of
from tasks_app.params.faults import Faults, join_path
from tasks_app.params.schema import TaskParams
from tasks_app.refining.layout import datasets_of

CHOOSING: Final = ("nFiles", "nEvents", "skipFilesUsedBy", "loadXML", "useInFilesWithNewAttemptNr")
OF_ITEM: Final = ("files", "include", "exclude", "offset", "random")
"""With these a task takes some files of a dataset only: which ones is seen when it is fed."""

MOST_COUNTED: Final = 5000
"""Files of which the door counts those without a number of events."""


class EventsUnknownError(RuntimeError):
    """A file cannot be cut into ranges of events: the sentence says why."""


def with_events(
    task: Feeding, dataset: Dataset, pages: Iterable[list[FileInfo]], *, is_sliced: bool
) -> Iterator[list[FileInfo]]:
    """The files of a listing with the number of events that the task gives for each of them; where jobs take ranges, all have
    one. Files that are cut into records (`is_sliced`) get theirs there.

    Raises EventsUnknownError.
    """
    said, is_master = task.events_a_file, dataset.master_id is None
    asks = is_master and "UC" not in task.rule and ("ES" in task.rule or task.rule.flag("FP"))
    leaves_short = is_sliced and bool(task.raw.get("skipShortInput"))
    for page in pages:
        for file in page if asks else ():
            if why := why_not_cut(file.lfn, file.events, said, leaves_short=leaves_short):
                raise EventsUnknownError(why)
        yield [f._replace(events=said) for f in page] if said and is_master and not is_sliced else page


def check_numbers(params: TaskParams) -> None:
    """Raises ParamErrors when the files of a task that takes them by ranges have no number of events, or fewer than it says.

    What takes some files of a dataset only, or many, is left to the feeder.
    """
    if kind_of(params) not in (SWITCH, FINE) or any(params.given(name) for name in CHOOSING):
        return
    item = next((one for one in params.items if one.is_template and one.param_type == "input"), None)
    if item is None or params.flag("noInput") or any(item.raw.get(name) for name in OF_ITEM):
        return
    said, faults = params.events_per_input, Faults()
    found = data_management().short_of_events(datasets_of(item, params), said)
    if found and (why := why_not_cut(*found, said, leaves_short=params.flag("skipShortInput"))):
        faults.add("nEventsPerInputFile" if said else join_path(item.where, "dataset"), RULE, sentence(why))
    faults.raise_if_any()


def doubts(params: TaskParams) -> list[str]:
    """What a task whose jobs are made by events is told of files without a number of events, when it is submitted.

    Of a task that takes some files of a dataset only: when no file has a number. Many files are left to the feeder.
    """
    raw = dict(params.raw)
    item = next((one for one in params.items if one.is_template and one.param_type == "input"), None)
    if not (asked := asked_by_events(raw)) or item is None or kind_of(params) in (SWITCH, FINE):
        return []
    datasets, known = datasets_of(item, params), data_management()
    if known.short_of_events(datasets, None) is None:
        return []
    try:
        if sum(known.describe(name).files for name in datasets) > MOST_COUNTED:
            return []
        events = [file.events for name in datasets for page in known.list_files(name) for file in page]
    except UnknownDatasetError:
        return []  # it may come, and is looked at when the task is fed
    chooses = any(params.given(name) for name in CHOOSING) or any(item.raw.get(name) for name in OF_ITEM)
    if chooses and any(events):
        return []
    said = event_warning(asked, len(events), sum(not one for one in events), raw)
    return [sentence(said)] if said else []
