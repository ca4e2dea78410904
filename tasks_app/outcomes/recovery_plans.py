"""What a recovery of lost outputs does to one task: the jobs that made them, what else these made, and their inputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg

from jedisite.database.sql import numbers, texts
from jedisite.vocabulary.words import plural, some
from tasks_app.domain.states import FileStatus, TaskStatus
from tasks_app.inputs.partial_inputs import has_partial
from tasks_app.models import Task
from tasks_app.outcomes.kept_copies import Kept
from tasks_app.outcomes.lost_outputs import LostOutput

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


NEW_NAMES = "tasks that failed on the lost files take it when they are run again (incexec), not when they are retried"
"""Who reads what comes in the place of lost files."""


class CannotRecoverError(ValueError):
    """Nothing was changed; the sentence names the files or the state that stand in the way."""


class InputAgain(NamedTuple):
    file_id: int
    dataset_id: int
    dataset: str
    lfn: str
    type: str
    container: str
    is_master: bool


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a recovery does, or would do.

    `lost` were named; `also_lost` were made by the same jobs; `inputs` are processed again; those that are `gone` come back
    under other names from the `makers`, which make them again first, or have done so already (`awaited`); `readers` are
    tasks that still have lost files before them, with how many. Those that are `kept` were named, and a storage has them:
    nothing is done for them but that.
    """

    task_id: int
    status: str
    lost: Sequence[LostOutput]
    also_lost: Sequence[LostOutput]
    jobs: Sequence[int]
    inputs: Sequence[InputAgain]
    gone: list[InputAgain] = field(default_factory=list)
    awaited: set[str] = field(default_factory=set)
    makers: list[Recovery] = field(default_factory=list)
    readers: dict[int, int] = field(default_factory=dict)
    kept: list[Kept] = field(default_factory=list)

    @property
    def all_lost(self) -> list[LostOutput]:
        return [*self.lost, *self.also_lost]

    @property
    def reopens(self) -> bool:
        return bool(self.lost) and self.status in REOPENED

    def sentences(self) -> list[str]:
        """What people read: one line each for the files, the jobs, the inputs, the task and its readers."""
        kept = [one.sentence() for one in self.kept]
        if not self.lost:
            return [*kept, f"nothing is made again: task {self.task_id} stays {self.status}"]
        lines = [*kept, f"{len(self.lost)} lost: {some(o.lfn for o in self.lost)}"]
        if self.also_lost:
            lines.append(f"{len(self.also_lost)} more made by the same jobs: {some(o.lfn for o in self.also_lost)}")
        lines.append(f"{plural(len(self.jobs), 'job')} made them: {some(map(str, self.jobs))}")
        lines.append(self.processed_again())
        if first := [i.lfn for i in self.gone if i.lfn not in self.awaited]:
            lines.append(f"{len(first)} of them lost as well, and made again first: {some(first)}")
        if others := [i.lfn for i in self.gone if i.lfn in self.awaited]:
            what = "what was made in their place, or still is, is read instead"
            lines.append(f"{len(others)} of them lost as well: {what}: {some(others)}")
        lines.append(f"what is made again gets new names: {NEW_NAMES}")
        lines.append(f"task {self.task_id}, which is {self.status}, {'runs again' if self.reopens else 'goes on'}")
        lines += [f"task {task} does not get {count} of the lost files" for task, count in self.readers.items()]
        for maker in self.makers:
            lines += maker.sentences()
        return lines

    def processed_again(self) -> str:
        """`2 inputs are processed again: a, b`; work that reads no file has no name that says anything."""
        files = [i.lfn for i in self.inputs if i.type == "input"]
        made_up = sum(i.type == "pseudo_input" for i in self.inputs)
        seeds = sum(i.type == "random_seed" for i in self.inputs)
        said = []
        if files:
            said.append(f"{plural(len(files), 'input is', 'inputs are')} processed again: {some(files)}")
        if made_up:
            words = "part of its work, which reads no file, is", "parts of its work, which read no file, are"
            said.append(f"{plural(made_up, *words)} done again")
        return "; ".join(said) + (f", with the same {plural(seeds, 'random seed')}" if seeds else "")


_MADE = """
SELECT c.fileid, c.datasetid, d.datasetname, c.lfn, c.pandaid, c.status, c.type, coalesce(c.scope, '')
  FROM jedi_dataset_contents c JOIN jedi_datasets d ON d.jeditaskid = c.jeditaskid AND d.datasetid = c.datasetid
 WHERE c.jeditaskid = %(task)s AND c.type IN ('output', 'log', 'lib')
"""


def plan(
    cursor: psycopg.Cursor[Any],
    task: Task,
    names: Collection[str],
    dataset: str | None,
    more_jobs: Collection[int] = (),
) -> Recovery:
    """What is to be done for lost files of these names. `more_jobs`: jobs whose outputs are to be made again as well.

    Raises CannotRecoverError for names that the task has not made and for a state of it in which it cannot be done.
    """
    if task.status in REFUSED:
        raise CannotRecoverError(f"task {task.id} is {task.status}: its lost files cannot be recovered now")
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
    jobs = sorted({output.job_id for output in lost}.union(more_jobs))
    jobs = sorted({*jobs, *_with_other_events(cursor, task, jobs)})
    cursor.execute(
        _MADE + " AND c.pandaid = ANY(%(jobs)s::bigint[]) AND c.type = 'output' AND c.status = 'finished' ORDER BY 1",
        {"task": task.id, "jobs": numbers(jobs)},
    )
    named = {output.file_id for output in lost}
    also = [LostOutput._make(row[:5]) for row in cursor.fetchall() if row[0] not in named]
    jobs = sorted({*jobs, *_makers_of_merged(cursor, task.id, jobs)})
    cursor.execute(
        """SELECT c.fileid, c.datasetid, d.datasetname, c.lfn, c.type, coalesce(d.containername, ''), d.masterid IS NULL
             FROM job_files f
             JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
             JOIN jedi_datasets d ON d.datasetid = c.datasetid
            WHERE f.pandaid = ANY(%(jobs)s::bigint[]) AND f.type NOT IN ('output', 'log')
              AND c.jeditaskid = %(task)s AND c.pandaid = f.pandaid AND c.status IN ('finished', 'partial') AND c.keeptrack = 1
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


def _with_other_events(cursor: psycopg.Cursor[Any], task: Task, jobs: Sequence[int]) -> list[int]:
    """Jobs whose outputs have other events of the same files: all of a file is processed again."""
    if not has_partial(task):
        return []
    cursor.execute(
        """SELECT DISTINCT o.pandaid FROM job_files f
             JOIN job_files s ON s.fileid = f.fileid AND s.datasetid = f.datasetid AND s.type = f.type
             JOIN jedi_dataset_contents o ON o.jeditaskid = %s AND o.pandaid = s.pandaid AND o.type = 'output'
              AND o.status = 'finished'
            WHERE f.pandaid = ANY(%s::bigint[]) AND f.type IN ('input', 'pseudo_input')""",
        [task.id, numbers(jobs)],
    )
    return [job for (job,) in cursor.fetchall()]


def _check_named(task: Task, scopes: Collection[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Raise CannotRecoverError for names that the task has not made, or that are no outputs that it could make again."""
    unknown = sorted(set(scopes) - {str(row[3]) for row in rows})
    if unknown:
        raise CannotRecoverError(f"task {task.id} has not made {some(unknown)}")
    for row in rows:
        if row[6] != "output":
            raise CannotRecoverError(f"{row[3]} is a {row[6]} file: only outputs are made again")
        if row[5] == FileStatus.LOST:
            raise CannotRecoverError(f"{row[3]} is known to be lost, and its inputs are already being processed again")
        if row[5] != FileStatus.FINISHED:
            raise CannotRecoverError(f"{row[3]} was never made: it is {row[5]}")
