"""How the files of a master dataset become ranges of events, when a task counts events inside files.

A dataset that grows is cut on from where it ended: ranges that are stored stay as they are, whatever the names of the
files that come later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jedisite.database.sql import hot_cursor
from tasks_app.ddm.base import FileInfo
from tasks_app.inputs.file_rows import Record
from tasks_app.inputs.input_wishes import stored_names
from tasks_app.models import Dataset
from tasks_app.params.splitrule import SplitRule
from tasks_app.splitting.slicing import Slicer, SourceFile, without_short_tails


@dataclass(frozen=True, slots=True)
class Slicing:
    """How a task cuts: events of a slice, whether slices are even in each file, and the events of a file.

    `per_file` None means that data management says how many events a file has. With `real`, it says so even when
    `per_file` is given. `skip_short` leaves out what does not fill a slice.
    """

    per_slice: int
    even: bool
    per_file: int | None
    real: bool
    skip_short: bool

    def events_of(self, file: FileInfo) -> int:
        if self.per_file and not (self.real and file.events):
            return self.per_file
        return file.events or 0


def slice_size(rule: SplitRule) -> int | None:
    """Events of a slice: the smallest number that can be handed out, else those of a job."""
    return rule.get_int("DY") or rule.get_int("NE") or None


def is_even(raw: dict[str, Any]) -> bool:
    """Whether the slices of each file are even: with a number of events to aim at, and none that is demanded."""
    return bool(raw.get("tgtNumEventsPerJob")) and not raw.get("nEventsPerJob") and not raw.get("nFilesPerJob")


def slicing_of(rule: SplitRule, raw: dict[str, Any]) -> Slicing | None:
    """How a task cuts its files; None when whole files make jobs. Jobs of several whole files need no ranges."""
    size, per_file, real = slice_size(rule), rule.get_int("EI") or None, rule.flag("UE")
    if not size or not (per_file or real) or (per_file and not real and size >= per_file):
        return None
    return Slicing(size, is_even(raw), per_file, real, bool(raw.get("skipShortInput")))


class Cutter:
    """Cuts pages of files of a dataset; files in `stored` are passed over.

    `is_over`: the task has all the events that it asked for. `first`: the number of the first event of each file, where
    events are numbered inside of files; None where they are numbered over the whole dataset.
    """

    def __init__(self, slicing: Slicing, slicer: Slicer, stored: frozenset[str], first: int | None = None) -> None:
        self._slicing, self._slicer, self._stored, self._first = slicing, slicer, stored, first

    @property
    def is_over(self) -> bool:
        return self._slicer.is_over

    def pieces(self, file: FileInfo) -> int:
        """About how many records come of a file."""
        return max(1, -(-self._slicing.events_of(file) // self._slicing.per_slice))

    def __call__(self, page: list[FileInfo]) -> Iterator[Record]:
        slicing = self._slicing
        by_name = {file.lfn: file for file in page if file.lfn not in self._stored}
        sources: Any = (SourceFile(f.lfn, slicing.events_of(f), f.lumi_block) for f in by_name.values())
        if not slicing.skip_short:
            # Nobody knows what is in them, so they stay whole.
            yield from (Record(file) for file in by_name.values() if not slicing.events_of(file))
        else:
            real = (SourceFile(f.lfn, f.events or slicing.events_of(f), f.lumi_block) for f in by_name.values())
            sources = without_short_tails(real, slicing.per_slice, slicing.per_file)
        for piece in self._slicer.cut(sources):
            file = by_name[piece.lfn]
            events = slicing.events_of(file)
            first = piece.first_event if self._first is None else self._first + (piece.start_event or 0)
            yield Record(file._replace(events=events), piece.start_event, piece.end_event, first)


def slicer_of(dataset: Dataset, rule: SplitRule, raw: dict[str, Any]) -> Cutter | None:
    """What cuts pages of files of a dataset; None when its files stay whole. Files that are stored are passed over."""
    slicing = slicing_of(rule, raw) if dataset.master_id is None else None
    if slicing is None:
        return None
    slicer = _stored(dataset, slicing, rule, raw)
    return Cutter(slicing, slicer, stored_names(dataset), slicer.first_event if rule.flag("IF") else None)


_LAST = """
WITH last AS (SELECT lumiblocknr FROM jedi_dataset_contents WHERE jeditaskid = %(task)s AND datasetid = %(dataset)s
               ORDER BY fileid DESC LIMIT 1),
block AS (SELECT coalesce(max(fileid), 0) AS before FROM jedi_dataset_contents
           WHERE jeditaskid = %(task)s AND datasetid = %(dataset)s
             AND lumiblocknr IS DISTINCT FROM (SELECT lumiblocknr FROM last))
SELECT coalesce(sum(endevent - startevent + 1), 0)::bigint,
       coalesce(sum(endevent - startevent + 1) FILTER (WHERE fileid > before), 0)::bigint, (SELECT lumiblocknr FROM last)
  FROM jedi_dataset_contents, block WHERE jeditaskid = %(task)s AND datasetid = %(dataset)s
"""


def _stored(dataset: Dataset, slicing: Slicing, rule: SplitRule, raw: dict[str, Any]) -> Slicer:
    """A slicer that goes on behind the ranges that are stored."""
    by_block = rule.flag("RL")
    most = raw.get("nEvents")
    slicer = Slicer(
        slicing.per_slice, (rule.get_int("FT") or 0) + 1, slicing.even, int(most) if most else None, by_block
    )
    if dataset.files or dataset.files_missing:
        with hot_cursor() as cursor:
            cursor.execute(_LAST, {"task": dataset.task_id, "dataset": dataset.id})
            used, in_block, lumiblock = cursor.fetchone() or (0, 0, None)
        slicer.used, slicer.lumiblock = used, lumiblock
        slicer.begun = (in_block if by_block else used) % slicing.per_slice
    return slicer
