"""Hot path: what pilots report on ranges, judged item by item and booked in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.db import transaction

from events_app.dispatch.ownership import SHOWN, shown
from events_app.lifecycle.range_reports import (
    AT_WORK,
    AT_WORK_FINE,
    HeldBlock,
    RangeKey,
    Reporter,
    book,
    hold,
    lock_and_hold,
    lock_reporters,
    states_of,
)
from events_app.lifecycle.storage_numbers import Storages
from events_app.lifecycle.zip_rows import StoredZip, zip_rows
from events_app.rules.event_states import EventStatus, is_said_before
from events_app.rules.range_ids import RangeId
from events_app.rules.reported_items import NOWHERE, Item, RangeReport, ReadItems, ZipFile, read_items
from jedisite.database.sql import hot_cursor
from tasks_app.dispatch.reports import KILL, Proof

SOFT_KILL = "softkill"
"""What pilots understand as: store what is ready, and end."""


@dataclass(slots=True)
class Account:
    """The answers to the items of a report in their order, why items were refused, and commands by the number of a job."""

    answers: list[bool | None]
    reasons: Mapping[int, str]
    commands: dict[int, str] = field(default_factory=dict)


def account(said: Sequence[Any], proof: Proof, *, fine_grained: bool = False) -> Account:
    """Book a report. Items of jobs that are not the caller's, or not at work, are refused, and so are unknown storages.

    `fine_grained` (PanDA's version 2): ranges that nobody was handed are taken, too, and ids may name the jobset.
    """
    read = read_items(said)
    storages = _check_storages(read)
    found = Account(read.answers, read.reasons)
    named = {(one.range_id.task_id, one.range_id.job_id) for one in read.items}
    if not named:
        return found
    with transaction.atomic(), hot_cursor() as cursor:
        held: list[HeldBlock] | None = None
        if len(named) == 1 and not fine_grained:
            keys = {_key(item.range_id) for item in read.items if read.answers[item.place] is True}
            locked, held = lock_and_hold(cursor, *next(iter(named)), keys, SHOWN, shown(proof))
        else:
            locked = lock_reporters(cursor, named, SHOWN, shown(proof), fine_grained=fine_grained)
        reporters = _by_number(locked, fine_grained=fine_grained)
        found.commands = _commands(named, reporters)
        of_tasks: dict[int, list[Item]] = defaultdict(list)
        for item in read.items:
            reporter = reporters.get((item.range_id.task_id, item.range_id.job_id))
            if read.answers[item.place] is not True:
                continue
            if reporter is None:
                read.refuse(item.place, f"there is no job {item.range_id.job_id} of yours with such ranges")
            elif reporter.status not in (AT_WORK_FINE if fine_grained and reporter.is_fine else AT_WORK):
                read.refuse(item.place, f"job {reporter.job_id} is {reporter.status}")
            else:
                of_tasks[item.range_id.task_id].append(item)
        for task_id in sorted(of_tasks):
            theirs = {owner: one for (task, owner), one in reporters.items() if task == task_id}
            fine = fine_grained and any(one.is_fine for one in theirs.values())
            _book(cursor, read, task_id, of_tasks[task_id], theirs, storages, held, fine_grained=fine)
    return found


def _check_storages(read: ReadItems) -> Storages:
    """Refuse the items whose files lie where this site knows no storage."""
    storages = Storages(number for item in read.items if (number := item.report.objstore_id) is not None)
    for item in read.items:
        number = item.report.objstore_id
        if number is None and item.zip_file is not None:
            read.refuse(item.place, "its zipFile: objstoreID is missing")
        elif number is not None and not storages.knows(number):
            read.refuse(item.place, f"objstoreID is {number}, and no storage has this number here")
    return storages


def _by_number(reporters: Iterable[Reporter], *, fine_grained: bool) -> dict[tuple[int, int], Reporter]:
    """By task and number of the job. Of fine-grained jobs the first one stands for its jobset."""
    found: dict[tuple[int, int], Reporter] = {}
    for one in reporters:
        if one.task_id is not None:
            found[one.task_id, one.job_id] = one
            if fine_grained and one.is_fine and one.jobset_id is not None and one.status in AT_WORK_FINE:
                found.setdefault((one.task_id, one.jobset_id), one)
    return found


def _commands(named: Iterable[tuple[int, int]], reporters: Mapping[tuple[int, int], Reporter]) -> dict[int, str]:
    """What pilots are told, by the number that they know: nobody waits for what jobs do that are not theirs or have ended."""
    told: dict[int, str] = {}
    for task_id, number in sorted(named):
        one = reporters.get((task_id, number))
        if one is None or one.status not in AT_WORK_FINE:
            told.setdefault(number, KILL)
        elif one.killed_softly:
            told[number] = SOFT_KILL
        elif one.command:
            told[number] = one.command
    return told


def _book(
    cursor: psycopg.Cursor[Any],
    read: ReadItems,
    task_id: int,
    items: Sequence[Item],
    reporters: Mapping[int, Reporter],
    storages: Storages,
    held: list[HeldBlock] | None,
    *,
    fine_grained: bool,
) -> None:
    """Of a range that is named twice the first item counts. Files get a row when they hold a range that is booked.

    `held`: what of these items is locked already.
    """
    keys = [_key(item.range_id) for item in items]
    said: dict[RangeKey, Item] = dict(zip(reversed(keys), reversed(items), strict=True))
    jobs = {owner: one.job_id for owner, one in reporters.items()}
    if held is None:
        held = hold(cursor, task_id, said, fine_grained=fine_grained)
    taken = {key for one in held for key in one.named}
    if len(taken) < len(said):
        _answer_others(
            cursor, read, task_id, [(key, item) for key, item in zip(keys, items, strict=True) if key not in taken]
        )
    rows = zip_rows(cursor, task_id, _zips(held, said, jobs, storages))
    reports = {key: _with_row(said[key], jobs[key.owner], rows) for one in held for key in one.named}
    for key, report in reports.items():
        if report.status is EventStatus.FINISHED and report.objstore_id is None and not reporters[key.owner].is_fine:
            reports[key] = NOWHERE
            read.refuse(said[key].place, f"{NOWHERE.error_diag}; it failed")
    book(cursor, task_id, held, reports, jobs)


def _answer_others(
    cursor: psycopg.Cursor[Any], read: ReadItems, task_id: int, others: Sequence[tuple[RangeKey, Item]]
) -> None:
    """Refuse the items on ranges that the job has not in hand, unless the same was booked of them before. A pilot would
    else throw away outputs of which it believes that they count."""
    states = states_of(cursor, task_id, (key for key, _ in others))
    for key, item in others:
        state, job_id = states.get(key), item.range_id.job_id
        if state is None:
            read.refuse(item.place, f"job {job_id} has no such range")
        elif not is_said_before(state, item.report.status):
            read.refuse(item.place, f"the range is {state.word}")


def _key(range_id: RangeId) -> RangeKey:
    return RangeKey(range_id.job_id, range_id.file_id, range_id.process_id, range_id.attempts)


def _zips(
    held: Iterable[HeldBlock], said: Mapping[RangeKey, Item], jobs: Mapping[int, int], storages: Storages
) -> list[StoredZip]:
    found: dict[tuple[int, str], ZipFile] = {}
    for key in (key for one in held for key in one.named):
        zip_file = said[key].zip_file
        if zip_file is not None:
            found.setdefault((jobs[key.owner], zip_file.lfn), zip_file)
    return [
        StoredZip(job, one, storages.address(one.objstore_id, one.lfn))
        for (job, _), one in found.items()
        if one.objstore_id is not None
    ]


def _with_row(item: Item, job_id: int, rows: Mapping[tuple[int, str], int]) -> RangeReport:
    if item.zip_file is None:
        return item.report
    return item.report._replace(zip_row_id=rows[job_id, item.zip_file.lfn])
