"""The feeder: finds the files of a task's inputs and stores them. Growing datasets are looked at again and again."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from jedisite.agents import Pass, kick, owner
from tasks_app import moves
from tasks_app.ddm import data_management
from tasks_app.ddm.base import FileInfo, UnknownDatasetError
from tasks_app.feeding import FeedTarget, Record, feed
from tasks_app.generating.picker import is_tracked
from tasks_app.models import Dataset, File, Task, TaskParams
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.splitrule import SplitRule
from tasks_app.refining.attributes import Attributes
from tasks_app.splitting import slicing
from tasks_app.states import TASK_FINAL, DatasetStatus, TaskStatus

ME = "feeder"
LIMIT = 20
DEFAULT_ATTEMPTS = 3
PAGE = 50_000
MOST_FILES = 5_000_000
"""Files or ranges of one input dataset; feeding them takes a minute or two."""
CHECK_DAYS = 3650


class NotThereYetError(RuntimeError):
    """The input may still come: the sentence says what is waited for."""


class CannotFeedError(RuntimeError):
    """The input will never be complete: the sentence says why."""


@dataclass(frozen=True, slots=True)
class _Task:
    """What feeding reads of a task."""

    id: int
    fence: int
    rule: SplitRule
    raw: dict[str, Any]
    parent: str | None
    """Status of the parent task; None without one."""

    @property
    def parent_runs(self) -> bool:
        return self.parent is not None and self.parent not in TASK_FINAL


def run(limit: int = LIMIT) -> Pass:
    """Feed newly defined tasks, then look at datasets that grow."""
    claimed = moves.claim_tasks(owner(), [TaskStatus.DEFINED], limit)
    items = moves.for_each(claimed, _feed_task, by=ME)
    # The wait that the job generator sets while files are too few for a job must not keep more files away.
    growing = moves.claim_tasks(
        owner(), [TaskStatus.READY, TaskStatus.RUNNING], limit, condition=_growing(), even_waiting=True
    )
    items += moves.for_each(growing, _look_again, by=ME)
    return Pass(items, more=len(claimed) == limit or len(growing) == limit)


def _growing() -> str:
    seconds = int(settings.JEDI_OPEN_DATASET_INTERVAL_S)
    return f"""EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.state = 'mutable'
                 AND d.type = 'input' AND d.statecehcktime < clock_timestamp() - interval '{seconds} seconds')"""  # noqa: S608


def _read(task: Task, fence: int) -> _Task:
    parent = None
    if task.parent_id and task.parent_id != task.id:
        parent = Task.objects.filter(pk=task.parent_id).values_list("status", flat=True).first() or TaskStatus.BROKEN
    raw = TaskParams.objects.get(pk=task.id).params
    return _Task(task.id, fence, SplitRule.parse(task.split_rule), raw, parent)


def _feed_task(task_id: int, fence: int) -> None:
    task = _read(Task.objects.get(pk=task_id), fence)
    try:
        masters = 0
        for dataset in (
            Dataset.objects.of_task(task_id).filter(type__in=INPUT_TYPES).exclude(status=DatasetStatus.REMOVED)
        ):
            files = _feed_dataset(task, dataset)
            masters += files if dataset.master_id is None else 0
        if not masters and not _waits(task_id):
            raise CannotFeedError("the primary input dataset is empty")
    except NotThereYetError as exc:
        wait = timedelta(seconds=settings.JEDI_PENDING_RETRY_S)
        moves.set_aside(task_id, fence, by=ME, reason=str(exc), wait=wait, frozen=False)
        return
    except CannotFeedError as exc:
        moves.break_task(task_id, fence, by=ME, reason=str(exc))
        return
    reason = f"{masters} input files are known"
    moves.move_task(task_id, TaskStatus.READY, by=ME, reason=reason, fence=fence, error_dialog=None)


def _waits(task_id: int) -> bool:
    return Dataset.objects.filter(task_id=task_id, state="mutable").exists()


def _look_again(task_id: int, fence: int) -> bool:
    """Feed the growing datasets of a task. Returns whether anything is new."""
    task = _read(Task.objects.get(pk=task_id), fence)
    try:
        growing = list(Dataset.objects.filter(task_id=task_id, state="mutable", type="input"))
        before = sum(dataset.files for dataset in growing)
        after = sum(_feed_dataset(task, dataset) for dataset in growing)
        closed = not _waits(task_id)
    except (NotThereYetError, CannotFeedError) as exc:
        moves.release_task(task_id, fence, note=str(exc))
        return False
    moves.release_task(task_id, fence)
    news = after != before or closed
    if news:
        kick("job_generator", "post_processor")
    return news


def _feed_dataset(task: _Task, dataset: Dataset) -> int:
    """Feed one dataset. Returns its number of files."""
    target = FeedTarget(
        task.id,
        dataset.id,
        dataset.type,
        _max_attempt(task),
        task.raw.get("maxFailure"),
        is_tracked(dataset.attributes or ""),
        task.fence,
    )
    if dataset.type == "pseudo_input":
        _check_number(dataset, _expected_records(task))
        if dataset.status != DatasetStatus.READY:
            feed(target, _pseudo_pages(task, dataset), timezone.now(), slice_page=_sliced_already)
        _conclude(dataset, mutable=False)
        return _count(dataset.id)
    # Set before the look: whoever adds files meanwhile sets it back, and the next look comes at once.
    Dataset.objects.filter(pk=dataset.id).update(state_check_time=timezone.now())
    try:
        info = data_management().describe(dataset.name)
    except UnknownDatasetError as exc:
        if task.parent_runs:
            raise NotThereYetError(f"{exc}; the parent task may still make it") from exc
        raise CannotFeedError(str(exc)) from exc
    _check_number(dataset, info.files)
    mutable = info.open and (task.parent_runs or task.rule.flag("RC"))
    if task.parent_runs and not mutable and info.files == 0:
        raise NotThereYetError(f"the dataset {dataset.name} is empty and its parent task runs")
    if dataset.files != 0 or info.files != 0:
        pages = _chosen(task, dataset, data_management().list_files(dataset.name, PAGE))
        feed(target, pages, timezone.now(), slice_page=_slicer(task, dataset))
    _conclude(dataset, mutable=mutable)
    return _count(dataset.id)


def _check_number(dataset: Dataset, files: int) -> None:
    """Raise CannotFeedError when a dataset is so large that it would hold up everybody else's."""
    if files > MOST_FILES:
        raise CannotFeedError(f"the input {dataset.name} has {files} files or ranges, a task may have {MOST_FILES}")


def _expected_records(task: _Task) -> int:
    """Records that an input in name only will have at most."""
    events, per_job = task.raw.get("nEvents"), task.rule.get_int("NE")
    return max(int(task.raw.get("nFiles") or 0), -(-int(events) // per_job) if events and per_job else 0)


def _count(dataset_id: int) -> int:
    return int(Dataset.objects.values_list("files", flat=True).get(pk=dataset_id))


def _conclude(dataset: Dataset, *, mutable: bool) -> None:
    now = timezone.now()
    Dataset.objects.filter(pk=dataset.id).update(
        status=DatasetStatus.READY,
        state="mutable" if mutable else "closed",
        modification_time=now,
        state_check_expiration=now + timedelta(days=CHECK_DAYS) if mutable else None,
    )


def _max_attempt(task: _Task) -> int:
    if task.rule.flag("DR"):
        return 1
    return int(task.raw.get("maxAttempt") or DEFAULT_ATTEMPTS)


def _item_of(task: _Task, dataset: Dataset) -> dict[str, Any]:
    """The item of the parameters that named this dataset."""
    for item in task.raw.get("jobParameters") or ():
        names = str(item.get("dataset") or "").split(",")
        if dataset.name in (name.strip() for name in names) or (
            dataset.container_name and dataset.container_name in names
        ):
            return dict(item)
    return {}


def _names_given(files: Any) -> set[str]:
    return {f if isinstance(f, str) else str(f.get("lfn")) for f in files}


def _chosen(task: _Task, dataset: Dataset, pages: Iterable[list[FileInfo]]) -> Iterator[list[FileInfo]]:
    """The files that the task wants: include and exclude patterns, an explicit list, an offset, random order, a number."""
    item = _item_of(task, dataset)
    include, exclude = _patterns(item.get("include")), _patterns(item.get("exclude"))
    named = _names_given(item["files"]) if item.get("files") else None
    offset = Attributes.parse(dataset.attributes).offset
    most = int(task.raw["nFiles"]) if task.raw.get("nFiles") and dataset.master_id is None else None
    # Of a dataset that grows, names may come that stand before those that were taken.
    grew = most is not None and dataset.state == "mutable"
    taken = _stored_names(dataset) if grew else frozenset()
    seen = 0
    for page in pages:
        if include or exclude or named is not None:
            page = [
                f for f in page
                if (named is None or f.lfn in named)
                and (not include or any(p.search(f.lfn) for p in include))
                and not any(p.search(f.lfn) for p in exclude)
            ]  # fmt: skip
        first, seen = seen, seen + len(page)
        if offset > first:
            page = page[offset - first :]
        if grew:
            page = [f for f in page if f.lfn not in taken]
            page = page[: max(0, (most or 0) - len(taken))]
            taken |= {f.lfn for f in page}
        elif most is not None:
            room = most - max(0, max(first, offset) - offset)
            page = page[: max(0, room)]
        if item.get("random"):
            # The task's own order: the same at every look.
            random.Random(dataset.id).shuffle(page)
        if page:
            yield page


def _stored_names(dataset: Dataset) -> frozenset[str]:
    stored = File.objects.filter(task_id=dataset.task_id, dataset_id=dataset.id)
    return frozenset(stored.values_list("lfn", flat=True))


def _patterns(text: Any) -> list[re.Pattern[str]]:
    found = []
    for pattern in str(text or "").split(","):
        if pattern.strip():
            try:
                found.append(re.compile(pattern.strip()))
            except re.error as exc:
                raise CannotFeedError(f"{pattern.strip()!r} is not a regular expression: {exc}") from exc
    return found


def _slicer(task: _Task, dataset: Dataset) -> Callable[[list[FileInfo]], Iterator[Record]] | None:
    """How the files of a master are cut into ranges of events, when the task counts events inside files."""
    per_file, per_job = task.rule.get_int("EI"), task.rule.get_int("NE")
    counts = per_file or task.rule.flag("UE")
    if dataset.master_id is not None or not per_job or not counts or (per_file and per_job >= per_file):
        return None

    first, most = (task.rule.get_int("FT") or 0) + 1, task.raw.get("nEvents")
    used = 0

    def cut(page: list[FileInfo]) -> Iterator[Record]:
        nonlocal used
        by_name = {f.lfn: f for f in page}
        sources = [slicing.SourceFile(f.lfn, per_file or f.events or 0, f.lumi_block) for f in page]
        left = None if most is None else int(most) - used
        for piece in slicing.slice_events(sources, per_job, first_event=first + used, most_events=left):
            file = by_name[piece.lfn]
            yield Record(
                file._replace(events=per_file or file.events), piece.start_event, piece.end_event, piece.first_event
            )
            used += (piece.end_event or 0) - (piece.start_event or 0) + 1

    return cut


def _pseudo_pages(task: _Task, dataset: Dataset) -> Iterator[list[Any]]:
    """Records of inputs that exist in name only, by pages."""
    raw, rule = task.raw, task.rule
    page: list[Any] = []
    if dataset.name == "seq_number":
        names = slicing.sequence_names(Attributes.parse(dataset.attributes).offset, _sequence_length(task, dataset))
        records: Iterable[slicing.Slice] = (slicing.Slice(name) for name in names)
    else:
        records = slicing.pseudo_records(
            n_events=raw.get("nEvents"), per_slice=rule.get_int("NE"), n_files=raw.get("nFiles"),
            names=raw.get("pfnList") or (), first_event=(rule.get_int("FT") or 0) + 1,
        )  # fmt: skip
    whole = raw.get("nEvents")
    for piece in records:
        file = FileInfo(piece.lfn, "pseudo", "", 0, "", whole if piece.start_event is not None else None)
        page.append(Record(file, piece.start_event, piece.end_event, piece.first_event))
        if len(page) == PAGE:
            yield page
            page = []
    if page:
        yield page


def _sliced_already(page: list[Any]) -> Iterator[Record]:
    return iter(page)


def _sequence_length(task: _Task, dataset: Dataset) -> int:
    given = Attributes.parse(dataset.attributes)
    master = Dataset.objects.filter(pk=dataset.master_id).values_list("files", flat=True).first() or 0
    return slicing.sequence_length(
        num_records=given.whole("nr"), n_files=task.raw.get("nFiles"), n_events=task.raw.get("nEvents"),
        events_per_job=task.rule.get_int("NE"), events_per_file=task.rule.get_int("EI"),
        files_per_job=task.rule.get_int("NF"), master_files=master,
    )  # fmt: skip
