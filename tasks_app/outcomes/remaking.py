"""Lost outputs are made again by another task, with outputs of its own: the one that made them stays as it ended."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import psycopg
from django.db import transaction

from jedisite import audit
from jedisite.database.sql import hot_cursor, numbers, texts
from jedisite.identity.callers import Caller
from jedisite.vocabulary.words import plural, some
from tasks_app.lifecycle import task_moves
from tasks_app.models import Task, TaskParams
from tasks_app.outcomes.kept_copies import kept_of
from tasks_app.outcomes.lost_outputs import lose_outputs
from tasks_app.outcomes.recovery import lock, tell_readers
from tasks_app.outcomes.recovery_chains import chain
from tasks_app.outcomes.recovery_plans import CannotRecoverError, Recovery
from tasks_app.outcomes.rules.remade import CannotRemakeError, remade
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import submitting


@dataclass(frozen=True, slots=True)
class Remaking:
    """What another task makes again; `task_id` is None as long as nothing was done."""

    found: Recovery
    name: str
    task_id: int | None = None

    def sentences(self) -> list[str]:
        lines = self.found.sentences()[:-1]
        return [*lines, f"the task {self.name} makes them again; task {self.found.task_id} stays {self.found.status}"]


def recover_as_task(
    task_id: int,
    names: Collection[str],
    *,
    caller: Caller,
    reason: str = "",
    dataset: str | None = None,
    dry_run: bool = False,
) -> Remaking:
    """Submit a task that makes lost outputs again, from the inputs of the jobs that made them, into datasets of its own.

    What these jobs made besides is taken away, as by `recover`. Raises CannotRecoverError as `recover` does, and for jobs
    whose work another task cannot do.
    """
    kept = kept_of(task_id, names, dataset)
    if kept:
        named = "; ".join(one.sentence() for one in kept.values())
        raise CannotRecoverError(
            f"{named}; leave what is not lost out, or recover without a new task, which then reads it there"
        )
    with transaction.atomic(), hot_cursor() as cursor:
        readers = lock(cursor, [task_id])
        found, *makers = chain(cursor, task_id, names, dataset, lambda task: True)
        if makers or found.gone:
            raise CannotRecoverError(
                f"the inputs {some(file.lfn for file in found.gone)} are lost as well: recover without a new task, "
                "which makes them again first"
            )
        _check_inputs(cursor, found)
        task = Task.objects.get(pk=task_id)
        number = 1 + Task.objects.filter(name__startswith=f"{task.name}.remade").count()
        by_dataset: dict[str, set[str]] = {}
        for file in found.inputs:
            if file.type == "input":
                by_dataset.setdefault(file.dataset, set()).add(file.lfn)
        try:
            params = remade(TaskParams.objects.get(pk=task_id).params, by_dataset, f"remade{number}")
            submission = submitting.check(params, caller)
            if dry_run:
                return Remaking(found, params["taskName"])
            lose_outputs(cursor, task_id, found.all_lost)
            tell_readers(cursor, readers, found)
            new = submitting.submit(submission, by=caller.name).task_id
        except (CannotRemakeError, ParamErrors, submitting.SubmissionRefusedError) as exc:
            raise CannotRecoverError(f"the outputs cannot be made again by a new task: {exc}") from exc
        said = f"{plural(len(found.all_lost), 'lost output is', 'lost outputs are')} made again by task {new}"
        task_moves.note_on_task(task_id, by=caller.name, reason=said + (f": {reason}" if reason else ""))
        details = {"files": sorted(names)[:100], "task": new}
        audit.record(caller.name, "recover", "task", task_id, reason=reason, details=details)
    return Remaking(found, params["taskName"], new)


def _check_inputs(cursor: psycopg.Cursor, found: Recovery) -> None:
    """Raise CannotRecoverError unless the jobs have read whole files, which no other job has read, and nothing else."""
    files = [file for file in found.inputs if file.type == "input"]
    if not files or not all(file.is_master for file in files) or any(f.type == "pseudo_input" for f in found.inputs):
        raise CannotRecoverError(
            "its jobs have read more, or other things, than files of one input: recover without a new task"
        )
    cursor.execute(
        """SELECT lfn FROM jedi_dataset_contents WHERE jeditaskid = %s AND datasetid = ANY(%s::bigint[])
              AND lfn = ANY(%s::text[]) AND status NOT IN ('lost', 'removed') AND NOT fileid = ANY(%s::bigint[]) LIMIT 5""",
        [
            found.task_id,
            numbers({file.dataset_id for file in files}),
            texts({file.lfn for file in files}),
            numbers(file.file_id for file in files),
        ],
    )
    if parts := sorted({lfn for (lfn,) in cursor.fetchall()}):
        raise CannotRecoverError(f"other jobs have read parts of {some(parts)}: recover without a new task")
