"""Recovery of lost outputs: the jobs that made them are found, and their inputs are processed again.

A job makes all of its outputs at once. So whatever else it has made besides a lost file is taken away too: else the
events of its inputs would be there twice. Its log stays. Inputs that are gone as well are made again first, by the tasks that
made them. Everything happens in one transaction, or nothing.

Order of locks: tasks by id, contents, datasets by id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import psycopg
from django.db import transaction

from jedisite import audit
from jedisite.agents.passes import kick
from jedisite.database.sql import hot_cursor, numbers, texts
from jedisite.vocabulary.words import plural
from tasks_app.ddm.base import ForeignDatasetError
from tasks_app.domain.states import TASK_FINAL, DatasetStatus, TaskStatus
from tasks_app.lifecycle import dataset_moves, file_recovery, task_moves
from tasks_app.lifecycle.file_availability import lose_where
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import LONG_AGO, OUTPUT_TYPES, UNMERGED_TYPES
from tasks_app.outcomes import end_hooks
from tasks_app.outcomes.kept_copies import kept_of, read_instead
from tasks_app.outcomes.lost_outputs import count_files, lose, remove
from tasks_app.outcomes.recovery_chains import chain
from tasks_app.outcomes.recovery_plans import CannotRecoverError, Recovery
from tasks_app.submission.storing import register_outputs


def task_of_dataset(dataset: str) -> int:
    """The task that makes a dataset; the newest of several. Raises CannotRecoverError."""
    made = Dataset.objects.used_or_made_by_tasks(dataset).filter(type__in=OUTPUT_TYPES).first()
    if made is None:
        raise CannotRecoverError(f"no task makes the dataset {dataset}")
    return made.task_id


def recover(
    task_id: int,
    names: Collection[str],
    *,
    by: str,
    reason: str = "",
    dataset: str | None = None,
    dry_run: bool = False,
    may: Callable[[Task], bool] = lambda task: True,
) -> Recovery:
    """Process the inputs of lost outputs again. `names` are names of files, with a scope before a colon or without.

    Inputs that are gone too are made again first, by the tasks that made them, and so on: `may` says which of those the
    caller may command. With `dry_run` nothing is changed. Raises CannotRecoverError for a name that the task did not make, for a
    state of a task in which it cannot be done, and for inputs that nobody can make again.
    Files of which a storage of this machine has a good copy are not made again: that copy is read from now on.
    """
    kept = kept_of(task_id, names, dataset)
    lost = set(names) - kept.keys()
    if lost or not kept:
        found = _recover(task_id, lost, by=by, reason=reason, dataset=dataset, dry_run=dry_run, may=may)
    else:
        found = Recovery(task_id, Task.objects.only("status").get(pk=task_id).status, [], [], [], [])
    found.kept.extend(kept.values())
    if kept and not dry_run:
        read_instead(kept.values())
        audit.record(by, "recover", "task", task_id, reason=reason, details={"kept": sorted(kept)[:100]})
    return found


def _recover(
    task_id: int,
    names: Collection[str],
    *,
    by: str,
    reason: str,
    dataset: str | None,
    dry_run: bool,
    may: Callable[[Task], bool],
) -> Recovery:
    with transaction.atomic(), hot_cursor() as cursor:
        # Who is to be locked is found without locks, since these are taken in order; what is done is decided under them.
        tasks = [found.task_id for found in chain(cursor, task_id, names, dataset, may)]
        readers = lock(cursor, tasks)
        found = chain(cursor, task_id, names, dataset, may)
        if not {one.task_id for one in found} <= set(tasks):
            raise CannotRecoverError("these tasks were changed at this moment; try again")
        first, *makers = found
        first.makers.extend(makers)
        for one in found:
            others = [reader for reader in readers if reader not in tasks]
            one.readers.update(_readers_of(cursor, others, one))
        if dry_run:
            return first
        for one in found:
            _make_again(cursor, one, readers, by=by, reason=reason)
        audit.record(by, "recover", "task", task_id, reason=reason, details={"files": sorted(names)[:100]})
        for one in makers:
            lfns = sorted(o.lfn for o in one.lost)[:100]
            audit.record(by, "recover", "task", one.task_id, reason=f"for task {task_id}", details={"files": lfns})
    kick("job_generator", "feeder")
    return first


def _make_again(cursor: psycopg.Cursor[Any], found: Recovery, readers: Sequence[int], *, by: str, reason: str) -> None:
    _write(cursor, found)
    _await_inputs(cursor, found)
    tell_readers(cursor, [reader for reader in readers if reader != found.task_id], found)
    lost = f"{plural(len(found.lost), 'lost output is', 'lost outputs are')} made again"
    _reopen(Task.objects.get(pk=found.task_id), found, by=by, reason=lost + (f": {reason}" if reason else ""))


def _await_inputs(cursor: psycopg.Cursor[Any], found: Recovery) -> None:
    """Inputs that are gone are lost to the task, and their datasets are looked at until those in their place have come."""
    by_dataset: dict[int, set[str]] = {}
    for file in found.gone:
        by_dataset.setdefault(file.dataset_id, set()).add(file.lfn)
    for dataset, lfns in sorted(by_dataset.items()):
        lose_where(cursor, found.task_id, dataset, "lfn = ANY(%(lfns)s::text[])", {"lfns": texts(lfns)})
    Dataset.objects.filter(pk__in=by_dataset).update(state="mutable", state_check_time=LONG_AGO)


def lock(cursor: psycopg.Cursor[Any], tasks: Sequence[int]) -> list[int]:
    """Lock the tasks and those that read their outputs. Returns the readers that have not ended."""
    cursor.execute(
        """SELECT DISTINCT r.jeditaskid FROM jedi_datasets o
             JOIN jedi_datasets r ON r.datasetname IN (o.datasetname, o.containername) AND r.type = 'input'
              AND r.jeditaskid <> o.jeditaskid
             JOIN jedi_tasks t ON t.jeditaskid = r.jeditaskid AND NOT t.status = ANY(%s)
            WHERE o.jeditaskid = ANY(%s) AND o.type = 'output'""",
        [sorted(TASK_FINAL), numbers(tasks)],
    )
    readers = [task for (task,) in cursor.fetchall()]
    cursor.execute(
        "SELECT jeditaskid FROM jedi_tasks WHERE jeditaskid = ANY(%s) ORDER BY jeditaskid FOR UPDATE",
        [sorted({*tasks, *readers})],
    )
    return sorted(readers)


def _write(cursor: psycopg.Cursor[Any], found: Recovery) -> None:
    """Outputs are lost, inputs are ready again, and the counters say so."""
    inputs = sorted(i.file_id for i in found.inputs)
    lost = lose(cursor, found.task_id, found.all_lost)
    uncounted = end_hooks.given_up(cursor, found.task_id, inputs)
    end_hooks.lose_merged(cursor, found.task_id, inputs)
    ready = file_recovery.process_again(cursor, found.task_id, inputs)
    again = [(dataset, files, events - uncounted.get(dataset, 0), 0, 0) for dataset, files, events in ready]
    # A job whose outputs are gone counts for nothing: its inputs may be those of another finished job.
    file_recovery.take_inputs_from(cursor, found.jobs, inputs)
    count_files(cursor, sorted(lost + again))
    remove(found.task_id, found.all_lost)


def _readers_of(cursor: psycopg.Cursor[Any], readers: Sequence[int], found: Recovery) -> dict[int, int]:
    """How many of the lost files each reading task still has before it."""
    cursor.execute(
        """SELECT c.jeditaskid, count(*) FROM jedi_datasets d
             JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid
            WHERE d.jeditaskid = ANY(%s) AND d.type = 'input' AND d.datasetname = ANY(%s)
              AND c.status IN ('ready', 'pending', 'staging') AND c.lfn = ANY(%s) GROUP BY 1 ORDER BY 1""",
        [list(readers), _names_of_datasets(found), [o.lfn for o in found.all_lost]],
    )
    return dict(cursor.fetchall())


def _names_of_datasets(found: Recovery) -> list[str]:
    """The datasets of the lost files and the containers that hold them."""
    ids = {o.dataset_id for o in found.all_lost}
    rows = Dataset.objects.filter(pk__in=ids).values_list("name", "container_name")
    return sorted({name for row in rows for name in row if name})


def tell_readers(cursor: psycopg.Cursor[Any], readers: Sequence[int], found: Recovery) -> None:
    """Lost files that a reading task has not used are lost to it; a child waits for those that come in their place."""
    datasets = Dataset.objects.filter(task_id__in=readers, type="input", name__in=_names_of_datasets(found))
    lfns = texts(o.lfn for o in found.all_lost)
    for dataset in datasets.order_by("task_id", "id"):
        lose_where(cursor, dataset.task_id, dataset.id, "lfn = ANY(%(lfns)s::text[])", {"lfns": lfns})
    children = datasets.filter(task__parent_id=found.task_id).exclude(
        status__in=[DatasetStatus.REMOVED, DatasetStatus.FAILED, DatasetStatus.BROKEN]
    )
    children.update(state="mutable", state_check_time=LONG_AGO)


def _reopen(task: Task, found: Recovery, *, by: str, reason: str) -> None:
    """The outputs take files again, and a task that had ended goes through rerefine to ready (lifecycle 3.2)."""
    ids = {o.dataset_id for o in found.all_lost}
    outputs = (
        Dataset.objects.filter(task=task, type__in=["output", "log", *UNMERGED_TYPES])
        if found.reopens
        else (Dataset.objects.filter(pk__in=ids))
    )
    dataset_moves.move(outputs, DatasetStatus.READY, state="open")
    try:
        register_outputs(task, outputs)
    except ForeignDatasetError as exc:
        raise CannotRecoverError(f"task {task.id} cannot make its files again: {exc}") from exc
    if not found.reopens:
        return
    _queue_what_is_left(task.id)
    task_moves.move_task(task.id, TaskStatus.TOINCEXEC, by=by, reason=reason)
    task_moves.move_task(task.id, TaskStatus.REREFINE, by=by, reason="its parameters stay as they are")
    task_moves.move_task(
        task.id,
        TaskStatus.READY,
        by=by,
        reason=found.processed_again(),
        attempt=(task.attempt or 0) + 1,
        start_time=None,
        end_time=None,
        frozen_time=None,
        error_dialog=None,
        old_status=None,
        progress=None,
    )


def _queue_what_is_left(task_id: int) -> None:
    """A task that was aborted has files with attempts left: now that it runs again, they are tried again too."""
    with hot_cursor() as cursor:
        cursor.execute(
            """INSERT INTO file_retries (fileid, jeditaskid, datasetid)
               SELECT c.fileid, c.jeditaskid, c.datasetid FROM jedi_datasets d
                 JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid
                WHERE d.jeditaskid = %(task)s AND c.jeditaskid = %(task)s
                  AND d.type IN ('input', 'pseudo_input', 'random_seed') AND d.status IS DISTINCT FROM 'removed'
                  AND c.fileid <= d.pick_cursor AND c.status = 'ready' AND c.keeptrack = 1
                  AND (c.maxattempt IS NULL OR c.attemptnr < c.maxattempt)
                  AND (c.maxfailure IS NULL OR c.failedattempt < c.maxfailure)
               ON CONFLICT DO NOTHING""",
            {"task": task_id},
        )
