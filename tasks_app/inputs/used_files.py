"""Files that other tasks have processed (skipFilesUsedBy): which they are, and what is said when they leave none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from django.db.models import Sum

from jedisite.vocabulary.patterns import PatternError
from jedisite.vocabulary.words import sentence, some
from tasks_app.ddm import data_management
from tasks_app.domain.states import FileStatus
from tasks_app.inputs.rules.selection import Wanted, patterns, select
from tasks_app.models import Dataset, File
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params import clientwords
from tasks_app.params.faults import Faults
from tasks_app.params.schema import TaskParams
from tasks_app.refining.layout import datasets_of

KEY: Final = "skipFilesUsedBy"
MOST_LOOKED_AT = 30_000
"""So often a name is held against a pattern at the door, and so many files of the other tasks are compared."""


class _Listed(NamedTuple):
    lfn: str
    events: int | None = None


def processed_by(tasks: Iterable[int]) -> set[tuple[int, str]]:
    """Files that these tasks have processed whole, each with its task: all of their records are finished."""
    ids = list(tasks)
    if not ids:
        return set()
    files = File.objects.filter(task_id__in=ids, type__in=INPUT_TYPES)
    done = set(files.filter(status=FileStatus.FINISHED).values_list("task_id", "dataset_id", "lfn"))
    left = set(files.exclude(status=FileStatus.FINISHED).values_list("task_id", "dataset_id", "lfn"))
    return {(task, lfn) for task, _, lfn in done - left}


def all_are_used(selected: Collection[str], datasets: Sequence[str], used: Iterable[tuple[int, str]], key: str) -> str:
    """Why a task has nothing to do that selects these files; "" when one of them is not among those `used`.

    >>> all_are_used(["a", "b"], ["lab.in"], [(7, "a"), (8, "b"), (9, "c")], "skipFilesUsedBy")
    'tasks 7, 8 have processed both selected files of lab.in already: skipFilesUsedBy leaves none'
    """
    names = set(selected)
    by = {(task, lfn) for task, lfn in used if lfn in names}
    if not names or {lfn for _, lfn in by} != names:
        return ""
    tasks = sorted({task for task, _ in by})
    who = f"task {tasks[0]} has" if len(tasks) == 1 else f"tasks {some(map(str, tasks))} have"
    what = {1: "the only selected file", 2: "both selected files"}.get(len(names), f"all {len(names)} selected files")
    where = datasets[0] if len(datasets) == 1 else f"the {len(datasets)} datasets"
    return f"{who} processed {what} of {where} already: {key} leaves none"


def check_left(params: TaskParams) -> None:
    """Raises ParamErrors when other tasks have processed all files that the task selects of inputs that get no more.

    What takes long to look at is left to the feeder, as is an offset, which leaves out more.
    """
    ids = [int(name) for name in params.names(KEY)]
    item = next((one for one in params.items if one.is_template and one.param_type == "input"), None)
    if not ids or item is None or params.flag("noInput") or params.flag("allowEmptyInput"):
        return
    named = frozenset(item.named_files)
    if item.raw.get("files") and (not named or params.flag("useInFilesWithNewAttemptNr")):
        return  # which files they are is seen when the dataset is read
    try:
        wishes = Wanted(
            include=patterns(item.text("include")), exclude=patterns(item.text("exclude")), named=named or None
        )
    except PatternError:
        return
    tests = 1 + len(wishes.include) + len(wishes.exclude)
    datasets = datasets_of(item, params)
    parts = data_management().names_in(datasets, MOST_LOOKED_AT // tests)
    if not parts or _files_of(ids) > MOST_LOOKED_AT:
        return
    listed = [_Listed(lfn) for part in parts for lfn in part]
    selected = {file.lfn for page in select([listed], wishes) for file in page}
    key = clientwords.option_of(KEY, params.raw) if clientwords.is_from_client(params.raw) else KEY
    if why := all_are_used(selected, datasets, processed_by(ids), key):
        faults = Faults()
        faults.add(KEY, "some file", sentence(f"{why}. To process them again, give no {key}"))
        faults.raise_if_any()


def _files_of(tasks: Sequence[int]) -> int:
    """How many files the books have of what these tasks read."""
    read = Dataset.objects.filter(task_id__in=tasks, type__in=INPUT_TYPES)
    return read.aggregate(files=Sum("files"))["files"] or 0
