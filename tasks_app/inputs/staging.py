"""Inputs that lie on tape (IS in the split rule): the feeder makes rules that bring them to disk, and what arrives is released.

A file that is `staging` has a request in a rule of kind `stage` of its task that nobody has acted upon, which the mover serves.
`settle_task` makes it pending when it has arrived, and missing when it could not be brought; then the feeder makes whole
bunches of what is pending ready. A task with less than a bunch on disk is `staging` itself until there is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg
from django.db import transaction

from jedisite.database.sql import hot_cursor, numbers, texts
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import TASK_FINAL, FileStatus, TaskStatus
from tasks_app.domain.transfer_states import ReplicaStatus, TransferKind, TransferStatus
from tasks_app.inputs.file_rows import FeedTarget, hold
from tasks_app.inputs.input_wishes import Feeding
from tasks_app.inputs.rules.bunches import chunks_to_wait, released_files
from tasks_app.inputs.rules.staged import RATE_OVER, Disk, Progress, destination, is_on_tape_only
from tasks_app.lifecycle import file_availability, file_moves, task_moves
from tasks_app.models import Dataset, TaskStatusLog
from tasks_app.params.splitrule import SplitRule
from tasks_app.transfers import replicas, requesting, settling
from tasks_app.transfers.requesting import Wanted, WantedFile
from tasks_app.transfers.storages import Storage, local_storages

ME: Final = "data_carousel"
_OPEN: Final = (TransferStatus.QUEUED, TransferStatus.ACTIVE)
_UNSETTLED: Final = "r.jeditaskid = %(task)s AND r.kind = 'stage' AND NOT r.is_settled"


class NoDiskError(RuntimeError):
    """Inputs lie on tape, and this site has no disk to which they could ever be brought; the sentence says so."""


def applies(task: Feeding, dataset: Dataset) -> bool:
    """Whether files of a dataset are brought to disk before jobs get them."""
    return task.rule.get_int("IS") == 1 and "ns=1" not in (dataset.attributes or "").split(",")


# Ranges of one file have one request.
_UNASKED: Final = f"""
SELECT DISTINCT ON (c.scope, c.lfn) coalesce(c.scope, ''), c.lfn, coalesce(c.fsize, 0), coalesce(c.checksum, ''), c.fileid
  FROM jedi_dataset_contents c
 WHERE c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.status = 'staging'
   AND NOT EXISTS (SELECT 1 FROM transfer_rules r JOIN transfer_requests q ON q.rule_id = r.id
                    WHERE {_UNSETTLED} AND q.scope = c.scope AND q.lfn = c.lfn)
 ORDER BY c.scope, c.lfn, c.fileid
"""  # noqa: S608 - a constant of ours


@transaction.atomic
def request(task: Feeding, dataset: Dataset, target: FeedTarget) -> int:
    """Files that are `staging` and for which nobody has asked yet: those on disk are pending, the others get a rule.

    Returns how many files of the dataset are staging. Raises LostClaimError, and NoDiskError when there is no disk and no
    job has had a file yet.
    """
    with hot_cursor() as cursor:
        hold(cursor, task.id, task.fence)
        cursor.execute(_UNASKED, {"task": task.id, "dataset": dataset.id})
        files = [WantedFile(scope, lfn, size, _adler32(said), fid) for scope, lfn, size, said, fid in cursor.fetchall()]
        places = replicas.places_of(cursor, [(f.scope, f.lfn) for f in files])
        tapes = _tapes(places)
        there = [f.lfn for f in files if not is_on_tape_only([_held(p, tapes) for p in places[f.scope, f.lfn]])]
        if there:
            on_disk = [p for found in places.values() for p in found if p.status == ReplicaStatus.AVAILABLE]
            _set_addresses(cursor, task.id, dataset.id, {p.lfn: p.url for p in reversed(on_disk)})
            file_moves.note_staged(task.id, [dataset.id], there)
        here = set(there)
        _add_rules(cursor, task, dataset, [f for f in files if f.lfn not in here], places)
        cursor.execute(
            "SELECT count(*) FROM jedi_dataset_contents WHERE jeditaskid = %s AND datasetid = %s AND status = 'staging'",
            [task.id, dataset.id],
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _tapes(places: Mapping[replicas.Name, list[replicas.Place]]) -> set[str]:
    """Tapes of this machine; asked for only where a place of these files is bad."""
    if not any(p.status == ReplicaStatus.BAD for found in places.values() for p in found):
        return set()
    return {one.name for one in local_storages().values() if one.is_tape}


def _held(place: replicas.Place, tapes: set[str]) -> ReplicaStatus:
    """A bad replica on tape is for the mover to look at again: it is never read past the drives."""
    return ReplicaStatus.TAPE if place.status == ReplicaStatus.BAD and place.endpoint in tapes else place.status


def _set_addresses(cursor: psycopg.Cursor[Any], task_id: int, dataset_id: int, urls: Mapping[str, str]) -> None:
    """Jobs read the copies on disk."""
    cursor.execute(
        """UPDATE jedi_dataset_contents c SET surl = n.url FROM unnest(%s::text[], %s::text[]) n (lfn, url)
            WHERE c.jeditaskid = %s AND c.datasetid = %s AND c.status = 'staging' AND c.lfn = n.lfn AND n.url <> ''""",
        [texts(urls), texts(urls.values()), task_id, dataset_id],
    )


def _adler32(said: str) -> str:
    """Of a checksum as the books have it; "" for one of another kind, with which no copy is good."""
    return said.removeprefix("ad:") if len(said) <= len("ad:") + 8 else ""


def _add_rules(
    cursor: psycopg.Cursor[Any],
    task: Feeding,
    dataset: Dataset,
    files: list[WantedFile],
    places: dict[replicas.Name, list[replicas.Place]],
) -> None:
    """One rule for each disk to which files of the dataset go; one without a destination while no disk takes files."""
    if not files:
        return
    stores = local_storages()
    disks = _disks(stores)
    if all(one.is_tape for one in stores.values()) and not dataset.files_used:
        tapes = sorted({p.endpoint for p in places[files[0].scope, files[0].lfn]})
        raise NoDiskError(
            f"{plural(len(files), 'file')} of {dataset.name} {'is' if len(files) == 1 else 'are'} on tape only "
            f"({', '.join(tapes)}), and this site has no storage on disk"
        )
    shares: dict[str, list[WantedFile]] = defaultdict(list)
    for file in files:
        sites = {stores[p.endpoint].site for p in places[file.scope, file.lfn] if p.endpoint in stores}
        shares[destination(disks, sites)].append(file)
    requesting.add_rules(
        cursor,
        [
            Wanted(TransferKind.STAGE, where, share, dataset=dataset.name, task_id=task.id, user=task.user)
            for where, share in sorted(shares.items())
        ],
    )


def _disks(stores: Mapping[str, Storage]) -> list[Disk]:
    """Those that take files now."""
    return [Disk(one.name, one.site) for one in stores.values() if not one.is_tape and not one.why_not_written]


def _find_disks(cursor: psycopg.Cursor[Any], rules: list[int]) -> int:
    """Rules that were made while no disk took files get one, if there is one now. Returns how many did."""
    stores = local_storages()
    disks = _disks(stores)
    if not disks:
        return 0
    cursor.execute(
        "SELECT rule_id, array_agg(DISTINCT source) FROM transfer_requests WHERE rule_id = ANY(%s::bigint[]) GROUP BY 1",
        [numbers(rules)],
    )
    found = {
        rule: destination(disks, {stores[name].site for name in sources if name in stores})
        for rule, sources in cursor.fetchall()
    }
    return requesting.give_destinations(cursor, found)


def is_to_wait(task: Feeding) -> bool:
    """Whether a task without a bunch on disk is to be `staging`: it has files on tape, and has not been there already."""
    if task.rule.get_int("IS") != 1:
        return False
    with hot_cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM jedi_dataset_contents WHERE jeditaskid = %s AND status = 'staging')",
            [task.id],
        )
        row = cursor.fetchone()
    if row is None or not row[0]:
        return False
    return not TaskStatusLog.objects.filter(task_id=task.id, status=TaskStatus.STAGING).exists()


def progress(task_id: int) -> Progress:
    """How far staging is. By the clock of the database."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT coalesce(sum(r.files), 0), coalesce(sum(r.files - r.files_done - r.files_failed), 0), min(r.created),
                      clock_timestamp()
                 FROM transfer_rules r WHERE r.jeditaskid = %s AND r.kind = 'stage'
                                                               AND r.status <> 'cancelled'""",
            [task_id],
        )
        row = cursor.fetchone()
        assert row is not None
        files, left, since, now = row
        if not left:
            return Progress(int(files), 0, 0.0)
        begin = max(since, now - RATE_OVER)
        cursor.execute(
            """SELECT count(*) FROM transfer_rules r JOIN transfer_requests q ON q.rule_id = r.id
                WHERE r.jeditaskid = %s AND r.kind = 'stage' AND q.status = 'done' AND q.ended >= %s""",
            [task_id, begin],
        )
        row = cursor.fetchone()
    minutes = max((now - begin).total_seconds() / 60, 1.0)
    return Progress(int(files), int(left), (row[0] if row else 0) / minutes, is_new=since > now - RATE_OVER)


def tasks_to_settle() -> list[int]:
    """Tasks with staging rules on which nobody has acted, and those that are staging."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT jeditaskid FROM transfer_rules
                WHERE kind = 'stage' AND NOT is_settled AND status NOT IN ('queued', 'active') AND jeditaskid IS NOT NULL
               UNION SELECT jeditaskid FROM transfer_rules
                WHERE kind = 'stage' AND status IN ('queued', 'active') AND jeditaskid IS NOT NULL
               UNION SELECT jeditaskid FROM jedi_tasks WHERE status = 'staging' ORDER BY 1"""
        )
        return [task for (task,) in cursor.fetchall()]


_ENDED: Final = f"""
SELECT c.datasetid, q.status = 'done', array_agg(c.lfn), array_agg(q.url), min(q.error)
  FROM transfer_rules r JOIN transfer_requests q ON q.rule_id = r.id AND q.status NOT IN ('queued', 'active')
  JOIN jedi_datasets d ON d.jeditaskid = r.jeditaskid AND d.datasetname = r.dataset AND d.type = 'input'
  JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid AND c.status = 'staging'
                              AND c.scope = q.scope AND c.lfn = q.lfn
 WHERE {_UNSETTLED} GROUP BY 1, 2 ORDER BY 1, 2
"""  # noqa: S608 - a constant of ours


@transaction.atomic
def settle_task(task_id: int) -> int:
    """Act on what has arrived for a task, and on what could not be brought. Returns how many files, or moves, that were."""
    with hot_cursor() as cursor:
        cursor.execute(
            "SELECT status, coalesce(splitrule, '') FROM jedi_tasks WHERE jeditaskid = %s FOR UPDATE", [task_id]
        )
        row = cursor.fetchone()
        if row is None or row[0] in TASK_FINAL:
            return _end(cursor, task_id, "its task has ended" if row else "its task is gone")
        cursor.execute(
            f"SELECT r.id, r.status, r.destination FROM transfer_rules r WHERE {_UNSETTLED} ORDER BY r.id",  # noqa: S608
            {"task": task_id},
        )
        # Before the requests are read: a rule that ends after this moment is for the next time.
        rules = cursor.fetchall()
        over = [rule for rule, status, _ in rules if status not in _OPEN]
        moved = _settle_files(cursor, task_id)
        if without := [rule for rule, status, where in rules if status in _OPEN and not where]:
            moved += _find_disks(cursor, without)
        if over:
            settling.settled(cursor, over)
        if row[0] == TaskStatus.STAGING and _is_enough(cursor, task_id, SplitRule.parse(row[1])):
            task_moves.move_task(
                task_id,
                TaskStatus.DEFINED,
                by=ME,
                reason="the first files have come from tape",
                old_status=None,
                error_dialog=None,
            )
            moved += 1
    return moved


def _settle_files(cursor: psycopg.Cursor[Any], task_id: int) -> int:
    cursor.execute(_ENDED, {"task": task_id})
    found = cursor.fetchall()
    moved = 0
    for dataset, is_done, lfns, urls, error in found:
        if is_done:
            _set_addresses(cursor, task_id, dataset, dict(zip(lfns, urls, strict=True)))
            moved += file_moves.note_staged(task_id, [dataset], lfns)
            continue
        only, values = "status = 'staging' AND lfn = ANY(%(lfns)s::text[])", {"lfns": texts(lfns)}
        lost = file_availability.lose_where(cursor, task_id, dataset, only, values, to=FileStatus.MISSING)
        said = f"{plural(lost, 'file')} could not be staged from tape, such as {lfns[0]}: {error or 'it was cancelled'}"
        task_moves.note_on_task(task_id, by=ME, reason=said[:4000])
        moved += lost
    if found:
        # The feeder looks at once.
        cursor.execute(
            "UPDATE jedi_datasets SET statecehcktime = 'epoch' WHERE datasetid = ANY(%s::bigint[])",
            [numbers(sorted({row[0] for row in found}))],
        )
    return moved


def _end(cursor: psycopg.Cursor[Any], task_id: int, why: str) -> int:
    """Nobody waits for what is still on its way."""
    cursor.execute(
        f"SELECT r.id FROM transfer_rules r WHERE {_UNSETTLED} ORDER BY r.id",  # noqa: S608 - a constant of ours
        {"task": task_id},
    )
    rules = [rule for (rule,) in cursor.fetchall()]
    requesting.cancel(cursor, rules, why)
    settling.settled(cursor, rules)
    return len(rules)


def _is_enough(cursor: psycopg.Cursor[Any], task_id: int, rule: SplitRule) -> bool:
    """Whether a primary input has a bunch of files on disk, or nothing more comes from tape."""
    cursor.execute(
        """SELECT d.masterid IS NULL, count(*) FILTER (WHERE c.status = 'pending'), count(*) FILTER (WHERE c.status = 'staging')
             FROM jedi_datasets d JOIN jedi_dataset_contents c USING (jeditaskid, datasetid)
            WHERE d.jeditaskid = %s AND d.type = 'input' AND c.status IN ('pending', 'staging') GROUP BY d.datasetid""",
        [task_id],
    )
    found = cursor.fetchall()
    if not any(staging for _, _, staging in found):
        return True
    chunks = chunks_to_wait(rule, to_scout=rule.get_int("US") == 2)
    return any(is_master and released_files(pending, chunks, rule.get_int("NF")) for is_master, pending, _ in found)


def staged_by(tasks: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Files of each of these tasks that were staged, and those that had to be. Only of tasks with any."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT jeditaskid, sum(files_done), sum(files) FROM transfer_rules
                WHERE jeditaskid = ANY(%s::bigint[]) AND kind = 'stage' AND status <> 'cancelled' GROUP BY 1""",
            [numbers(tasks)],
        )
        return {task: (int(done), int(files)) for task, done, files in cursor.fetchall()}


def staged_of(task_id: int) -> dict[str, tuple[int, int]]:
    """Files of each input dataset that were staged, and those that had to be. Only of datasets with any."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT dataset, sum(files_done), sum(files) FROM transfer_rules
                WHERE jeditaskid = %s AND kind = 'stage' AND status <> 'cancelled' GROUP BY 1 ORDER BY 1""",
            [task_id],
        )
        return {name: (int(done), int(files)) for name, done, files in cursor.fetchall()}
