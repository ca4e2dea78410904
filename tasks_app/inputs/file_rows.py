"""Hot path: the files of a dataset become rows. COPY in, by pages; a repeated feed adds only what is new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from django.db import transaction

from jedisite.agents.passes import renew_lease
from jedisite.database.sql import copy_lines, copy_text, hot_cursor
from tasks_app.ddm.base import FileInfo
from tasks_app.lifecycle.claims import LostClaimError

COLUMNS = (
    "jeditaskid",
    "datasetid",
    "creationdate",
    "lfn",
    "guid",
    "type",
    "status",
    "fsize",
    "checksum",
    "scope",
    "attemptnr",
    "maxattempt",
    "nevents",
    "keeptrack",
    "startevent",
    "endevent",
    "firstevent",
    "failedattempt",
    "maxfailure",
    "lumiblocknr",
    "ramcount",
    "surl",
    "boundaryid",
)


class Record(NamedTuple):
    """What becomes one row: a file, or a range of its events (first and last inclusive, from 0), of a group."""

    file: FileInfo
    start_event: int | None = None
    end_event: int | None = None
    first_event: int | None = None
    boundary: int | None = None


@dataclass(frozen=True, slots=True)
class FeedTarget:
    """The dataset that is fed, and what all of its rows share. Only files that are `ready` are counted as to be used."""

    task_id: int
    dataset_id: int
    type: str
    max_attempt: int | None
    max_failure: int | None
    keep_track: bool
    fence: int
    status: str = "ready"


@dataclass(frozen=True, slots=True)
class Fed:
    """Rows and events that a feed has added. `cut`: it ended since it had added as many as it may, and there may be more."""

    files: int = 0
    events: int = 0
    cut: bool = False


def feed(
    target: FeedTarget,
    pages: Iterable[list[FileInfo]],
    now: datetime,
    *,
    slice_page: Callable[[list[FileInfo]], Iterator[Record]] | None = None,
    portion: int | None = None,
    is_new: bool = False,
) -> Fed:
    """Store the files of a dataset that are not stored yet and count them on it, one transaction a page.

    No page is begun once `portion` rows are added. With `is_new` nothing of the pages can be there already.
    A feed that was cut off is completed by the next one. Raises LostClaimError when the claim on the task is gone.
    """
    files = events = 0
    highest: tuple[str, int] | None = None
    for page in pages:
        if portion is not None and files >= portion:
            return Fed(files, events, cut=True)
        records = slice_page(page) if slice_page else map(Record, page)
        first, last = _span(page)
        # Behind all that this feed has stored in an empty dataset, nothing can be there already.
        fed, direct = _feed_page(target, records, now, is_new=is_new or (highest is not None and first > highest))
        highest = max(highest or last, last) if direct else None
        files += fed.files
        events += fed.events
    return Fed(files, events)


def _span(page: list[Any]) -> tuple[tuple[str, int], tuple[str, int]]:
    """The first and the last place of a page: names of files; of records, also the event that they start with."""
    places = [
        (item.file.lfn, -1 if item.start_event is None else item.start_event)
        if isinstance(item, Record)
        else (item.lfn, -1)
        for item in page
    ]
    return min(places, default=("", -1)), max(places, default=("", -1))


@transaction.atomic
def _feed_page(target: FeedTarget, records: Iterable[Record], now: datetime, *, is_new: bool) -> tuple[Fed, bool]:
    """Store a page. Also returns whether it was copied straight, since none of it could be there."""
    with hot_cursor() as cursor:
        hold(cursor, target.task_id, target.fence)
        rows = lines(target, records, now)
        before = _mark(cursor, target)
        if is_new or not before:
            copy_lines(cursor, "jedi_dataset_contents", COLUMNS, rows)
            return _count(cursor, target, before), True
        cursor.execute("CREATE TEMP TABLE IF NOT EXISTS feed_page (LIKE jedi_dataset_contents) ON COMMIT DELETE ROWS")
        cursor.execute("ALTER TABLE feed_page ALTER COLUMN fileid DROP NOT NULL")
        copy_lines(cursor, "feed_page", COLUMNS, rows)
        columns = ", ".join(COLUMNS)
        cursor.execute(
            f"""INSERT INTO jedi_dataset_contents ({columns})
                SELECT {columns} FROM feed_page n
                 WHERE NOT EXISTS (SELECT 1 FROM jedi_dataset_contents c
                                    WHERE c.jeditaskid = %s AND c.datasetid = %s AND c.lfn = n.lfn
                                      AND coalesce(c.startevent, -1) = coalesce(n.startevent, -1)
                                      AND coalesce(c.boundaryid, -1) = coalesce(n.boundaryid, -1))
                 ORDER BY n.boundaryid, n.lfn, n.startevent""",  # noqa: S608 - columns are the constant above
            [target.task_id, target.dataset_id],
        )
        return _count(cursor, target, before), False


def hold(cursor: psycopg.Cursor[Any], task_id: int, fence: int) -> None:
    """Lock the task's row and renew the lease if our claim on it still stands. Raises LostClaimError."""
    cursor.execute(
        "UPDATE jedi_tasks SET lockedtime = clock_timestamp() WHERE jeditaskid = %s AND fence = %s", [task_id, fence]
    )
    renew_lease()
    if cursor.rowcount == 0:
        raise LostClaimError(f"the claim on task {task_id} is gone")


def _mark(cursor: psycopg.Cursor[Any], target: FeedTarget) -> int:
    """The highest file id of the dataset before rows are added; 0 when it has none."""
    cursor.execute(
        "SELECT coalesce(max(fileid), 0) FROM jedi_dataset_contents WHERE jeditaskid = %s AND datasetid = %s",
        [target.task_id, target.dataset_id],
    )
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def _count(cursor: psycopg.Cursor[Any], target: FeedTarget, before: int) -> Fed:
    """Count the rows above `before` on the dataset."""
    cursor.execute(
        """WITH new AS (
               SELECT count(*) AS files, coalesce(sum(coalesce(endevent - startevent + 1, nevents, 0)), 0) AS events
                 FROM jedi_dataset_contents WHERE jeditaskid = %s AND datasetid = %s AND fileid > %s)
           UPDATE jedi_datasets d SET nfiles = nfiles + new.files,
                  nfilestobeused = nfilestobeused + CASE WHEN %s THEN new.files ELSE 0 END,
                  nevents = coalesce(nevents, 0) + new.events, modificationtime = clock_timestamp()
             FROM new WHERE d.datasetid = %s RETURNING new.files, new.events""",
        [target.task_id, target.dataset_id, before, target.status == "ready", target.dataset_id],
    )
    row = cursor.fetchone()
    return Fed(int(row[0]), int(row[1])) if row else Fed()


NULL = "\\N"


def _text(value: int | None) -> str:
    return NULL if value is None else str(value)


def lines(target: FeedTarget, records: Iterable[Record], now: datetime) -> Iterator[str]:
    """Each record as a line of COPY text."""
    head = f"{target.task_id}\t{target.dataset_id}\t{now.isoformat()}\t"
    tail_type = f"\t{target.type}\t{target.status}\t"
    attempts = f"\t0\t{_text(target.max_attempt)}\t"
    track = f"\t{int(target.keep_track)}\t"
    failures = f"\t0\t{_text(target.max_failure)}\t"
    for file, start, end, first, boundary in records:
        lfn, scope, guid, size, checksum, events, lumi, surl = file
        yield (
            f"{head}{copy_text(lfn)}\t{copy_text(guid)}{tail_type}{size}\t{copy_text(checksum)}\t{copy_text(scope)}{attempts}{_text(events)}{track}"
            f"{_text(start)}\t{_text(end)}\t{_text(first)}{failures}{_text(lumi)}\t0\t{copy_text(surl) if surl else NULL}\t"
            f"{_text(boundary)}\n"
        )
