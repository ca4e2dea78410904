"""Lost outputs whose inputs are gone as well: the tasks that made these make them again first, and those before them.

What is made again has other names. So a task that reads it gets new files, and all that it has made of the old ones is made
again too: else their events would be there twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from jedisite.database.sql import numbers, texts
from jedisite.vocabulary.words import some
from tasks_app.ddm import data_management
from tasks_app.ddm.base import UnknownDatasetError
from tasks_app.domain.states import FileStatus
from tasks_app.inputs.replaced import replaced
from tasks_app.models import Dataset, Task, TaskParams
from tasks_app.outcomes.missing import Look
from tasks_app.outcomes.recovery_plans import CannotRecoverError, InputAgain, Recovery, plan

DEEPEST: Final = 10
"""Steps of making that one recovery goes back."""
_ROUNDS: Final = 3 * DEEPEST

Missing = dict[int, set[str]]
"""Names of files by the dataset of their task."""


@dataclass(slots=True)
class _Need:
    """What is asked of one task: outputs, jobs whose outputs are made again as well, and how many steps back it is."""

    names: set[str]
    jobs: set[int] = field(default_factory=set)
    depth: int = 0


def chain(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    names: Collection[str],
    dataset: str | None,
    may: Callable[[Task], bool],
) -> list[Recovery]:
    """What is done to the task, then to those that make its inputs again, each once. Raises CannotRecoverError.

    What is found of one may change what is needed of another, so all are gone through until nothing more is found.
    """
    needs = {task_id: _Need(set(names))}
    plans: dict[int, Recovery] = {}
    for _ in range(_ROUNDS):
        before = _size(needs, plans)
        for one in list(needs):
            named = dataset if one == task_id else None
            plans[one] = _planned(cursor, _task(one), needs, plans, named, may)
        if _size(needs, plans) == before:
            return [plans[one] for one in needs]
    raise CannotRecoverError("the tasks that made the lost inputs read one another's outputs in too many ways")


def _size(needs: dict[int, _Need], plans: dict[int, Recovery]) -> int:
    """What is asked, and what is lost by it: both only grow."""
    asked = sum(1 + len(need.names) + len(need.jobs) for need in needs.values())
    return asked + sum(1 + len(found.all_lost) for found in plans.values())


def _task(task_id: int) -> Task:
    task = Task.objects.filter(pk=task_id).first()
    if task is None:
        raise CannotRecoverError(f"there is no task {task_id}")
    return task


def _planned(
    cursor: psycopg.Cursor[Any],
    task: Task,
    needs: dict[int, _Need],
    plans: dict[int, Recovery],
    dataset: str | None,
    may: Callable[[Task], bool],
) -> Recovery:
    """The plan of one task; what it needs of others, and more of itself, is added to `needs`."""
    need = needs[task.id]
    found = plan(cursor, task, need.names, dataset, need.jobs)
    taken = {(o.dataset, o.lfn) for other in plans.values() if other.task_id != task.id for o in other.all_lost}
    gone = [file for file in found.inputs if (file.dataset, file.lfn) in taken]
    absent = [file for file in _absent(found.inputs) if file not in gone]
    found.gone.extend([*gone, *absent])
    missing: Missing = {}
    for file in found.gone:
        missing.setdefault(file.dataset_id, set()).add(file.lfn)
    for row in Dataset.objects.filter(task_id=task.id, type="input", name__in={name for name, _ in taken}):
        missing.setdefault(row.id, set()).update(lfn for name, lfn in taken if name == row.name)
    for dataset_id, lfn in replaced(cursor, {file.dataset_id for file in found.gone}):
        missing.setdefault(dataset_id, set()).add(lfn)
    need.jobs |= _readers_of(cursor, found, missing)
    if found.gone:
        _check_can_wait(task, found)
    for maker, lfns in _makers(cursor, found, absent, may):
        deeper = needs.setdefault(maker, _Need(set()))
        deeper.names |= lfns
        deeper.depth = max(deeper.depth, need.depth + 1)
        if deeper.depth > DEEPEST:
            raise CannotRecoverError(
                f"the inputs are lost as well, {DEEPEST} steps of making back: recover {some(sorted(lfns))} of task {maker} first"
            )
    return found


def _absent(inputs: Sequence[InputAgain]) -> list[InputAgain]:
    """Inputs that data management has no longer, or that are gone from the storages of this machine."""
    absent, look = [], Look()
    for dataset in sorted({file.dataset for file in inputs if file.type == "input"}):
        left = {file.lfn for file in inputs if file.dataset == dataset}
        try:
            for page in data_management().list_files(dataset, all_attempts=True):
                left.difference_update(f.lfn for f in page if f.lfn in left and look.has(f.lfn, f.scope, f.surl))
        except UnknownDatasetError:
            pass
        absent += [file for file in inputs if file.dataset == dataset and file.lfn in left]
    return absent


def _readers_of(cursor: psycopg.Cursor[Any], found: Recovery, missing: Missing) -> set[int]:
    """The jobs of a task that have processed these inputs, or a part of one. Raises CannotRecoverError."""
    jobs: set[int] = set()
    for dataset, lfns in sorted(missing.items()):
        cursor.execute(
            """SELECT DISTINCT pandaid FROM jedi_dataset_contents WHERE jeditaskid = %s AND datasetid = %s
                  AND lfn = ANY(%s::text[]) AND status = 'finished' AND pandaid IS NOT NULL""",
            [found.task_id, dataset, texts(lfns)],
        )
        jobs.update(job for (job,) in cursor.fetchall())
    cursor.execute(
        """SELECT DISTINCT boundaryid FROM jedi_dataset_contents WHERE jeditaskid = %s AND type = 'trn_output'
              AND boundaryid = ANY(%s::bigint[])""",
        [found.task_id, numbers(jobs)],
    )
    merged = {job for (job,) in cursor.fetchall()}
    if others := merged - set(found.jobs):
        named = some(sorted({lfn for names in missing.values() for lfn in names}))
        raise CannotRecoverError(
            f"the inputs {named} are lost as well, and what {some(map(str, sorted(others)))} of task {found.task_id} made of "
            "them is merged with other files: these must be named as lost, too"
        )
    return jobs - merged


def _check_can_wait(task: Task, found: Recovery) -> None:
    """Raise CannotRecoverError for inputs in whose place no others would be taken."""
    lfns = some(sorted({file.lfn for file in found.gone}))
    datasets = {name for file in found.gone for name in (file.dataset, file.container.rstrip("/")) if name}
    stored = TaskParams.objects.filter(pk=task.id).values_list("params", flat=True).first() or {}
    items = [item for item in stored.get("jobParameters") or () if isinstance(item, dict)]
    named = any(str(item.get("dataset") or "").rstrip("/") in datasets and item.get("files") for item in items)
    if named or not all(file.is_master for file in found.gone):
        why = "are named by the task" if named else "go with other inputs"
        raise CannotRecoverError(
            f"the inputs {lfns} are lost as well and {why}, so others in their place would not be taken; "
            "submit a task that reads what is made again"
        )


def _makers(
    cursor: psycopg.Cursor[Any], found: Recovery, absent: Sequence[InputAgain], may: Callable[[Task], bool]
) -> Iterator[tuple[int, set[str]]]:
    """The tasks that made these files, with the names that each is to make again. What one makes again
    already, or has made again, is awaited."""
    for dataset in sorted({file.dataset for file in absent}):
        files = [file for file in absent if file.dataset == dataset]
        cursor.execute(
            """SELECT DISTINCT ON (c.lfn) c.lfn, c.jeditaskid, c.status FROM jedi_datasets d
                 JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid
                WHERE (d.datasetname = ANY(%(names)s) OR d.containername = ANY(%(names)s)) AND d.type = 'output'
                  AND d.jeditaskid <> %(task)s AND c.lfn = ANY(%(lfns)s::text[]) AND c.status = ANY(%(made)s)
                ORDER BY c.lfn, c.status, c.jeditaskid DESC""",
            {
                "names": sorted({dataset, *(file.container for file in files)} - {""}),
                "task": found.task_id,
                "lfns": texts({file.lfn for file in files}),
                "made": [FileStatus.FINISHED.value, FileStatus.LOST.value],
            },
        )
        made = cursor.fetchall()
        if unknown := sorted({file.lfn for file in files} - {lfn for lfn, _, _ in made}):
            raise CannotRecoverError(
                f"the inputs {some(unknown)} of {dataset} are lost as well, and no task has made them; "
                "they must be brought back first"
            )
        found.awaited.update(lfn for lfn, _, status in made if status == FileStatus.LOST)
        for maker in sorted({maker for _, maker, status in made if status == FileStatus.FINISHED}):
            lfns = {lfn for lfn, other, status in made if other == maker and status == FileStatus.FINISHED}
            if not may(owner := _task(maker)):
                raise CannotRecoverError(
                    f"the inputs {some(sorted(lfns))} are lost as well, and task {maker}, which made them, is {owner.user}'s: "
                    f"{owner.user} makes them again first"
                )
            yield maker, lfns
