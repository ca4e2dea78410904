"""How many files of its inputs jobs of a task may take (nfilestobeused): the scouts' share, or all that are there.

While US is 2 in the split rule, jobs may take only the scouts' share of each master; the verdict on them makes it 3, and a
task that is too small for scouts gets 1.
"""

from __future__ import annotations

from typing import Any

import psycopg
from django.db import transaction

from jedisite.database.sql import hot_cursor
from tasks_app.inputs.file_rows import hold
from tasks_app.inputs.rules.scout_share import CHUNKS, NO_SCOUTS, MasterFiles, release, will_scout
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.splitrule import SplitRule

NOT_THERE = "('pending', 'staging', 'missing', 'lost', 'removed')"
"""States of files that jobs cannot take now."""
NEVER_THERE = "('missing', 'lost', 'removed')"
SHARE_IS_OUT = """(t.splitrule ~ '(^|,)US=2(,|$)' AND EXISTS (
    SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL AND d.status <> 'removed'
       AND d.type IN ('input', 'pseudo_input') AND d.nfilestobeused < d.nfiles))"""
"""SQL on the row `t` of a task: files of it wait for the verdict on its scouts."""
MOST_RECORDS = 10_000
"""Records whose events are read to find the scouts' share."""


def masters_of(task_id: int) -> list[Dataset]:
    found = Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES, master_id=None).exclude(status="removed")
    return list(found.order_by("list_position", "id"))


@transaction.atomic
def release_scouts(task_id: int, fence: int, *, skip: bool = False) -> None:
    """Let jobs take the scouts' share of a task that is to scout, or everything if that is no more.

    Called by whoever holds the task when its files have become known or more; `skip`: the task has no scouts whatever
    it asked for. Raises LostClaimError.
    """
    with hot_cursor() as cursor:
        hold(cursor, task_id, fence)
        _release_share(cursor, task_id, skip=skip)


def release_scouts_again(task_id: int) -> None:
    """The same for a task that is tried again, in the transaction of whoever has locked it and opened its input: a
    task that had ended before its scouts were judged has given up what it had not released."""
    with hot_cursor() as cursor:
        _release_share(cursor, task_id, skip=False)


def _release_share(cursor: psycopg.Cursor[Any], task_id: int, *, skip: bool) -> None:
    rule = SplitRule.parse(Task.objects.values_list("split_rule", flat=True).get(pk=task_id))
    masters = masters_of(task_id)
    if not will_scout(rule) or not masters:
        return
    if not skip:
        share = release(rule, [_master_files(cursor, rule, master) for master in masters])
        _set_released(cursor, dict(share.files))
    if skip or not share.scouting:
        Task.objects.filter(pk=task_id).update(split_rule=str(rule.having("US", NO_SCOUTS)))


def _master_files(cursor: psycopg.Cursor[Any], rule: SplitRule, master: Dataset) -> MasterFiles:
    cursor.execute(
        f"""SELECT count(*) FILTER (WHERE status NOT IN {NEVER_THERE}), count(*) FILTER (WHERE status NOT IN {NOT_THERE})
              FROM jedi_dataset_contents WHERE jeditaskid = %s AND datasetid = %s""",  # noqa: S608 - constants of ours
        [master.task_id, master.id],
    )
    files, ready = cursor.fetchone() or (0, 0)
    events: tuple[int, ...] = ()
    if rule.get_int("NE") and not rule.get_int("NF"):
        cursor.execute(
            f"""SELECT coalesce(endevent - startevent + 1, nevents, 0) FROM jedi_dataset_contents
                 WHERE jeditaskid = %s AND datasetid = %s AND status NOT IN {NOT_THERE} ORDER BY fileid LIMIT %s""",  # noqa: S608
            [master.task_id, master.id, min(CHUNKS * (rule.get_int("NE") or 1), MOST_RECORDS)],
        )
        events = tuple(number for (number,) in cursor)
    blocks: tuple[int, ...] = ()
    if rule.flag("RP"):
        cursor.execute(
            f"""SELECT count(*) FROM jedi_dataset_contents WHERE jeditaskid = %s AND datasetid = %s
                   AND status NOT IN {NOT_THERE} GROUP BY lumiblocknr ORDER BY lumiblocknr""",  # noqa: S608
            [master.task_id, master.id],
        )
        blocks = tuple(number for (number,) in cursor)
    return MasterFiles(master.id, files, ready, master.state == "mutable", events, blocks=blocks)


def _set_released(cursor: psycopg.Cursor[Any], files: dict[int, int]) -> None:
    """Set how many files of each dataset jobs may take; never fewer than they took."""
    ids = sorted(files)
    cursor.execute("SELECT 1 FROM jedi_datasets WHERE datasetid = ANY(%s) ORDER BY datasetid FOR UPDATE", [ids])
    cursor.execute(
        """UPDATE jedi_datasets d SET nfilestobeused = greatest(n.files, d.nfilesused)
             FROM unnest(%s::bigint[], %s::bigint[]) n (id, files) WHERE d.datasetid = n.id""",
        [ids, [files[i] for i in ids]],
    )


def release_all(cursor: psycopg.Cursor[Any], task_id: int) -> int:
    """Let jobs take every file that is there. Returns how many files are added."""
    masters = masters_of(task_id)
    cursor.execute(
        f"""SELECT datasetid, count(*) FROM jedi_dataset_contents
             WHERE jeditaskid = %s AND datasetid = ANY(%s) AND status NOT IN {NOT_THERE} GROUP BY 1""",  # noqa: S608
        [task_id, [m.id for m in masters]],
    )
    there = dict(cursor.fetchall())
    _set_released(cursor, there)
    return sum(max(there.get(m.id, 0) - m.files_to_be_used, 0) for m in masters)
