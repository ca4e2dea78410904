"""Recovery of lost outputs: the jobs that made them are found, and their inputs are processed again.

A job makes all of its outputs at once. So whatever else it has made besides a lost file is taken away too: else the
events of its inputs would be there twice. Its log stays. Everything happens in one transaction, or nothing.

Order of locks: tasks by id, contents, datasets by id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import psycopg
from django.db import transaction

from jedisite import audit
from jedisite.agents.passes import kick
from jedisite.database.sql import hot_cursor, numbers, texts
from jedisite.vocabulary.words import plural
from tasks_app.ddm import data_management
from tasks_app.ddm.base import ForeignDatasetError, UnknownDatasetError
from tasks_app.domain.states import TASK_FINAL, DatasetStatus, FileStatus, TaskStatus
from tasks_app.lifecycle import dataset_moves, file_recovery, task_moves
from tasks_app.lifecycle.file_availability import lose_where
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import OUTPUT_TYPES, UNMERGED_TYPES
from tasks_app.outcomes.lost_outputs import LostOutput, count_files, lose, remove
from tasks_app.submission.storing import register_outputs

REOPENED = frozenset({TaskStatus.DONE, TaskStatus.FINISHED, TaskStatus.FAILED, TaskStatus.ABORTED})
"""A task that rests here runs again for its lost files."""
REFUSED = frozenset(
    {
        TaskStatus.BROKEN,
        TaskStatus.TOBROKEN,
        TaskStatus.TOABORT,
        TaskStatus.ABORTING,
        TaskStatus.PREPARED,
        TaskStatus.PASSED,
        TaskStatus.FINISHING,
        TaskStatus.TORETRY,
        TaskStatus.TOINCEXEC,
        TaskStatus.REREFINE,
    }
)


class CannotRecoverError(ValueError):
    """Nothing was changed; the sentence names the files or the state that stand in the way."""


class InputAgain(NamedTuple):
    file_id: int
    dataset_id: int
    dataset: str
    lfn: str
    type: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a recovery does, or would do.

    `lost` were named; `also_lost` were made by the same jobs; `inputs` are processed again; `readers` are tasks that
    still have lost files before them, with how many.
    """

    task_id: int
    status: str
    lost: Sequence[LostOutput]
    also_lost: Sequence[LostOutput]
    jobs: Sequence[int]
    inputs: Sequence[InputAgain]
    readers: dict[int, int] = field(default_factory=dict)

    @property
    def reopens(self) -> bool:
        return self.status in REOPENED

    def sentences(self) -> list[str]:
        """What people read: one line each for the files, the jobs, the inputs, the task and its readers."""
        lines = [f"{len(self.lost)} lost: {_some(o.lfn for o in self.lost)}"]
        if self.also_lost:
            lines.append(f"{len(self.also_lost)} more made by the same jobs: {_some(o.lfn for o in self.also_lost)}")
        lines.append(f"{plural(len(self.jobs), 'job')} made them: {_some(map(str, self.jobs))}")
        lines.append(
            f"{plural(len(self.inputs), 'input is', 'inputs are')} processed again: {_some(i.lfn for i in self.inputs)}"
        )
        lines.append(f"task {self.task_id}, which is {self.status}, {'runs again' if self.reopens else 'goes on'}")
        lines += [f"task {task} does not get {count} of the lost files" for task, count in self.readers.items()]
        return lines


def _some(names: Iterable[str], most: int = 5) -> str:
    given = list(names)
    return ", ".join(given[:most]) + (f" and {len(given) - most} more" if len(given) > most else "")


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
) -> Recovery:
    """Process the inputs of lost outputs again. `names` are names of files, with a scope before a colon or without.

    With `dry_run` nothing is changed. Raises CannotRecoverError for a name that the task did not make, for a state
    of the task in which it cannot be done, and when inputs are gone too.
    """
    with transaction.atomic(), hot_cursor() as cursor:
        readers = _lock(cursor, task_id, dataset)
        task = Task.objects.filter(pk=task_id).first()
        if task is None:
            raise CannotRecoverError(f"there is no task {task_id}")
        if task.status in REFUSED:
            raise CannotRecoverError(f"task {task_id} is {task.status}: its lost files cannot be recovered now")
        found = _plan(cursor, task, names, dataset)
        _check_inputs(found.inputs)
        found.readers.update(_readers_of(cursor, readers, found))
        if dry_run:
            return found
        _write(cursor, found)
        _tell_readers(cursor, readers, found)
        why = f"{plural(len(found.lost), 'lost output is', 'lost outputs are')} made again" + (
            f": {reason}" if reason else ""
        )
        _reopen(task, found, by=by, reason=why)
        audit.record(by, "recover", "task", task_id, reason=reason, details={"files": sorted(names)[:100]})
    kick("job_generator", "feeder")
    return found


def _lock(cursor: psycopg.Cursor[Any], task_id: int, dataset: str | None) -> list[int]:
    """Lock the task and those that read its outputs. Returns the readers that have not ended."""
    cursor.execute(
        """SELECT DISTINCT r.jeditaskid FROM jedi_datasets o
             JOIN jedi_datasets r ON r.datasetname IN (o.datasetname, o.containername) AND r.type = 'input'
              AND r.jeditaskid <> o.jeditaskid
             JOIN jedi_tasks t ON t.jeditaskid = r.jeditaskid AND NOT t.status = ANY(%s)
            WHERE o.jeditaskid = %s AND o.type = 'output'""",
        [sorted(TASK_FINAL), task_id],
    )
    readers = [task for (task,) in cursor.fetchall()]
    cursor.execute(
        "SELECT jeditaskid FROM jedi_tasks WHERE jeditaskid = ANY(%s) ORDER BY jeditaskid FOR UPDATE",
        [sorted([task_id, *readers])],
    )
    return sorted(readers)


_MADE = """
SELECT c.fileid, c.datasetid, d.datasetname, c.lfn, c.pandaid, c.status, c.type, coalesce(c.scope, '')
  FROM jedi_dataset_contents c JOIN jedi_datasets d ON d.jeditaskid = c.jeditaskid AND d.datasetid = c.datasetid
 WHERE c.jeditaskid = %(task)s AND c.type IN ('output', 'log', 'lib')
"""


def _plan(cursor: psycopg.Cursor[Any], task: Task, names: Collection[str], dataset: str | None) -> Recovery:
    scopes = {}
    for name in names:
        scope, colon, lfn = name.rpartition(":")
        scopes[lfn] = scope if colon else None
    if not scopes:
        raise CannotRecoverError("no lost file was named")
    cursor.execute(
        _MADE
        + " AND c.lfn = ANY(%(names)s::text[]) AND (%(dataset)s::text IS NULL OR d.datasetname = %(dataset)s) ORDER BY 1",
        {"task": task.id, "names": texts(scopes), "dataset": dataset},
    )
    rows = [row for row in cursor.fetchall() if scopes[str(row[3])] in (None, row[7])]
    _check_named(task, scopes, rows)
    lost = [LostOutput._make(row[:5]) for row in rows]
    jobs = sorted({output.job_id for output in lost})
    cursor.execute(
        _MADE + " AND c.pandaid = ANY(%(jobs)s::bigint[]) AND c.type = 'output' AND c.status = 'finished' ORDER BY 1",
        {"task": task.id, "jobs": numbers(jobs)},
    )
    named = {output.file_id for output in lost}
    also = [LostOutput._make(row[:5]) for row in cursor.fetchall() if row[0] not in named]
    jobs = sorted({*jobs, *_makers_of_merged(cursor, task.id, jobs)})
    cursor.execute(
        """SELECT c.fileid, c.datasetid, d.datasetname, c.lfn, c.type FROM job_files f
             JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
             JOIN jedi_datasets d ON d.datasetid = c.datasetid
            WHERE f.pandaid = ANY(%(jobs)s::bigint[]) AND f.type NOT IN ('output', 'log')
              AND c.jeditaskid = %(task)s AND c.pandaid = f.pandaid AND c.status = 'finished' AND c.keeptrack = 1
            ORDER BY c.fileid""",
        {"task": task.id, "jobs": numbers(jobs)},
    )
    inputs = [InputAgain._make(row) for row in cursor.fetchall()]
    if not any(i.type in ("input", "pseudo_input") for i in inputs):
        raise CannotRecoverError(f"job {jobs[0]} has no input that could be processed again")
    return Recovery(task.id, task.status, lost, also, jobs, inputs)


def _makers_of_merged(cursor: psycopg.Cursor[Any], task_id: int, jobs: Sequence[int]) -> list[int]:
    """Jobs that made what these jobs have merged. All files of one of them were merged by the same job."""
    cursor.execute(
        """SELECT DISTINCT c.boundaryid FROM job_files f
             JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
            WHERE f.pandaid = ANY(%s::bigint[]) AND c.jeditaskid = %s AND c.type IN ('trn_output', 'trn_log')
              AND c.boundaryid IS NOT NULL""",
        [numbers(jobs), task_id],
    )
    return [job for (job,) in cursor.fetchall()]


def _check_named(task: Task, scopes: Collection[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Raise CannotRecoverError for names that the task has not made, or that are no outputs that it could make again."""
    unknown = sorted(set(scopes) - {str(row[3]) for row in rows})
    if unknown:
        raise CannotRecoverError(f"task {task.id} has not made {_some(unknown)}")
    for row in rows:
        if row[6] != "output":
            raise CannotRecoverError(f"{row[3]} is a {row[6]} file: only outputs are made again")
        if row[5] == FileStatus.LOST:
            raise CannotRecoverError(f"{row[3]} is known to be lost, and its inputs are already being processed again")
        if row[5] != FileStatus.FINISHED:
            raise CannotRecoverError(f"{row[3]} was never made: it is {row[5]}")


def _check_inputs(inputs: Sequence[InputAgain]) -> None:
    """Raise CannotRecoverError when an input is gone as well: who made it has to make it again first."""
    by_dataset: dict[str, set[str]] = {}
    for file in inputs:
        if file.type == "input":
            by_dataset.setdefault(file.dataset, set()).add(file.lfn)
    for dataset, wanted in by_dataset.items():
        left = set(wanted)
        try:
            for page in data_management().list_files(dataset, all_attempts=True):
                left.difference_update(f.lfn for f in page)
        except UnknownDatasetError:
            pass
        if left:
            raise CannotRecoverError(
                f"the inputs {_some(sorted(left))} of {dataset} are lost as well; they must be made again first"
            )


def _write(cursor: psycopg.Cursor[Any], found: Recovery) -> None:
    """Outputs are lost, inputs are ready again, and the counters say so."""
    inputs = sorted(i.file_id for i in found.inputs)
    lost = lose(cursor, found.task_id, [*found.lost, *found.also_lost])
    ready = file_recovery.process_again(cursor, found.task_id, inputs)
    again = [(dataset, files, events, 0, 0) for dataset, files, events in ready]
    # A job whose outputs are gone counts for nothing: its inputs may be those of another finished job.
    file_recovery.take_inputs_from(cursor, found.jobs, inputs)
    count_files(cursor, sorted(lost + again))
    remove(found.task_id, [*found.lost, *found.also_lost])


def _readers_of(cursor: psycopg.Cursor[Any], readers: Sequence[int], found: Recovery) -> dict[int, int]:
    """How many of the lost files each reading task still has before it."""
    cursor.execute(
        """SELECT c.jeditaskid, count(*) FROM jedi_datasets d
             JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid
            WHERE d.jeditaskid = ANY(%s) AND d.type = 'input' AND d.datasetname = ANY(%s)
              AND c.status IN ('ready', 'pending', 'staging') AND c.lfn = ANY(%s) GROUP BY 1 ORDER BY 1""",
        [list(readers), _names_of_datasets(found), [o.lfn for o in (*found.lost, *found.also_lost)]],
    )
    return dict(cursor.fetchall())


def _names_of_datasets(found: Recovery) -> list[str]:
    """The datasets of the lost files and the containers that hold them."""
    ids = {o.dataset_id for o in (*found.lost, *found.also_lost)}
    rows = Dataset.objects.filter(pk__in=ids).values_list("name", "container_name")
    return sorted({name for row in rows for name in row if name})


def _tell_readers(cursor: psycopg.Cursor[Any], readers: Sequence[int], found: Recovery) -> None:
    """Lost files that a reading task has not used are lost to it; a child waits for those that come in their place."""
    datasets = Dataset.objects.filter(task_id__in=readers, type="input", name__in=_names_of_datasets(found))
    lfns = texts(o.lfn for o in (*found.lost, *found.also_lost))
    for dataset in datasets.order_by("task_id", "id"):
        lose_where(cursor, dataset.task_id, dataset.id, "lfn = ANY(%(lfns)s::text[])", {"lfns": lfns})
    children = datasets.filter(task__parent_id=found.task_id).exclude(
        status__in=[DatasetStatus.REMOVED, DatasetStatus.FAILED, DatasetStatus.BROKEN]
    )
    children.update(state="mutable", state_check_time=datetime.fromtimestamp(0, UTC))


def _reopen(task: Task, found: Recovery, *, by: str, reason: str) -> None:
    """The outputs take files again, and a task that had ended goes through rerefine to ready (lifecycle 3.2)."""
    ids = {o.dataset_id for o in (*found.lost, *found.also_lost)}
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
        reason=f"{plural(len(found.inputs), 'input is', 'inputs are')} processed again",
        attempt=(task.attempt or 0) + 1,
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
