"""Ranges of events and records that exist in name only: how the listing of an input becomes records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from jedisite.database.sql import hot_cursor
from tasks_app.ddm.base import FileInfo
from tasks_app.inputs import slicers
from tasks_app.inputs.file_rows import Record
from tasks_app.inputs.input_wishes import Feeding
from tasks_app.models import Dataset
from tasks_app.params.dataset_attributes import Attributes
from tasks_app.params.job_groups import read_groups
from tasks_app.params.kinds import names_of
from tasks_app.splitting import slicing

PAGE = 50_000
"""Files that are read from a listing at a time."""
SEQUENCE = "seq_number"


def slicer_of(task: Feeding, dataset: Dataset) -> slicers.Cutter | None:
    """How the files of a master are cut into ranges of events, when the task counts events inside files."""
    return slicers.slicer_of(dataset, task.rule, task.raw)


def expected_records(task: Feeding, dataset: Dataset) -> int:
    """Records that an input in name only will have at most."""
    if dataset.name == SEQUENCE:
        return sequence_length(task, dataset)
    if groups := _groups(task, dataset):
        return groups
    events, per_job = task.raw.get("nEvents"), slicers.slice_size(task.rule)
    return max(int(task.raw.get("nFiles") or 0), -(-int(events) // per_job) if events and per_job else 0)


def pseudo_pages(task: Feeding, dataset: Dataset, portion: int) -> Iterator[list[Any]]:
    """Records of inputs that exist in name only, by pages of a portion, from the first that is not stored yet."""
    raw, rule = task.raw, task.rule
    page: list[Any] = []
    if dataset.name == SEQUENCE:
        names = slicing.sequence_names(Attributes.parse(dataset.attributes).offset, sequence_length(task, dataset))
        more = islice(names, dataset.files + dataset.files_missing, None)
        records: Iterable[slicing.Slice] = (slicing.Slice(name) for name in more)
    elif groups := _groups(task, dataset):
        new = range(dataset.files + dataset.files_missing, groups)
        records = (slicing.Slice(f"{number:06d}:{slicing.PSEUDO_LFN}", boundary=number) for number in new)
    else:
        before = _before(dataset)
        records = slicing.pseudo_records(
            n_events=raw.get("nEvents"),
            per_slice=slicers.slice_size(rule),
            n_files=raw.get("nFiles"),
            names=names_of(raw.get("pfnList")),
            first_event=(rule.get_int("FT") or 0) + 1,
            even=slicers.is_even(raw),
            records_before=before.records,
            events_before=before.events,
        )
    whole = raw.get("nEvents")
    for piece in records:
        file = FileInfo(piece.lfn, "pseudo", "", 0, "", whole if piece.start_event is not None else None)
        page.append(Record(file, piece.start_event, piece.end_event, piece.first_event, piece.boundary))
        if len(page) == portion:
            yield page
            page = []
    if page:
        yield page


def _groups(task: Feeding, dataset: Dataset) -> int:
    """How many groups a task has that reads no files, of which each gets a record in name only; 0 without groups."""
    xml = task.raw.get("loadXML")
    return len(read_groups(str(xml)).groups) if xml and dataset.master_id is None else 0


class _Before(NamedTuple):
    """What an input in name only has: records without events of their own, and ranges of so many events from the first on."""

    records: int = 0
    events: int = 0


def _before(dataset: Dataset) -> _Before:
    """The two are told apart: a task that runs again with other parameters may have records of the other kind."""
    if not dataset.files and not dataset.files_missing:
        return _Before()
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT count(*) FILTER (WHERE startevent IS NULL), coalesce(max(endevent) + 1, 0)::bigint
                 FROM jedi_dataset_contents WHERE jeditaskid = %s AND datasetid = %s""",
            [dataset.task_id, dataset.id],
        )
        return _Before(*(cursor.fetchone() or ()))


def records_already(page: list[Any]) -> Iterator[Record]:
    return iter(page)


def sequence_length(task: Feeding, dataset: Dataset) -> int:
    """How many numbers the sequence of a task needs."""
    given = Attributes.parse(dataset.attributes)
    master = Dataset.objects.filter(pk=dataset.master_id).values_list("files", flat=True).first() or 0
    return slicing.sequence_length(
        num_records=given.whole("nr"),
        n_files=task.raw.get("nFiles"),
        n_events=task.raw.get("nEvents"),
        events_per_job=task.rule.get_int("NE"),
        events_per_file=task.rule.get_int("EI"),
        files_per_job=task.rule.get_int("NF"),
        master_files=master,
    )
