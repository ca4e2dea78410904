"""New consumers: the ranges of their jobsets are inserted in the transaction that stores them.

Ranges of files that are tried again are made but for those that are kept (notDiscardEvents); a jobset of which
nothing is left goes to its merge without a pilot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import psycopg

from events_app.consumers.copying import CopyKind, JobCopy, Place, copy_jobs
from events_app.lifecycle.range_moves import NewBlock, insert_blocks
from events_app.lifecycle.range_reinsertion import discard, discard_of_ready_files, settle
from events_app.rules.range_blocks import RangeBlock, cut_ranges, whole_input
from events_app.rules.reinsertion import sort_out, to_insert
from jedisite.database.sql import hot_cursor, numbers
from tasks_app.lifecycle.job_hooks import Beside, CannotStoreError, Slot, StoredJobs, end_at_once
from tasks_app.models import Task

ME: Final = "job_generator"
ALL_DONE: Final = "at"
"""Among the words of a job's special handling: its ranges were done before it was made (allOkEvents)."""


def complete_jobsets(cursor: psycopg.Cursor[Any], stored: StoredJobs) -> Beside:
    """Insert the ranges of all new jobsets, and their other consumers.

    Raises CannotStoreError when the events of a file are not known.
    """
    wanted = [_cut(stored, index) for index in range(len(stored.jobs))]
    kept: dict[int, list[int]] = {}
    if stored.tried_again:
        kept, merged = _settle(cursor, stored, wanted)
        wanted = [[part for block in some for part in block.gaps(merged[block.file_id])] for some in wanted]
    new, idle = list[NewBlock](), set[int]()
    for job, jobset, blocks in zip(stored.jobs, stored.jobsets, wanted, strict=True):
        left, all_done = to_insert(blocks, kept)
        new += [NewBlock(stored.task_id, stored.dataset_id, jobset, block) for block in left]
        if all_done:
            idle.add(job)
    insert_blocks(cursor, new)
    end_at_once(cursor, idle, word=ALL_DONE, reason="all events of its input were processed before")
    more = 0 if stored.rule.flag("FP") else (stored.rule.get_int("EC") or 1) - 1
    own = _outputs(cursor, stored.jobs) if "UC" in stored.rule else {}
    copies = [
        _copy(job, slots, number, own.get(job))
        for job, slots in zip(stored.jobs, stored.slots, strict=True)
        if slots and job not in idle
        for number in range(1, more + 1)
    ]
    copied, beside = copy_jobs(cursor, copies, by=ME), defaultdict[int, list[int]](list)
    for copy, made in zip(copies, copied.jobs, strict=True):
        if copy.place is None:
            beside[copy.old_job].append(made)
    return Beside(copied.logs, beside)


def _copy(job: int, slots: Sequence[Slot], number: int, own: tuple[str, list[str]] | None) -> JobCopy:
    """One more consumer of the jobset of a job, or clone of it: they take turns at the slots."""
    index = number % len(slots)
    place = Place(*slots[index]) if index else None
    if own is None:
        return JobCopy(job, CopyKind.CONSUMER, place)
    return JobCopy(job, CopyKind.CLONE, place, params=own[0], outputs=own[1])


def _outputs(cursor: psycopg.Cursor[Any], jobs: Sequence[int]) -> dict[int, tuple[str, list[str]]]:
    """Parameters of new jobs, and the names of the outputs that may stand in them."""
    cursor.execute(
        """SELECT p.pandaid, coalesce(p.jobparameters, ''), ARRAY(SELECT o.lfn FROM job_files o
                                                                  WHERE o.pandaid = p.pandaid AND o.type = 'output')
             FROM job_params p WHERE p.pandaid = ANY(%s::bigint[])""",
        [numbers(jobs)],
    )
    return {job: (params, names) for job, params, names in cursor.fetchall()}


def _cut(stored: StoredJobs, index: int) -> list[RangeBlock]:
    """The ranges of one jobset."""
    rule = stored.rule
    if "UC" in rule:
        return [whole_input(stored.files[index])]
    try:
        return cut_ranges(
            stored.files[index], rule.get_int("ES") or 1, attempts=rule.get_int("XA"), in_file=rule.flag("IF")
        )
    except ValueError as exc:
        raise CannotStoreError(str(exc)) from exc


def _settle(
    cursor: psycopg.Cursor[Any], stored: StoredJobs, wanted: Iterable[Sequence[RangeBlock]]
) -> tuple[dict[int, list[int]], dict[int, list[RangeBlock]]]:
    """Settle what earlier jobsets have left of the files. Returns the first events of the ranges that stay, and what was
    merged, by file."""
    blocks = [block for some in wanted for block in some]
    found = settle(cursor, stored.task_id, {b.file_id for b in blocks}, keeps_events=stored.rule.flag("ND"))
    merged = defaultdict[int, list[RangeBlock]](list)
    for one in found:
        if one.merged:
            merged[one.block.file_id].append(one.block)
    old = [one for one in found if not one.merged]
    kept, useless = sort_out(blocks, [one.block for one in old])
    discard(cursor, stored.task_id, [one.row_id for one in old if one.block in useless])
    return kept, merged


def discard_events(task: Task, wanted: bool) -> None:
    """A task is tried again: where that is wanted, what was processed of the files that are tried again is made anew."""
    if wanted:
        with hot_cursor() as cursor:
            discard_of_ready_files(cursor, task.id)
