"""Feeding one input dataset: its files become records, are released to jobs, and are lost when they have vanished."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from datetime import datetime
from functools import partial
from itertools import chain, count
from typing import Any

from jedisite.vocabulary.patterns import PatternError
from jedisite.vocabulary.words import thousands
from tasks_app.ddm import data_management
from tasks_app.ddm.base import DatasetInfo, FileInfo, UnknownDatasetError
from tasks_app.domain.scopes import CONTAINER_MARK
from tasks_app.domain.states import TASK_FINAL, DatasetStatus, FileStatus, TaskStatus
from tasks_app.inputs import changes, makers, staging
from tasks_app.inputs.data_rights import logs_of_others
from tasks_app.inputs.event_inputs import with_events
from tasks_app.inputs.file_groups import (
    Numbers,
    UngroupedError,
    are_whole,
    complete_groups,
    grouped,
    new_pages,
    numbers_of,
    releases_blocks,
    stored_records,
)
from tasks_app.inputs.file_rows import Fed, FeedTarget, Record, feed
from tasks_app.inputs.input_wishes import Feeding, item_of, names_of_files, stored_names, wanted
from tasks_app.inputs.replaced import in_their_place
from tasks_app.inputs.rules.bunches import chunks_to_wait, events_per_job, released_files, released_ranges
from tasks_app.inputs.rules.selection import select, without_attempt
from tasks_app.inputs.slicers import Cutter
from tasks_app.inputs.slices import (
    PAGE,
    SEQUENCE,
    expected_records,
    pseudo_pages,
    records_already,
    sequence_length,
    slicer_of,
)
from tasks_app.lifecycle import dataset_moves, standing
from tasks_app.models import Dataset, File
from tasks_app.models.dataset import CONSTITUENT, TO_BE_FED
from tasks_app.params.dataset_attributes import Attributes, is_tracked
from tasks_app.params.splitrule import SplitRule

MOST_NAMED = 3
PORTION = PAGE
"""Rows that a task may get in one turn, and about as many more as one file has ranges; then it is the turn of others."""
MOST_LISTED = 5_000_000
"""Files of a dataset that are looked through for those that a task takes."""


class NotThereYetError(RuntimeError):
    """The input may still come: the sentence says what is waited for. `frozen`: the wait counts against the task."""

    def __init__(self, sentence: str, *, frozen: bool = False) -> None:
        super().__init__(sentence)
        self.frozen = frozen


class CannotFeedError(RuntimeError):
    """The input will never be complete: the sentence says why."""


class NothingToDoError(RuntimeError):
    """There is no input, and the task said that this is all right (allowEmptyInput)."""


def needs_feeding(task: Feeding, dataset: Dataset) -> bool:
    """Whether a dataset has to be looked at: it is new, was asked to be updated, or grows."""
    if dataset.status is None or dataset.status in TO_BE_FED or dataset.state == "mutable":
        return True
    return dataset.name == SEQUENCE and sequence_length(task, dataset) > dataset.files


def feed_dataset(task: Feeding, dataset: Dataset, now: datetime, *, portion: int = PORTION) -> Fed:
    """Feed one dataset, or the next `portion` rows of it: then it is as it was before, and has more rows.

    Raises NotThereYetError, CannotFeedError or NothingToDoError when it cannot be used.
    """
    if dataset.type == "pseudo_input":
        if task.raw.get("periodic") and dataset.master_id is None:
            # Its agent makes the records, at their times.
            _conclude(dataset, now, mutable=True)
            return Fed()
        _check_number(task, dataset, expected_records(task, dataset))
        fed = feed(
            _target(task, dataset),
            pseudo_pages(task, dataset, portion),
            now,
            slice_page=records_already,
            portion=portion,
            is_new=True,
        )
        if not fed.cut:
            _conclude(dataset, now, mutable=False)
        return fed
    try:
        info = data_management().describe(dataset.name)
    except UnknownDatasetError as exc:
        _missing(task, dataset, str(exc), now)
        return Fed()
    if info.files > MOST_LISTED:
        most = f"the limit is {thousands(MOST_LISTED)}"
        raise CannotFeedError(f"the input {dataset.name} has {thousands(info.files)} files, and {most}")
    if no := logs_of_others([dataset.name], task.user).get(dataset.name):
        raise CannotFeedError(no)
    # What a workflow holds may get more files, which nobody announces: those that are there are not kept waiting for them.
    grows, held = _grows(task, info), task.rule.flag("WH")
    by_group = task.rule.flag("RG")
    mutable = grows or held
    if task.parent_runs and not mutable and info.files == 0:
        raise NotThereYetError(f"the dataset {dataset.name} is empty and its parent task runs")
    stages = staging.applies(task, dataset)
    first = FileStatus.STAGING if stages else FileStatus.PENDING if mutable or by_group else FileStatus.READY
    target = _target(task, dataset, first)
    again = _was_fed(dataset)
    fed, replacing = Fed(), in_their_place(dataset)
    if again or info.files:
        fed = _feed_files(task, dataset, target, now, portion, replacing)
    if fed.cut:
        return fed
    on_tape = staging.request(task, dataset, target) if stages else 0
    mutable = mutable or on_tape > 0 or any(replacing.values())
    has_groups = "GB" in task.rule
    absent = _absent(task, dataset) if has_groups or not mutable else ""
    if by_group:
        changes.release_groups(target, complete_groups(task, dataset))
    elif absent and task.status == TaskStatus.DEFINED and has_groups and (mutable or task.rule.flag("WI")):
        # No job can be made of a part of a group.
        raise NotThereYetError(f"{absent}; the task waits for all files of its groups", frozen=not mutable)
    if by_group or (mutable and (absent or (on_tape and (has_groups or releases_blocks(task, dataset))))):
        pass
    elif grows or on_tape or (held and task.status == TaskStatus.SCOUTING):
        _release_bunches(task, dataset, target)
    elif held or again or stages:
        changes.release(target)
    if absent and task.status == TaskStatus.DEFINED and not by_group:
        raise CannotFeedError(absent)
    # A task at work first ends what it has: then it is looked at again, and breaks with the sentence.
    _conclude(dataset, now, mutable=mutable or bool(absent))
    return fed


def _target(task: Feeding, dataset: Dataset, status: str = FileStatus.READY) -> FeedTarget:
    tracked = is_tracked(dataset.attributes or "")
    return FeedTarget(
        task.id, dataset.id, dataset.type, task.max_attempt, task.max_failure, tracked, task.fence, status
    )


def _check_number(task: Feeding, dataset: Dataset, rows: int) -> None:
    """Raise CannotFeedError when an input would have more rows in the books than it may."""
    if rows > task.most_records:
        fewer = (
            "use a larger nEventsPerJob"
            if task.rule.get_int("NE")
            else "divide it among several tasks (nFiles, offset)"
        )
        raise CannotFeedError(
            f"the input {dataset.name} has more pieces of work (files or ranges of events) than the "
            f"{thousands(task.most_records)} that a task may have: {fewer}"
        )


def _grows(task: Feeding, info: DatasetInfo) -> bool:
    """Whether files may come that the task is to wait for."""
    return (info.open and (task.parent_runs or task.rule.flag("RC"))) or _is_being_made(task, info)


def _is_being_made(task: Feeding, info: DatasetInfo) -> bool:
    """Whether another task, which nobody named as the parent, still writes the dataset, or is told to run again and will open
    it then: a part of it is not all that is meant."""
    if info.made_by_task in (None, task.id):
        return False
    return standing.foreseen_states([info.made_by_task]).get(info.made_by_task, TaskStatus.BROKEN) not in TASK_FINAL


def _feed_files(
    task: Feeding, dataset: Dataset, target: FeedTarget, now: datetime, portion: int, replacing: Iterable[str]
) -> Fed:
    """Store what is new in the listing, but for files `replacing` what the task has processed; of a dataset that was fed
    before, also see what is no longer in it, and what is back."""
    again = _was_fed(dataset)
    numbers = numbers_of(task, dataset)
    slicer = slicer_of(task, dataset) if numbers is None else None
    try:
        wishes = wanted(task, dataset, is_sliced=slicer is not None)
    except PatternError as exc:
        raise CannotFeedError(str(exc)) from exc
    everything = "ud" in Attributes.parse(dataset.attributes)
    pages: Iterable[list[FileInfo]] = data_management().list_files(dataset.name, PAGE, all_attempts=everything)
    seen: set[str] = set()
    if again:
        pages = _noting(pages, seen)
    chosen: Iterable[list[FileInfo]] = select(pages, wishes, PAGE)
    chosen = with_events(task, dataset, chosen, is_sliced=slicer is not None)
    number = count(dataset.files + 1)
    if numbers is not None:
        fed = _feed_groups(task, dataset, target, now, portion, chosen, numbers, number)
    else:
        counted = partial(_counted, task, dataset, slicer, number)
        portioned = _portioned(chosen, stored_names(dataset).union(replacing), slicer, portion)
        fed = feed(target, portioned, now, slice_page=counted, portion=portion)
    if fed.cut:
        return fed
    if again:
        lose = changes.lose_groups if are_whole(task) else changes.lose
        lose(target, changes.vanished(target, seen))
        if dataset.status == DatasetStatus.TOUPDATE and dataset.files_missing:
            changes.find_again(target, sorted(_lost_names(dataset, seen)), status=target.status)
    if dataset.name.endswith(CONTAINER_MARK):
        _name_constituents(dataset, target)
    return fed


def _feed_groups(
    task: Feeding,
    dataset: Dataset,
    target: FeedTarget,
    now: datetime,
    portion: int,
    pages: Iterable[list[FileInfo]],
    numbers: Numbers,
    places: Iterator[int],
) -> Fed:
    """Store what is new in the listing group by group, each file once for each of its groups."""
    try:
        records = grouped(chain.from_iterable(pages), numbers, whole=are_whole(task))
    except UngroupedError as exc:
        raise CannotFeedError(str(exc)) from exc

    def counted(page: list[Any]) -> Iterator[Record]:
        for record in page:
            _check_number(task, dataset, next(places))
            yield record

    pages_of_records: Iterable[list[Any]] = new_pages(records, stored_records(dataset), portion)
    return feed(target, pages_of_records, now, slice_page=counted, portion=portion)


def _portioned(
    pages: Iterable[list[FileInfo]], stored: frozenset[str], slicer: Cutter | None, portion: int
) -> Iterator[list[FileInfo]]:
    """The files that are not stored yet, in pages that make about as many rows as a portion, or less.

    The ranges of one file stay together. All pages are walked, whatever is taken of them.
    """
    for page in pages:
        part: list[FileInfo] = []
        rows = 0
        for file in page:
            if file.lfn in stored:
                continue
            pieces = slicer.pieces(file) if slicer else 1
            if part and rows + pieces > portion:
                yield part
                part, rows = [], 0
            part.append(file)
            rows += pieces
        if part and not (slicer and slicer.is_over):
            yield part


def _counted(
    task: Feeding, dataset: Dataset, slicer: Cutter | None, numbers: Iterator[int], page: list[FileInfo]
) -> Iterator[Record]:
    """The records of a page. Raises CannotFeedError when the input gets too many; then nothing of the page is stored."""
    for record in slicer(page) if slicer else map(Record, page):
        _check_number(task, dataset, next(numbers))
        yield record


def _absent(task: Feeding, dataset: Dataset) -> str:
    """Which files that the task names are in none of the datasets of their item, when none of these grows; "" without any."""
    item = item_of(task, dataset)
    named = None if isinstance(item.get("files"), str) else names_of_files(task, dataset, item)
    if not named:
        return ""
    inputs = Dataset.objects.filter(task_id=task.id, type="input").exclude(status=DatasetStatus.REMOVED)
    rows = [row for row in inputs if row.id == dataset.id or item_of(task, row) == item]
    if any(row.id != dataset.id and (row.state == "mutable" or row.status in (None, *TO_BE_FED)) for row in rows):
        return ""
    stored = File.objects.filter(task_id=task.id, dataset_id__in=[row.id for row in rows])
    there = frozenset(stored.values_list("lfn", flat=True))
    unknown = named - there
    if task.any_attempt:
        bases = frozenset(map(without_attempt, there))
        unknown = frozenset(lfn for lfn in unknown if without_attempt(lfn) not in bases)
    lacking = data_management().lacking([row.name for row in rows], sorted(unknown)) if unknown else {}
    if not lacking:
        return ""
    said = [f"{lfn} (did you mean {near}?)" if near else lfn for lfn, near in list(lacking.items())[:MOST_NAMED]]
    more = f" and {len(lacking) - MOST_NAMED} more" if len(lacking) > MOST_NAMED else ""
    where = dataset.name if len(rows) == 1 else f"any of the {len(rows)} datasets"
    are, them = ("is", "it") if len(lacking) == 1 else ("are", "them")
    return f"{', '.join(said)}{more} {are} not in {where}, though the task names {them}"


def _noting(pages: Iterable[list[FileInfo]], seen: set[str]) -> Iterator[list[FileInfo]]:
    for page in pages:
        seen.update(f.lfn for f in page)
        yield page


def _was_fed(dataset: Dataset) -> bool:
    return dataset.files != 0 or dataset.files_missing != 0


def _lost_names(dataset: Dataset, seen: Set[str]) -> set[str]:
    """Names of lost files that are there again, but for those whose group lacks another one still."""
    lost = File.objects.filter(task_id=dataset.task_id, dataset_id=dataset.id)
    rows = set(lost.filter(status__in=[FileStatus.LOST, FileStatus.MISSING]).values_list("lfn", "boundary_id"))
    lacking = {group for lfn, group in rows if lfn not in seen and group is not None}
    return {lfn for lfn, _ in rows if lfn in seen} - {lfn for lfn, group in rows if group in lacking}


def _name_constituents(dataset: Dataset, target: FeedTarget) -> None:
    """Each file of a container that is read as a whole says which dataset it came with; that has a row of its own."""
    rows = Dataset.objects.filter(task_id=dataset.task_id, type=CONSTITUENT, container_name=dataset.name)
    known = {row.name: row for row in rows}
    for name in data_management().constituents(dataset.name):
        row = known.get(name) or Dataset.objects.create(
            task_id=dataset.task_id,
            name=name,
            type=CONSTITUENT,
            container_name=dataset.name,
            status=DatasetStatus.READY,
            master_id=dataset.id,
            list_position=dataset.list_position,
            state="closed",
        )
        for page in data_management().list_files(name, PAGE):
            changes.name_constituent(target, [f.lfn for f in page], row.id)


def _release_bunches(task: Feeding, dataset: Dataset, target: FeedTarget) -> None:
    """Make as many files ready as fill bunches of jobs; of a secondary dataset all."""
    if dataset.master_id is not None:
        changes.release(target)
        return
    if task.status == TaskStatus.SCOUTING:
        return  # the scouts have their files; the others wait for the verdict
    if releases_blocks(task, dataset):
        changes.release_blocks(target)
    else:
        changes.release(target, None if "GB" in task.rule else _whole_bunches(task.rule, target))


def _whole_bunches(rule: SplitRule, target: FeedTarget) -> int:
    chunks = chunks_to_wait(rule, to_scout=rule.get_int("US") == 2)
    if events := events_per_job(rule):
        return released_ranges(changes.pending_events(target), chunks, events)
    return released_files(changes.pending_files(target), chunks, rule.get_int("NF"))


def _missing(task: Feeding, dataset: Dataset, sentence: str, now: datetime) -> None:
    """Data management does not know the dataset: the task waits, goes on without it, or cannot run."""
    if task.parent_runs:
        raise NotThereYetError(f"{sentence}; the parent task may still make it")
    if dataset.files:
        # It was there and is gone: what no job has yet is lost, what was made of it stays.
        target = _target(task, dataset)
        changes.lose(target, changes.vanished(target, ()))
        _conclude(dataset, now, mutable=False)
        Dataset.objects.filter(pk=dataset.id).update(state="missing")
        return
    if task.rule.flag("WI"):
        raise NotThereYetError(f"{sentence}; the task waits for it (waitInput)", frozen=True)
    if at_work := makers.still_at_it([dataset.name], task.id).get(dataset.name):
        raise NotThereYetError(f"{sentence}; it waits for task {at_work}, which makes it", frozen=True)
    if task.rule.flag("IM"):
        row = Dataset.objects.filter(pk=dataset.id)
        dataset_moves.move(row, DatasetStatus.FAILED, state="missing", modification_time=now)
        return
    if task.rule.flag("AE"):
        raise NothingToDoError(f"{sentence}; the task has nothing to do (allowEmptyInput)")
    if ended := makers.how_they_ended([dataset.name]).get(dataset.name):
        sentence += f"; {ended}"
    elif task.parent is not None:
        sentence += f"; the parent task {task.parent_id} is {task.parent} and makes nothing more"
    dataset_moves.move(Dataset.objects.filter(pk=dataset.id), DatasetStatus.BROKEN, modification_time=now)
    raise CannotFeedError(sentence)


def _conclude(dataset: Dataset, now: datetime, *, mutable: bool) -> None:
    dataset_moves.move(
        Dataset.objects.filter(pk=dataset.id),
        DatasetStatus.READY,
        state="mutable" if mutable else "closed",
        modification_time=now,
    )
