"""Input files that are missing: the books have them, and they could not be brought from tape. They count as not processed.

Files that are `lost` are another thing: their dataset has them no longer, and the task has all that there is without them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple, Protocol

from jedisite.database.sql import hot_cursor, numbers
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import FileStatus
from tasks_app.models import File

CANCELLED: Final = "it was cancelled"


class Missing(NamedTuple):
    files: int = 0
    events: int = 0


class Counted(Protocol):
    """What a dataset says of itself."""

    id: int
    files_missing: int


def missing_of(datasets: Iterable[Counted]) -> dict[int, Missing]:
    """What is missing of each of these datasets. One query, and none where all is there."""
    ids = [dataset.id for dataset in datasets if dataset.files_missing]
    if not ids:
        return {}
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT c.datasetid, count(*), sum(coalesce(c.endevent - c.startevent + 1, c.nevents, 0))
                 FROM jedi_datasets d JOIN jedi_dataset_contents c USING (jeditaskid, datasetid)
                WHERE d.datasetid = ANY(%s::bigint[]) AND c.status = 'missing' GROUP BY 1""",
            [numbers(ids)],
        )
        return {dataset: Missing(int(files), int(events)) for dataset, files, events in cursor.fetchall()}


def total(found: Collection[Missing]) -> Missing:
    return Missing(sum(one.files for one in found), sum(one.events for one in found))


def tasks_with_missing(tasks: Collection[int]) -> set[int]:
    """Those of these tasks with a missing file."""
    files = File.objects.filter(task_id__in=list(tasks), status=FileStatus.MISSING, type="input")
    return set(files.values_list("task_id", flat=True).distinct())


def reasons(files: Collection[int]) -> dict[int, str]:
    """Why each of these missing files could not be brought: what was said of the last attempt. One query."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT DISTINCT ON (c.fileid) c.fileid, q.error
                 FROM jedi_dataset_contents c
                 JOIN transfer_rules r ON r.jeditaskid = c.jeditaskid AND r.kind = 'stage'
                 JOIN transfer_requests q ON q.rule_id = r.id AND q.scope = c.scope AND q.lfn = c.lfn AND q.status <> 'done'
                WHERE c.fileid = ANY(%s::bigint[]) AND c.status = 'missing' ORDER BY c.fileid, q.id DESC""",
            [numbers(files)],
        )
        return {file: f"could not be staged from tape: {error or CANCELLED}" for file, error in cursor.fetchall()}


def why_missing(task_id: int, files: int) -> str:
    """`1 file could not be staged from tape: a.root: it is not in the storage at TAPE`: of the last that failed."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT c.lfn, q.error FROM jedi_dataset_contents c
                 JOIN transfer_rules r ON r.jeditaskid = c.jeditaskid AND r.kind = 'stage'
                 JOIN transfer_requests q ON q.rule_id = r.id AND q.scope = c.scope AND q.lfn = c.lfn AND q.status <> 'done'
                WHERE c.jeditaskid = %s AND c.status = 'missing' ORDER BY q.id DESC LIMIT 1""",
            [task_id],
        )
        row = cursor.fetchone()
    such = f"{', such as' if files > 1 else ':'} {row[0]}: {row[1] or CANCELLED}" if row else ""
    return f"{plural(files, 'file')} could not be staged from tape{such[:1000]}"
