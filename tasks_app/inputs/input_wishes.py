"""What a task wants of its inputs: read from its parameters, its parent and the tasks whose files it leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tasks_app.configured.site_limits import most_records
from tasks_app.domain.states import TASK_FINAL, DatasetStatus, FileStatus, TaskStatus
from tasks_app.inputs.preprocessed import params_of
from tasks_app.inputs.rules.selection import Wanted, names_given, patterns
from tasks_app.inputs.used_files import processed_by
from tasks_app.lifecycle.attempts import DEFAULT_ATTEMPTS
from tasks_app.models import Dataset, File, Task
from tasks_app.models.dataset import INPUT_TYPES, OUTPUT_TYPES
from tasks_app.params.dataset_attributes import Attributes
from tasks_app.params.items import PLACEHOLDER
from tasks_app.params.job_groups import read_groups
from tasks_app.params.kinds import names_of
from tasks_app.params.splitrule import SplitRule


@dataclass(frozen=True, slots=True)
class Feeding:
    """What feeding reads of a task. `parent`: status of the parent task; None without one.

    `most_records`: rows that each of its inputs may have in the books.
    """

    id: int
    user: str
    fence: int
    status: str
    rule: SplitRule
    raw: dict[str, Any]
    parent_id: int | None
    parent: str | None
    most_records: int

    @property
    def parent_runs(self) -> bool:
        return self.parent is not None and self.parent not in TASK_FINAL

    @property
    def max_attempt(self) -> int:
        return 1 if self.rule.flag("DR") else int(self.raw.get("maxAttempt") or DEFAULT_ATTEMPTS)

    @property
    def max_failure(self) -> int | None:
        """None for 0, which older tasks may say: none of their inputs would ever be tried, or counted as failed."""
        return self.raw.get("maxFailure") or None

    @property
    def any_attempt(self) -> bool:
        """Whether a file that is named may have been made again under another number of an attempt."""
        return bool(self.raw.get("useInFilesWithNewAttemptNr"))

    @property
    def events_a_file(self) -> int | None:
        """Events that count for each file of the master, whatever is known of it."""
        return self.rule.get_int("EI")


def read(task: Task, fence: int) -> Feeding:
    has_parent = bool(task.parent_id) and task.parent_id != task.id
    parent = None
    if has_parent:
        parent = Task.objects.filter(pk=task.parent_id).values_list("status", flat=True).first() or TaskStatus.BROKEN
    return Feeding(
        task.id,
        task.user,
        fence,
        task.status,
        SplitRule.parse(task.split_rule),
        params_of(task.id),
        task.parent_id if has_parent else None,
        parent,
        most_records(task.vo),
    )


def item_of(task: Feeding, dataset: Dataset) -> dict[str, Any]:
    """The item of the parameters that named this dataset: by its name, or as one that was added to its stream."""
    of_stream: dict[str, Any] = {}
    for item in task.raw.get("jobParameters") or ():
        names = [name.strip() for name in str(item.get("dataset") or "").split(",")]
        if dataset.name in names or (dataset.container_name and dataset.container_name in names):
            return dict(item)
        if item.get("param_type") in INPUT_TYPES and dataset.stream_name in _streams(item):
            of_stream = of_stream or dict(item)
    return of_stream


def _streams(item: dict[str, Any]) -> list[str]:
    """The streams that the text of an item reads: `${IN}`, `${IN/L}`, `${IN,IN_2}`."""
    found = [name[2:-1].partition("/")[0] for name in PLACEHOLDER.findall(str(item.get("value") or ""))]
    return [stream for names in found for stream in names.split(",")]


def wanted(task: Feeding, dataset: Dataset, *, is_sliced: bool) -> Wanted:
    """The wishes for one dataset. Raises PatternError.

    Files that are stored already count against the numbers that the task gave. With `is_sliced` they are listed again,
    since where the ranges of new files begin depends on them.
    """
    item, given = item_of(task, dataset), Attributes.parse(dataset.attributes)
    most_files, most_events = _limits(task, dataset, given)
    taken: frozenset[str] = frozenset()
    if dataset.files and (most_files is not None or most_events is not None):
        taken = stored_names(dataset)
    aligned = task.raw.get("orderInputBy") == "eventsAlignment" and dataset.master_id is None
    return Wanted(
        produced=_produced(task.parent_id, dataset) if "cc" in given and task.parent_id else None,
        include=patterns(item.get("include")),
        exclude=patterns(item.get("exclude")),
        named=names_of_files(task, dataset, item),
        any_attempt=task.any_attempt,
        aligned_to=task.rule.get_int("NE") if aligned else None,
        offset=given.offset,
        sample=str(dataset.id) if "rd" in given else None,
        used=_used_by(task.raw.get("skipFilesUsedBy")) if dataset.master_id is None else frozenset(),
        taken=taken,
        with_taken=is_sliced,
        most_files=most_files,
        most_events=None if is_sliced else most_events,
        events_a_file=task.events_a_file,
    )


def names_of_files(task: Feeding, dataset: Dataset, item: dict[str, Any]) -> frozenset[str] | None:
    """The files that the task names one by one: in `loadXML`, in the list of the item, or in both; None when in neither."""
    listed = names_given(item["files"]) if item.get("files") else None
    xml = task.raw.get("loadXML")
    if not xml or dataset.type != "input":
        return listed
    of_groups = frozenset(read_groups(str(xml)).of_dataset(dataset.name))
    if not of_groups:
        return listed
    return of_groups if listed is None else listed & of_groups


def _limits(task: Feeding, dataset: Dataset, given: Attributes) -> tuple[int | None, int | None]:
    """How many more files and events the dataset may get. None: no limit."""
    files, events = task.raw.get("nFiles"), task.raw.get("nEvents")
    if dataset.master_id is not None:
        most = secondary_files(task, given)
        return (None if most is None else max(0, most - _known(dataset))), None
    # The numbers are those of the task: what its other masters have counts too.
    masters = Dataset.objects.filter(task_id=dataset.task_id, type__in=INPUT_TYPES, master_id=None).exclude(
        status=DatasetStatus.REMOVED
    )
    room_files = room_events = None
    if files:
        room_files = max(0, int(files) - sum(_known(master) for master in masters))
    if events:
        room_events = max(0, int(events) - sum(master.events or 0 for master in masters))
    return room_files, room_events


def _known(dataset: Dataset) -> int:
    """Files of a dataset: of those that are cut into ranges, one for all of its ranges."""
    if not dataset.files:
        return 0
    stored = File.objects.filter(task_id=dataset.task_id, dataset_id=dataset.id)
    if not stored.filter(start_event__isnull=False).exists():
        return dataset.files
    return (
        stored.exclude(status__in=[FileStatus.LOST, FileStatus.MISSING, FileStatus.REMOVED])
        .values("lfn")
        .distinct()
        .count()
    )


def secondary_files(task: Feeding, given: Attributes) -> int | None:
    """The files of a secondary dataset that a task with `nFiles` needs at most; None when that cannot be said.

    Files that every job gets, or that are used again, are not counted.
    """
    files = task.raw.get("nFiles")
    if not files or not given.keeps_track or "nosplit" in given or "repeat" in given or "er" in given:
        return None
    each_job = given.whole("np")
    most = int(files) * each_job if each_job else -(-int(files) * given.ratio // 1)
    per_file, per_job = task.rule.get_int("EI"), task.rule.get_int("NE")
    if per_job and per_file and per_file > per_job:
        return int(most) * -(-per_file // per_job)
    return None if per_job and task.rule.flag("UE") else int(most)


def stored_names(dataset: Dataset) -> frozenset[str]:
    """Names of the files that the books have of an input, also those that are lost."""
    if not dataset.files and not dataset.files_missing:
        return frozenset()
    stored = File.objects.filter(task_id=dataset.task_id, dataset_id=dataset.id)
    return frozenset(stored.values_list("lfn", flat=True))


def _produced(parent_id: int, dataset: Dataset) -> frozenset[str]:
    """Names that jobs of the parent have made in this dataset."""
    made = Dataset.objects.of_container(dataset.name).filter(task_id=parent_id, type__in=OUTPUT_TYPES)
    files = File.objects.filter(
        task_id=parent_id, dataset_id__in=list(made.values_list("id", flat=True)), status=FileStatus.FINISHED
    )
    return frozenset(files.values_list("lfn", flat=True))


def _used_by(tasks: Any) -> frozenset[str]:
    """Names of files that other tasks have processed whole."""
    return frozenset(lfn for _, lfn in processed_by(int(name) for name in names_of(tasks)))
