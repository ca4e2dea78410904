"""Which group each file of an input belongs to, its boundary: from `loadXML`, from `boundaryID` of listed files, or the file's
luminosity block. And how a listing becomes records group by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from jedisite.vocabulary.words import plural
from tasks_app.ddm.base import FileInfo
from tasks_app.inputs.file_rows import Record
from tasks_app.inputs.input_wishes import Feeding, item_of
from tasks_app.models import Dataset, File
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.job_groups import MOST_FILES, JobGroups, bare, read_groups
from tasks_app.params.splitrule import SplitRule

Numbers = Callable[[FileInfo], Sequence[int]]
WHOLE: Final = 3
"""From this value of GB on, a group is one job."""


class UngroupedError(ValueError):
    """The files cannot be grouped: the sentence says which and why."""


def groups_of_xml(raw: Mapping[str, Any]) -> JobGroups | None:
    """The groups of `loadXML`; None without it."""
    xml = raw.get("loadXML")
    return read_groups(str(xml)) if xml else None


def has_whole_groups(rule: SplitRule) -> bool:
    """Whether a group of files is one job."""
    return (rule.get_int("GB") or 0) >= WHOLE


def are_whole(task: Feeding) -> bool:
    return has_whole_groups(task.rule)


def numbers_of(task: Feeding, dataset: Dataset) -> Numbers | None:
    """Which groups a file belongs to; None for a dataset whose files belong to none."""
    if "GB" not in task.rule:
        return None
    groups = groups_of_xml(task.raw)
    if groups is not None and bare(dataset.name) in groups.many_times and dataset.master_id is not None:
        return None
    named = _named_groups(task, dataset)
    if named or groups is not None:
        return _listed(named)
    return _by_block if dataset.master_id is None else None


def _named_groups(task: Feeding, dataset: Dataset) -> Mapping[str, Sequence[int]]:
    """The groups of each file that the task names, by `loadXML` or by the list of the item."""
    groups = groups_of_xml(task.raw)
    if groups is not None:
        return groups.of_dataset(dataset.name)
    given: dict[str, list[int]] = {}
    files = item_of(task, dataset).get("files")
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict) and file.get("boundaryID") is not None:
            given.setdefault(str(file["lfn"]).rpartition(":")[2], []).append(int(file["boundaryID"]))
    return given


def complete_groups(task: Feeding, dataset: Dataset) -> list[int]:
    """The groups of which the books have every file that the task names."""
    named, stored = _named_groups(task, dataset), stored_records(dataset)
    incomplete = {number for lfn, own in named.items() for number in own if (lfn, number) not in stored}
    return sorted({number for own in named.values() for number in own} - incomplete)


def lacking_files(raw: Mapping[str, Any], task_id: int) -> list[str]:
    """The files that groups of `loadXML` name and the books have not, in order. One query with `loadXML`."""
    groups = groups_of_xml(raw)
    if groups is None:
        return []
    named = dict.fromkeys(lfn for group in groups.groups for lfns in group.files.values() for lfn in lfns)
    stored = set(File.objects.filter(task_id=task_id, type__in=INPUT_TYPES).values_list("lfn", flat=True))
    return [lfn for lfn in named if lfn not in stored]


def releases_blocks(task: Feeding, dataset: Dataset) -> bool:
    """Whether jobs get the files of a master that grows by whole luminosity blocks: a block is whole when a later one begins."""
    return dataset.master_id is None and (task.rule.flag("RP") or numbers_of(task, dataset) is _by_block)


def _listed(found: Mapping[str, Sequence[int]]) -> Numbers:
    return lambda file: found.get(file.lfn, ())


def _by_block(file: FileInfo) -> Sequence[int]:
    if file.lumi_block is None:
        raise UngroupedError(f"the file {file.lfn} has no luminosity block, by which groupBoundaryID groups files")
    return (file.lumi_block,)


def grouped(files: Iterable[FileInfo], numbers: Numbers, *, whole: bool) -> list[Record]:
    """A record of each file for each of its groups, group by group. Raises UngroupedError."""
    found = [Record(file, boundary=number) for file in files for number in dict.fromkeys(numbers(file))]
    found.sort(key=lambda record: (record.boundary or 0, record.file.lfn))
    if whole and found:
        boundary, most = Counter(record.boundary for record in found).most_common(1)[0]
        if most > MOST_FILES:
            raise UngroupedError(
                f"the group {boundary} has {plural(most, 'file')}, and a group is one job, which reads at most {MOST_FILES}"
            )
    return found


def stored_records(dataset: Dataset) -> frozenset[tuple[str, int | None]]:
    """Names and groups of the files that the books have of an input."""
    stored = File.objects.filter(task_id=dataset.task_id, dataset_id=dataset.id)
    return frozenset(stored.values_list("lfn", "boundary_id"))


def new_pages(
    records: Sequence[Record], stored: Collection[tuple[str, int | None]], portion: int
) -> Iterator[list[Record]]:
    """The records that are not stored yet, in portions."""
    new = [record for record in records if (record.file.lfn, record.boundary) not in stored]
    return (new[at : at + portion] for at in range(0, len(new), portion))
