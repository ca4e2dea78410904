"""What becomes of a task's datasets when the task ends. Called in the transaction of its last move."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import connection
from django.db.models import F

from brokerage_app.grid.configured import configuration
from tasks_app.ddm import data_management, maker_of
from tasks_app.domain.lifetimes import MERGED, Kind, ending_of
from tasks_app.domain.states import DatasetStatus, TaskStatus
from tasks_app.inputs.missing_files import missing_of
from tasks_app.lifecycle import dataset_moves, file_moves
from tasks_app.models import Dataset, Task
from tasks_app.models.dataset import INPUT_TYPES, OUTPUT_TYPES
from tasks_app.outcomes import output_check, partial_files, unmerged
from tasks_app.outcomes.output_check import Findings
from tasks_app.outcomes.shared_datasets import at_work, shared_with_others
from tasks_app.params.dataset_attributes import Attributes
from tasks_app.refining.analysis import refine_analysis
from tasks_app.refining.base import refiner_for
from tasks_app.refining.production import refine_production

OUTPUT_STATUS: Final[dict[str, DatasetStatus]] = {
    TaskStatus.DONE: DatasetStatus.DONE,
    TaskStatus.FINISHED: DatasetStatus.FINISHED,
    TaskStatus.FAILED: DatasetStatus.FAILED,
    TaskStatus.BROKEN: DatasetStatus.FAILED,
    TaskStatus.ABORTED: DatasetStatus.FAILED,
}
"""The last status of outputs and logs, by that of their task."""


SUCCEEDED = frozenset({TaskStatus.DONE, TaskStatus.FINISHED})


def end_datasets(task: Task, status: str, now: datetime) -> Findings:
    """Close the outputs of a task that ends as `status`, and give its datasets their last status.

    Returns what was found to be wrong with the outputs; what no job made and what was made twice is gone by then.
    """
    found = Findings(task.id)
    if settings.JEDI_CHECK_OUTPUTS != "off":
        found = output_check.check(task.id)
        output_check.mend(found)
    _end_outputs(task, status, now)
    _end_inputs(task)
    unmerged.end_datasets(task, now)
    return found


def call_done(task_ids: Collection[int]) -> None:
    """Outputs of tasks that were finished and are done by now have the last status of one that is done."""
    outputs = Dataset.objects.filter(task_id__in=task_ids, type__in=OUTPUT_TYPES).exclude(type="lib")
    dataset_moves.move(outputs, OUTPUT_STATUS[TaskStatus.DONE])


def must_pause(task: Task, status: str, found: Findings) -> bool:
    """Whether somebody is to look at the outputs before the task ends: they are not what its jobs have reported."""
    return (
        settings.JEDI_CHECK_OUTPUTS == "pause"
        and status in SUCCEEDED
        and task.gshare != "Test"
        and (found.needs_people or bool(found.void_jobs))
    )


def kind_of(task: Task) -> Kind:
    """Which rules hold for the outputs of a task: those of the refiner that took it."""
    refiner = refiner_for(task.vo or "", task.prod_source_label or "", task.task_type or "")
    return {refine_production: Kind.PRODUCTION, refine_analysis: Kind.ANALYSIS}.get(refiner, Kind.GENERIC)


def _end_outputs(task: Task, status: str, now: datetime) -> None:
    outputs = Dataset.objects.filter(task=task, type__in=OUTPUT_TYPES)
    names = set(outputs.values_list("name", flat=True))
    data_management().close(sorted(names - at_work(task.id, names)), by=maker_of(task))
    # Libraries have the state that their builds left them.
    made = outputs.exclude(type="lib")
    dataset_moves.move(made, OUTPUT_STATUS[status], state="closed", files=F("files_finished"))
    _set_lifetimes(task, status, now)


def _set_lifetimes(task: Task, status: str, now: datetime) -> None:
    """Outputs that are not kept for ever get the time of their end, or are deleted at once.

    What another task has made stays as it is, and what another task writes to as well is not deleted.
    """
    kind, maker = kind_of(task), maker_of(task)
    analysis = timedelta(days=configuration().get("user_output", "OUTPUT_CONTAINER_LIFETIME", vo=task.vo))
    rows = list(Dataset.objects.filter(task=task, type__in=["output", "log"]).order_by("id"))
    shared = shared_with_others(task.id, [row.name for row in rows])
    for row in rows:
        ending = ending_of(
            kind, status, type=row.type, attributes=_on(row.attributes), files=row.files_finished, analysis=analysis
        )
        if ending.delete:
            data_management().delete({row.name} - shared, by=maker)
        elif keep := ending.keep or _lifetime_of(task, row.type):
            data_management().keep_until([row.name], now + keep, by=maker)
    parent = _merged_parent(task) if status in SUCCEEDED else None
    if parent is not None:
        merged = Dataset.objects.filter(task=parent, type="output")
        read = Dataset.objects.filter(task=task, type="input").values_list("name", flat=True)
        names = [row.name for row in merged.filter(name__in=list(read)) if "tr" in _on(row.attributes)]
        data_management().keep_until(names, now + MERGED, by=maker_of(parent))


def _lifetime_of(task: Task, type: str) -> timedelta | None:
    """How long outputs of a type are kept that no other rule ends; None for ever."""
    days = configuration().get("task_setup", "DATASET_LIFETIME", type, vo=task.vo)
    return None if days is None else timedelta(days=days)


def _merged_parent(task: Task) -> Task | None:
    """The parent of which a task has merged the outputs, when it may say how long those are kept: productions of
    others' parents may, users' tasks may for their owner's alone."""
    if task.processing_type != "merge" or not task.parent_id or task.parent_id == task.id:
        return None
    parent = Task.objects.filter(pk=task.parent_id).first()
    if parent is None or (parent.user != task.user and kind_of(task) != Kind.PRODUCTION):
        return None
    return parent


def _on(attributes: str | None) -> frozenset[str]:
    """The tokens of a dataset, without `tr` when it is switched off."""
    given = Attributes.parse(attributes)
    return given.tokens - {"tr"} if given.values.get("tr") == 0 else given.tokens


def _end_inputs(task: Task) -> None:
    """No more files come, and none are waited for: those that were pending stay for a retry as files not yet used."""
    file_moves.stop_waiting(task.id)
    masters = Dataset.objects.filter(task=task, type__in=INPUT_TYPES, master_id=None)
    lacking = {*missing_of(masters.filter(files_missing__gt=0)), *partial_files.datasets_with_some(task)}
    dataset_moves.end_inputs(task.id, lacking)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM file_retries WHERE jeditaskid = %s", [task.id])
