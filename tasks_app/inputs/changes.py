"""Hot path: what happens to the stored files of inputs that grow or change, in sets. Their states change in
`lifecycle.file_availability`.

States of an input file before a job has it: `pending` while the bunch that it belongs to is incomplete, `ready` when
jobs may take it, `lost` when data management no longer has it. `nfiles` counts all but the lost ones, which
`nfilesmissing` counts; `nfilestobeused` counts those that jobs may take or have taken, so neither pending nor lost ones.

Every function runs in a transaction of its own, which holds the task's row: jobs are not made meanwhile. Order of
locks: task, contents, datasets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db import transaction

from jedisite.database.sql import hash_joins, hot_cursor, texts
from tasks_app.inputs.file_rows import FeedTarget, hold
from tasks_app.lifecycle import file_availability
from tasks_app.lifecycle.file_availability import HAS_ATTEMPT, OF_DATASET, WAITS, lose_where

# ruff: noqa: S608 - every piece is a constant of this module


def _values(target: FeedTarget, **more: Any) -> dict[str, Any]:
    return {"task": target.task_id, "dataset": target.dataset_id, **more}


def pending_files(target: FeedTarget) -> int:
    """How many files of the dataset are pending."""
    with hot_cursor() as cursor:
        cursor.execute(
            f"SELECT count(*) FROM jedi_dataset_contents WHERE {OF_DATASET} AND status = 'pending'", _values(target)
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def pending_events(target: FeedTarget) -> list[int]:
    """Events of the pending ranges, in the order in which jobs take them."""
    with hot_cursor() as cursor:
        cursor.execute(
            f"""SELECT coalesce(endevent - startevent + 1, nevents, 0) FROM jedi_dataset_contents
                 WHERE {OF_DATASET} AND status = 'pending' ORDER BY fileid""",
            _values(target),
        )
        return [int(number) for (number,) in cursor.fetchall()]


@transaction.atomic
def release(target: FeedTarget, count: int | None = None) -> int:
    """Make the first `count` pending files ready, all of them with None. Returns how many.

    They are taken in the order of their ids, so that none is left behind one that is released.
    """
    if count == 0:
        return 0
    with hot_cursor() as cursor:
        hold(cursor, target.task_id, target.fence)
        return file_availability.release(cursor, target.task_id, target.dataset_id, count)


@transaction.atomic
def release_groups(target: FeedTarget, groups: Sequence[int]) -> int:
    """Make the pending files of these groups ready, but of a group of which files are still brought to disk. Returns how many."""
    with hot_cursor() as cursor:
        hold(cursor, target.task_id, target.fence)
        return file_availability.release_groups(cursor, target.task_id, target.dataset_id, groups)


@transaction.atomic
def release_blocks(target: FeedTarget) -> int:
    """Make the pending files of all luminosity blocks ready but those of the last. Returns how many."""
    with hot_cursor() as cursor:
        hold(cursor, target.task_id, target.fence)
        return file_availability.release_blocks(cursor, target.task_id, target.dataset_id)


def vanished(target: FeedTarget, listed: Iterable[str]) -> list[str]:
    """Names of stored files that wait for a job and that data management no longer lists."""
    with hot_cursor() as cursor:
        cursor.execute(
            f"SELECT DISTINCT lfn FROM jedi_dataset_contents WHERE {OF_DATASET} AND {WAITS} AND {HAS_ATTEMPT}",
            _values(target),
        )
        waiting = {lfn for (lfn,) in cursor.fetchall()}
    return sorted(waiting.difference(listed))


@transaction.atomic
def lose(target: FeedTarget, lfns: Collection[str]) -> int:
    """Files of these names that wait for a job are lost. Returns how many records. Those that a job has stay its own."""
    if not lfns:
        return 0
    with hot_cursor() as cursor:
        hold(cursor, target.task_id, target.fence)
        return lose_where(
            cursor, target.task_id, target.dataset_id, "lfn = ANY(%(lfns)s::text[])", {"lfns": texts(lfns)}
        )


@transaction.atomic
def lose_groups(target: FeedTarget, lfns: Collection[str]) -> int:
    """The same of tasks whose groups are one job each: with a file of it, the whole group is lost, in all inputs of the task."""
    if not lfns:
        return 0
    with hot_cursor() as cursor:
        hold(cursor, target.task_id, target.fence)
        return file_availability.lose_groups(cursor, target.task_id, target.dataset_id, lfns)


@transaction.atomic
def find_again(target: FeedTarget, lfns: Collection[str], *, status: str) -> int:
    """Lost or missing files of these names are there again: they become ready or pending. Returns how many."""
    if not lfns:
        return 0
    with hot_cursor() as cursor:
        hold(cursor, target.task_id, target.fence)
        return file_availability.find_again(cursor, target.task_id, target.dataset_id, lfns, status=status)


@transaction.atomic
def keep_consistent(task_id: int, fence: int, dataset_ids: Sequence[int]) -> int:
    """Of datasets with consistent indices, files whose index is not in all of them are lost. Returns how many.

    The index of a file is the second and third field of its name.
    """
    if len(dataset_ids) < 2:
        return 0
    index = "split_part(lfn, '.', 2) || '.' || split_part(lfn, '.', 3)"
    listed = "status NOT IN ('lost', 'missing', 'removed')"
    with hot_cursor() as cursor:
        hold(cursor, task_id, fence)
        cursor.execute(
            f"""CREATE TEMP TABLE consistent_indices ON COMMIT DROP AS
                SELECT {index} AS index FROM jedi_dataset_contents
                 WHERE jeditaskid = %(task)s AND datasetid = ANY(%(datasets)s) AND {listed}
                 GROUP BY 1 HAVING count(DISTINCT datasetid) = %(number)s""",
            {"task": task_id, "datasets": list(dataset_ids), "number": len(dataset_ids)},
        )
        condition = f"{index} NOT IN (SELECT index FROM consistent_indices)"
        return sum(lose_where(cursor, task_id, dataset_id, condition, {}) for dataset_id in sorted(dataset_ids))


@transaction.atomic
def name_constituent(target: FeedTarget, lfns: Collection[str], constituent_id: int) -> None:
    """Files of these names came with this dataset of the container."""
    with hot_cursor() as cursor:
        hold(cursor, target.task_id, target.fence)
        with hash_joins(cursor):
            cursor.execute(
                f"""UPDATE jedi_dataset_contents c SET constituent_id = %(constituent)s
                      FROM unnest(%(lfns)s::text[]) n (lfn)
                     WHERE c.{OF_DATASET.replace("AND ", "AND c.")} AND c.lfn = n.lfn AND c.constituent_id IS NULL""",
                _values(target, lfns=texts(lfns), constituent=constituent_id),
            )
