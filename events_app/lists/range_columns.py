"""Columns of the list of a task's event ranges. A row is a block; how many ranges it has stands beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db.models import Case, CharField, F, QuerySet, Value, When

from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.range_standing import NO_ATTEMPT
from jedisite.web.columns import Batch, Column, Columns, Row
from tasks_app.models import File, JobFile

STATE: Final = Case(
    When(status=EventStatus.READY, attempt__lte=0, then=Value(NO_ATTEMPT)),
    *(When(status=status, then=Value(status.word)) for status in EventStatus),
    output_field=CharField(),
)
"""The state in a word, as `word_of` says it."""
RANGES: Final = (F("max_event") - F("min_event")) / F("events_per_range") + 1
"""How many ranges a block has."""


def as_seen() -> QuerySet[Event]:
    """Blocks with their state in a word and the number of their ranges."""
    return Event.objects.annotate(state=STATE, ranges=RANGES)


def _files(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Names of the files. One query."""
    names = dict(File.objects.filter(pk__in={row["file_id"] for row in rows}).values_list("id", "lfn"))
    return {row["id"]: {"file": names.get(row["file_id"])} for row in rows}


def _zips(rows: Sequence[Row]) -> Mapping[Any, Row]:
    """Names of the zip files that hold the outputs. One query, where there are any."""
    wanted = {row["zip_row_id"] for row in rows if row["zip_row_id"]}
    names = dict(JobFile.objects.filter(pk__in=wanted).values_list("id", "lfn")) if wanted else {}
    return {row["id"]: {"zip": names.get(row["zip_row_id"])} for row in rows}


RANGE_COLUMNS: Final = Columns(
    Event,
    (
        Column("min_event", "First event", "number", help="the first event of the first range, from 1"),
        Column("max_event", "Last event", "number", help="the last event of the last range"),
        Column("ranges", "Ranges", "number", help="ranges of this block, which all are in the same state"),
        Column("state", "State", "status"),
        Column(
            "attempt",
            "Attempts left",
            "number",
            help="with the one that a job has now, or had last: the number of a range ends with it; of one that failed, the copy "
            "that is tried again has one less",
        ),
        Column(
            "job_id", "Owner", "id", help="the job that has the ranges; their jobset, while or when no job has had them"
        ),
        Column("event_offset", "Jobset", "id"),
        Batch((Column("file", "File", "name"),), _files, needs=("file_id",)),
        Column("file_id", "File number", "number_plain", shown=False),
        Column("error_code", "Error", "number_plain", help="what the pilot reported last"),
        Column("error_diag", "Details", "sentence"),
        Batch((Column("zip", "Zip file", "name", shown=False),), _zips, needs=("zip_row_id",)),
        Column("events_per_range", "Length", "number", shown=False, help="events of a range; the last may be shorter"),
        Column("is_jumbo", "Jumbo", "flag", shown=False, help="a jumbo job has, or had, the ranges"),
        Column("objstore_id", "Object store", "number_plain", shown=False),
        Column("id", "Row", "id", shown=False),
    ),
)
