"""Inputs that are to be read: which tasks have them, and the sentences on what a task awaits or why it takes no file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Sum

from jedisite.database.sql import sql_time
from jedisite.vocabulary.words import plural
from tasks_app.configured import timeout_limits
from tasks_app.ddm import data_management
from tasks_app.ddm.base import UnknownDatasetError
from tasks_app.domain.states import DatasetStatus, TaskStatus
from tasks_app.inputs import input_wishes, makers
from tasks_app.inputs.file_groups import lacking_files, releases_blocks
from tasks_app.inputs.input_wishes import Feeding
from tasks_app.inputs.removed_files import all_removed
from tasks_app.inputs.rules.bunches import bunch_in_words
from tasks_app.inputs.rules.selection import select, why_none
from tasks_app.inputs.used_files import KEY as SKIPS_USED
from tasks_app.inputs.used_files import all_are_used, processed_by
from tasks_app.models import Dataset
from tasks_app.models.dataset import INPUT_TYPES, TO_BE_FED
from tasks_app.params import clientwords
from tasks_app.params.dataset_attributes import Attributes
from tasks_app.params.kinds import names_of

LOOKED_AT = 50_000
"""In so many files it is looked up which pattern takes none of them."""
LOOKED_UP = 200
"""Files of which the makers are looked up."""
MOST_NAMED = 3
"""Datasets that a sentence names."""
GROWING_IN = (TaskStatus.DEFINED, TaskStatus.READY, TaskStatus.SCOUTING, TaskStatus.RUNNING)
_INPUTS = ", ".join(f"'{kind}'" for kind in INPUT_TYPES)
_TO_BE_FED = ", ".join(f"'{status}'" for status in TO_BE_FED)

BEGUN = f"""EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type IN ({_INPUTS})
            AND d.nfiles > 0 AND (d.status IS NULL OR d.status IN ({_TO_BE_FED})))"""  # noqa: S608 - constants of ours
"""An input has a part of its rows."""

# A defined task that only waits for its datasets to grow is looked at when it is time for that.
HAS_WORK = f"""
(EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type IN ({_INPUTS})
            AND (d.status IS NULL OR d.status IN ({_TO_BE_FED})))
 OR NOT EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type = 'input' AND d.state = 'mutable'))
"""  # noqa: S608 - constants of ours


GROWING = """EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.state = 'mutable'
                 AND d.type = 'input' AND d.statecehcktime < %(checked_before)s)"""


def growing_by(now: datetime) -> dict[str, Any]:
    """The values of GROWING: datasets that were looked at before are due."""
    return {"checked_before": now - timeout_limits.limit("dataset.growing")}


def forgotten(now: datetime) -> str:
    """SQL of tasks `t` that have not moved for long and have an input that waits so long to be fed."""
    before = sql_time(now - timeout_limits.limit("dataset.forgotten"))
    return f"""t.modificationtime <= {before} AND EXISTS (
        SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type IN ('input', 'pseudo_input')
           AND d.status IN ('defined', 'toupdate') AND d.modificationtime <= {before})"""  # noqa: S608 - a literal of ours


def inputs_of(task_id: int) -> list[Dataset]:
    """Masters before secondaries: how long a sequence of numbers is may depend on its master."""
    found = Dataset.objects.of_task(task_id).filter(type__in=INPUT_TYPES).exclude(status=DatasetStatus.REMOVED)
    return sorted(found, key=lambda d: (d.master_id is not None, d.list_position, d.id))


def totals(task_id: int) -> tuple[object, ...]:
    """What a look may change: the files known and released, and which datasets still grow."""
    sums = Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES).aggregate(
        files=Sum("files"), released=Sum("files_to_be_used"), missing=Sum("files_missing")
    )
    growing = Dataset.objects.filter(task_id=task_id, state="mutable").count()
    return (*sums.values(), growing)


def why_nothing(task: Feeding, masters: list[Dataset]) -> str:
    """Why there is no input: it was removed, the dataset has no files, or none that the task takes."""
    if removed := all_removed([task.id]):
        return removed[task.id]
    if used := _all_used(task, [dataset for dataset in masters if dataset.type == "input"]):
        return used
    for dataset in masters:
        with suppress(UnknownDatasetError):
            if dataset.type == "input" and (there := data_management().describe(dataset.name).files):
                return _nothing_taken(task, dataset, there)
    if masters and all(dataset.state == "missing" for dataset in masters):
        names = ", ".join(dataset.name for dataset in masters[:MOST_NAMED])
        more = f" and {len(masters) - MOST_NAMED} more" if len(masters) > MOST_NAMED else ""
        does = "does" if len(masters) == 1 else "do"
        return f"the input {names}{more} {does} not exist, and the task has no other (ignoreMissingInDS)"
    return "the primary input dataset is empty"


def _all_used(task: Feeding, masters: list[Dataset]) -> str:
    """Why the task has no input where other tasks have processed all that it selects; "" when that is not the cause."""
    others = [int(name) for name in names_of(task.raw.get(SKIPS_USED))]
    selected: set[str] = set()
    with suppress(UnknownDatasetError):
        if not others or sum(data_management().describe(row.name).files for row in masters) > LOOKED_AT:
            return ""
        for row in masters:
            wishes = input_wishes.wanted(task, row, is_sliced=False)
            wishes = replace(wishes, used=frozenset(), most_files=None, most_events=None)
            pages = select(data_management().list_files(row.name, LOOKED_AT), wishes)
            selected.update(file.lfn for page in pages for file in page)
    key = clientwords.option_of(SKIPS_USED, task.raw) if clientwords.is_from_client(task.raw) else SKIPS_USED
    return all_are_used(selected, [row.name for row in masters], processed_by(others), key)


def _nothing_taken(task: Feeding, dataset: Dataset, there: int) -> str:
    """Why a task takes none of the files that are there: a pattern that fits none of them, else all that may be the cause."""
    item = input_wishes.item_of(task, dataset)
    pages = data_management().list_files(dataset.name, LOOKED_AT) if there <= LOOKED_AT else ()
    lfns = [file.lfn for page in pages for file in page]
    given = Attributes.parse(dataset.attributes)
    if not item.get("files"):
        why = why_none(
            [lfns], item.get("include"), item.get("exclude"), dataset.name, given.offset, clientwords.quoting(task.raw)
        )
        if why:
            return "; ".join(f"{clientwords.option_of_input(item, key, task.raw)} {said}" for key, said in why)
    whose = f"of the {there} files of {dataset.name} none is" if there > 1 else f"the file of {dataset.name} is not"
    such = f"; there is, for example, {lfns[0]}" if there > 1 and lfns else ""
    keys = [
        key
        for key in ("include", "exclude", "files", "offset")
        if item.get(key) not in (None, "", 0, clientwords.ADDED)
    ]
    keys += [SKIPS_USED] if task.raw.get(SKIPS_USED) else []
    said = ", ".join(clientwords.option_of_input(item, key, task.raw) for key in keys)
    return f"{whose} selected by the task's options for it{f' ({said})' if said else ''}{such}"


def what_is_awaited(task: Feeding, growing: list[Dataset]) -> str:
    """What a task waits for whose input may still get files."""
    held = "; its workflow holds the task until the command release" if task.rule.flag("WH") else ""
    return _what_may_come(task, growing[0]) + held


def _lacked(lacking: list[str], there: int) -> str:
    """Which files groups wait for, and what becomes of those that make them."""
    more = f" and {len(lacking) - MOST_NAMED} more" if len(lacking) > MOST_NAMED else ""
    are = "is" if there == 1 else "are"
    before = f"the {plural(there, 'file')} of its groups that came so far {are} processed, and " if there else ""
    short = makers.not_done_of(makers.of_files(lacking[:LOOKED_UP]))
    helps = ": retry that one" if short and short.status != TaskStatus.BROKEN else ""
    said = f"; {short.how}{helps}" if short else ""
    return f"{before}its groups wait for {', '.join(lacking[:MOST_NAMED])}{more}{said}"


def _what_may_come(task: Feeding, dataset: Dataset) -> str:
    waiting = dataset.files - dataset.files_to_be_used
    if waiting:
        whose = f"{plural(waiting, 'new file')} of {dataset.name}"
        waits = "waits" if waiting == 1 else "wait"
        if task.status == TaskStatus.SCOUTING:
            return f"{whose} {waits} until the scout jobs are judged"
        if task.rule.flag("RG"):
            return f"{whose} {waits} until all files of their groups are there"
        if releases_blocks(task, dataset):
            return f"{whose} {waits} until a later luminosity block begins, or until the dataset is closed"
        enough = bunch_in_words(task.rule, to_scout=task.rule.get_int("US") == 2)
        maker = makers.still_at_it([dataset.name], task.id).get(dataset.name)
        over = f"task {maker}, which makes the dataset, has ended" if maker else "the dataset is closed"
        return f"{whose} {waits} until there are {enough}, or until {over}"
    if task.rule.flag("RG") and (lacking := lacking_files(task.raw, task.id)):
        return _lacked(lacking, dataset.files)
    if dataset.files:
        files, are = ("only file", "is") if dataset.files == 1 else (f"{dataset.files} files", "are")
        return f"the {files} that {dataset.name} has so far {are} processed; it may still get more"
    return f"{dataset.name} has no files yet; it may still get some"
