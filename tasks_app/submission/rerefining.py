"""A task that runs again: its datasets are compared with those that refining gives now, and only differences are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db import connection, transaction
from django.db.models import F

from tasks_app.domain.states import DatasetStatus, TaskStatus
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.inputs import preprocessed
from tasks_app.lifecycle import claims, dataset_moves, file_moves, task_moves
from tasks_app.models import Command, Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.splitrule import SplitRuleError
from tasks_app.refining.base import CannotRefine, Refined
from tasks_app.refining.incexec import Comparison, OldDataset, compare, task_columns_again
from tasks_app.submission import storing

ME = storing.ME


def with_kept(task: Task, refined: Refined) -> Refined:
    """What refining gives now, with what the task keeps of what it has. Raises CannotRefine when the changes do not fit it."""
    old = {column: getattr(task, name) for column, name in storing.ATTRIBUTES.items()}
    try:
        columns = task_columns_again(refined, old, _given_with(task.id).get("changes") or {})
    except SplitRuleError as exc:
        raise CannotRefine(f"the changes do not fit the split rule: {exc}") from exc
    return replace(refined, task=columns)


@transaction.atomic
def store(task: Task, fence: int, refined: Refined) -> None:
    """Store what has changed and move the task on; nothing when the claim is gone.

    To defined when there is input to be looked up, to ready when there are files left, else to prepared.
    """
    if not claims.still_holds(task.id, fence):
        return
    old = list(Dataset.objects.filter(task=task).order_by("id"))
    found = compare([OldDataset(d.id, d.name, d.type, d.status, d.master_id) for d in old], refined.datasets)
    rows = _datasets(task.id, refined, found, {d.id: d for d in old})
    new = set(found.inserted)
    storing.create_templates(task.id, [t for t in refined.templates if t.dataset in new], rows)
    storing.store_texts(task.id, refined)
    storing.register_outputs(task, rows)
    _withdraw(task.id, list(found.removed))
    _take_back(task.id, list(found.reappeared.values()))
    to, reason = _next(task.id, found)
    columns = storing.task_attributes(refined.task)
    if _given_with(task.id).get("keep"):
        columns |= {"current_priority": task.current_priority, "gshare": task.gshare}
    task_moves.move_task(task.id, to, by=ME, reason=reason, error_dialog=None, **columns)


def _given_with(task_id: int) -> dict[str, Any]:
    """The parameters of the command that made the task run again."""
    command = Command.objects.filter(task_id=task_id, name=TaskCommand.INCEXEC, status="done").order_by("-id").first()
    return (command.parameters if command else None) or {}


def _datasets(task_id: int, refined: Refined, found: Comparison, old: dict[int, Dataset]) -> list[Dataset]:
    """The rows of the refined datasets by their places: new ones are made, the others get their place and master."""
    rows: list[Dataset] = []
    known = {**found.unchanged, **found.reappeared}
    for place, spec in enumerate(refined.datasets):
        master = rows[spec.master] if spec.master is not None else None
        if place not in known:
            rows.append(storing.create_dataset(task_id, place, spec, rows))
            continue
        row = old[known[place]]
        row.list_position = place
        if row.id in found.new_masters and master is not None:
            row.master_id = master.id
        if place in found.reappeared:
            dataset_moves.move(Dataset.objects.filter(pk=row.id), DatasetStatus.DEFINED)
        row.save(update_fields=["list_position", "master_id"])
        rows.append(row)
    return rows


def _withdraw(task_id: int, datasets: list[int]) -> None:
    """Inputs that the task does not name any more: none of their files is handed out again."""
    if not datasets:
        return
    dataset_moves.move(Dataset.objects.filter(pk__in=datasets), DatasetStatus.REMOVED, state="closed")
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM file_retries WHERE jeditaskid = %s AND datasetid = ANY(%s)", [task_id, datasets])


def _take_back(task_id: int, datasets: list[int]) -> None:
    """Inputs that are named again: their files that were handed out before wait to be handed out again."""
    if datasets:
        file_moves.open_again(task_id, sorted(datasets))


def _next(task_id: int, found: Comparison) -> tuple[TaskStatus, str]:
    step = Dataset.objects.filter(task_id=task_id, type=preprocessed.INPUT, files_to_be_used__gt=F("files_used"))
    if step.exists():
        return TaskStatus.TOPREPROCESS, "its preprocessing step is tried again"
    inputs = Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES).exclude(status=DatasetStatus.REMOVED)
    to_look_up = [DatasetStatus.TOUPDATE, DatasetStatus.DEFINED, DatasetStatus.REGISTERED]
    if not found.is_empty or inputs.filter(status__in=to_look_up).exists():
        return TaskStatus.DEFINED, _difference(found)
    if any(d.files_to_be_used > d.files_finished + d.files_failed for d in inputs.filter(master_id=None)):
        return TaskStatus.READY, "no new input, some files are left"
    return TaskStatus.PREPARED, "no new input, no file is left"


def _difference(found: Comparison) -> str:
    counts = (("new", found.inserted), ("removed", found.removed), ("back", found.reappeared))
    said = ", ".join(f"{len(what)} {word}" for word, what in counts if what)
    return f"refined again; datasets: {said or 'the same as before'}"
